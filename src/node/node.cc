#include "node/node.h"

#include "store/store_access.h"

namespace perdure {

Node::Node(Store store, Queue queue, Actors actors, Schedules schedules, Debouncers debouncers, Sequences sequences)
    : store_(std::move(store)),
      queue_(std::move(queue)),
      actors_(std::move(actors)),
      schedules_(std::move(schedules)),
      debouncers_(std::move(debouncers)),
      sequences_(std::move(sequences)),
      clock_(StoreAccess::impl(store_).scheduler()) {}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options) {
  auto wrong = [](auto& result) { return std::unexpected(std::move(result.error())); };
  auto store = Store::open(options.store, std::move(options.store_options));
  if (!store) return wrong(store);
  auto queue = Queue::open(*store, {.session = options.session});
  if (!queue) return wrong(queue);
  // Handlers of remote behaviours wait for other processes, each on a thread.
  auto actors = Actors::open(*store, {.session = options.session, .handler_threads_max = 64});
  if (!actors) return wrong(actors);
  auto schedules = Schedules::open(*store);
  if (!schedules) return wrong(schedules);
  auto debouncers = Debouncers::open(*store);
  if (!debouncers) return wrong(debouncers);
  auto sequences = Sequences::open(*store);
  if (!sequences) return wrong(sequences);
  return std::unique_ptr<Node>(new Node(std::move(*store), std::move(*queue), std::move(*actors),
                                        std::move(*schedules), std::move(*debouncers), std::move(*sequences)));
}

Node::~Node() {
  (void)close(Duration::zero());
}

WallTime Node::now() {
  return clock_.now();
}

Result<void> Node::close(Duration grace) {
  if (std::exchange(closed_, true)) return {};
  schedules_.hold();
  debouncers_.hold();
  auto queue = queue_.close(grace);
  auto actors = actors_.close(grace);
  if (!queue) return queue;
  return actors;
}

}  // namespace perdure
