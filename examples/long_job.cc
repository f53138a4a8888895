// A job that takes long, under the lock of its actor: other messages wait in the mailbox meanwhile, a priority call
// looks at the state all the same, and whoever takes the lock away is heard.
#include <cstdio>
#include <future>
#include <semaphore>

#include "perdure/actor.h"

using namespace perdure;

/// Answered with how many pages were written.
struct Write {
  using Reply = std::int64_t;
  std::int64_t pages = 0;
  PERDURE_DESCRIBE(Write, pages)
};
struct Look {
  using Reply = std::string;
  PERDURE_DESCRIBE(Look)
};

/// Stands for whatever takes long, a program that is run for instance.
struct Press {
  std::binary_semaphore started{0}, paper{0}, stopped{0};
};

struct Report {
  static constexpr std::string_view kKind = "report";
  struct State {
    std::string status = "empty";
    PERDURE_DESCRIBE(State, status)
  };
  using Messages = MessageList<Write, Look>;
  std::shared_ptr<Press> press = std::make_shared<Press>();

  Answer<std::int64_t> handle_call(const Write&, State& state, Turn&) {
    state.status = "being written";
    return take_lock;  // The status is committed, and handle_locked is next.
  }
  Answer<std::int64_t> handle_locked(const Write& write, State& state, Turn& turn) {
    turn.cancel_signal().then([press = press] { press->paper.release(); });
    press->started.release();
    press->paper.acquire();  // No transaction is open, and nothing else of this actor is handled.
    if (turn.cancel_signal().cancelled()) std::printf("the job is told to stop\n");
    press->stopped.release();
    state.status = std::to_string(write.pages) + " pages";
    return write.pages;
  }
  Answer<std::string> handle_call(const Look&, State& state, Turn&) { return state.status; }
};

int main(int argc, char** argv) {
  auto store = Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data");
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;
  auto actors = Actors::open(*store);
  Report kind;
  if (!actors || !actors->serve(kind)) return 1;
  auto report = actors->of<Report>("year");
  auto look = [&] { return report.call(Look{}, {.way = Way::kPriority}).value_or("?"); };
  auto write = [&](std::int64_t pages) {
    auto job = std::async(std::launch::async, [&, pages] { return report.call(Write{pages}); });
    kind.press->started.acquire();
    return job;
  };

  auto job = write(12);
  std::printf("meanwhile: %s\n", look().c_str());
  kind.press->paper.release();
  kind.press->stopped.acquire();
  const auto pages = static_cast<long long>(job.get().value_or(-1));
  std::printf("%lld pages were written: %s\n", pages, look().c_str());

  job = write(99);
  if (!report.untyped().unlock()) return 1;
  kind.press->stopped.acquire();
  std::printf("without the lock: %s; it is still %s\n", job.get().error().name().data(), look().c_str());
}
