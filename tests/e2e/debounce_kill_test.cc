// Processes that touch and run the keys of one debouncer, and are killed meanwhile: every touch is covered by a run
// that was claimed after it, and no key is run twice at once.
#include <array>
#include <memory>
#include <random>

#include "debounce_check.h"
#include "perdure/debounce.h"
#include "session_fixture.h"

namespace perdure::e2e {
namespace {

const std::int64_t kTouches = by_engine(100'000, 5'000);
constexpr int kKeys = 1'000;
constexpr Milliseconds kBetweenKills{500};

class DebounceKill : public SessionProcesses {
 protected:
  void start(std::unique_ptr<Child>& worker) {
    worker = std::make_unique<Child>(std::vector<std::string>{PERDURE_E2E_DEBOUNCE_WORKER});
    worker->say("open " + url_ + " " + std::to_string(++lives_) + " " + std::to_string(kKeys));
  }
  std::int64_t touched() { return decode_counter(get(store_, "touched")); }
  std::size_t open_keys() { return must(debouncers_.keys("e2e", {.limit = 1000})).size(); }

  Debouncers debouncers_ = must(Debouncers::open(store_));
  int lives_ = 0;
};

// D1 to D3; WORK-B1, WORK-B3, WORK-B4, WORK-B6.
TEST_F(DebounceKill, EveryTouchIsCoveredAndNoKeyIsRunTwiceAtOnce) {
  must(debouncers_.set("e2e", {.quiet = Milliseconds(100), .max_wait = Milliseconds(1000), .payload = Payload::kAll}));
  std::array<std::unique_ptr<Child>, 3> workers;
  for (auto& worker : workers) start(worker);
  for (auto& worker : workers) ASSERT_EQ(worker->answer(), "ok touching");
  std::mt19937 chance(17);
  std::int64_t began_ns = steady_ns(), last_ns = began_ns;
  int kills = 0;
  Child idle({PERDURE_E2E_DEBOUNCE_WORKER});  // Told nothing; to wait on.
  while ((touched() < kTouches || kills < 5) && ms_between(began_ns, steady_ns()) < 120'000) {
    idle.gather(Milliseconds(20));
    if (steady_ns() - last_ns < std::chrono::nanoseconds(kBetweenKills).count()) continue;
    last_ns = steady_ns();
    auto& victim = workers[chance() % workers.size()];
    victim->kill();
    start(victim);
    ++kills;
  }
  std::int64_t made = touched();
  EXPECT_GE(made, kTouches);
  for (auto& worker : workers) worker->say("rest");
  std::int64_t rested_ns = steady_ns();
  while (open_keys() > 0 && ms_between(rested_ns, steady_ns()) < 30'000) idle.gather(Milliseconds(50));
  EXPECT_EQ(open_keys(), 0u) << "keys that are still to be run";
  for (auto& worker : workers) {
    worker->end_input();
    worker->gather(kPatience);
    EXPECT_EQ(worker->wait(), 0);
  }
  std::vector<std::string> wrong;
  must(store_.read([&](Reader& reader) {
    wrong.clear();  // Anew in each run of the body.
    sim::debouncing::check(reader,
                           {.owed = sim::debouncing::Owed::kOnce, .at_rest = true, .acknowledged = {}, .possible = {}},
                           [&](std::string what) { wrong.push_back(std::move(what)); });
  }));
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " wrong, the first: " << wrong.front();
  std::printf("%lld touches of %d keys in %.1f s, %d kills\n", static_cast<long long>(touched()), kKeys,
              ms_between(began_ns, rested_ns) / 1000, kills);
  EXPECT_GT(kills, 3);
  expect_sound(store_);
}

}  // namespace
}  // namespace perdure::e2e
