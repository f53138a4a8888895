// A counter that lives in the store: whichever process serves its kind counts on where the last one stopped.
#include <cstdio>

#include "perdure/actor.h"

using namespace perdure;

struct Add {
  using Reply = std::int64_t;
  std::int64_t by = 1;
  PERDURE_DESCRIBE(Add, by)
};

struct Counter {
  static constexpr std::string_view kKind = "counter";
  struct State {
    std::int64_t count = 0;
    PERDURE_DESCRIBE(State, count)
  };
  using Messages = MessageList<Add>;

  Answer<std::int64_t> handle_call(const Add& add, State& state, Turn&) { return state.count += add.by; }
  void handle_cast(const Add& add, State& state, Turn&) { state.count += add.by; }
};

int main(int argc, char** argv) {
  auto store = Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data");
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;
  auto actors = Actors::open(*store);
  if (!actors || !actors->serve<Counter>()) return 1;

  auto visits = actors->of<Counter>("visits");
  auto before = visits.call(Add{0});      // What earlier runs have counted.
  auto sent = visits.cast(Add{.by = 2});  // Durable once this returns.
  auto after = visits.call(Add{.by = 3});
  if (!before || !sent || !after) return 1;
  std::printf("%lld more visits\n", static_cast<long long>(*after - *before));
}
