#include "transcript/path_looks.h"

#include <atomic>
#include <utility>

namespace perdure::transcript {
namespace {

/// Of one look. Thread-safe.
class Answer {
 public:
  explicit Answer(PathLooks::Found found) : found_(std::move(found)) {}

  bool is_given() const { return given_; }
  /// The first counts.
  void give(Result<void> result) {
    if (!given_.exchange(true)) std::exchange(found_, nullptr)(std::move(result));
  }

 private:
  std::atomic<bool> given_ = false;
  PathLooks::Found found_;
};

std::unexpected<Error> nobody_knows() {
  return fail(ErrorCode::kUnavailable, "the file system of the transcript does not answer");
}

}  // namespace

PathLooks::PathLooks(Scheduler& scheduler, Look look)
    : scheduler_(scheduler),
      look_(std::make_shared<const Look>(std::move(look))),
      pool_(std::make_shared<HandlerPool>(
          scheduler, HandlerPool::Options{.name = "perdure-look", .eager = 1, .most = 1, .spare = 0})) {}

PathLooks::~PathLooks() {
  // What hangs finds nothing to go on with when it comes back.
  pool_->close([] {});
}

void PathLooks::look(std::string path, Found found) {
  if (pool_->hanging() > 0) return found(nobody_knows());
  auto answer = std::make_shared<Answer>(std::move(found));
  auto give_up = [answer] { answer->give(nobody_knows()); };
  // Also of those that wait behind one that hangs.
  scheduler_.at(scheduler_.now() + kTime, give_up);
  auto run = [answer, look = look_, path = std::move(path)] {
    if (!answer->is_given()) answer->give((*look)(path));
  };
  pool_->run({.run = std::move(run), .limit = kTime, .overrun = give_up, .dropped = give_up});
}

}  // namespace perdure::transcript
