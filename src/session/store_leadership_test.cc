// The leadership of the store by itself, on simulated nodes.
#include <gtest/gtest.h>

#include <map>

#include "perdure/leadership.h"
#include "perdure/testing.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;
using testing::StoreKind;

constexpr const char* kKey = "ws.cs";
// The defaults of sessions.
constexpr Duration kTtl = 5s;
constexpr Duration kRenew = 1250ms;

class StoreLeadershipTest : public ::testing::Test {
 protected:
  void open(Simulation& sim, int index) {
    Node& node = *sim.node(index);
    store_leadership_async(node.store(), {}, [&](Result<std::shared_ptr<Leadership>> opened) {
      ASSERT_TRUE(opened) << to_string(opened.error());
      node.keep(*opened);
      all_[index] = opened->get();
    });
    ASSERT_TRUE(sim.run_until([&] { return all_[index] != nullptr; }, 1s));
  }
  std::uint64_t acquire(Simulation& sim, int index) {
    std::optional<Result<std::uint64_t>> answer;
    all_[index]->acquire(kKey, [&](Result<std::uint64_t> revision) { answer = std::move(revision); });
    sim.run_until([&] { return answer.has_value(); }, 2s);
    EXPECT_TRUE(answer && *answer) << (answer ? to_string(answer->error()) : "no answer");
    return answer && *answer ? **answer : 0;
  }
  std::optional<ErrorCode> release(Simulation& sim, int index, std::uint64_t revision) {
    std::optional<Result<void>> answer;
    all_[index]->release(kKey, revision, [&](Result<void> released) { answer = std::move(released); });
    EXPECT_TRUE(sim.run_until([&] { return answer.has_value(); }, 2s));
    return *answer ? std::nullopt : std::optional(answer->error().code);
  }

  std::map<int, Leadership*> all_;
};

// While its own release is under way a key may be seen to be gone. Who were refused then would turn in circles.
TEST_F(StoreLeadershipTest, AKeyIsTakenAgainRightBehindItsRelease) {
  Simulation sim;
  sim.run_for(1ms);
  open(sim, 0);
  std::uint64_t first = acquire(sim, 0);
  bool released = false;
  all_[0]->release(kKey, first, [&](const Result<void>& done) { released = done.has_value(); });
  EXPECT_GT(acquire(sim, 0), first);
  EXPECT_TRUE(released);
}

TEST_F(StoreLeadershipTest, AKeyThatWasTakenAwayCanBeTakenAgain) {
  Simulation sim;
  sim.run_for(1ms);
  open(sim, 0);
  std::uint64_t first = acquire(sim, 0);
  bool taken = false;
  sim.node(0)->store().transact_async(
      [](Transaction& txn) {
        SystemAccess access(txn);
        txn.clear(session::lease_key(std::string("leadership/default/") + kKey));
      },
      [&](const Result<void>& done) { taken = done.has_value(); });
  ASSERT_TRUE(sim.run_until([&] { return taken; }, 1s));
  EXPECT_EQ(release(sim, 0, first), ErrorCode::kStaleToken);
  EXPECT_GT(acquire(sim, 0), first);
}

// Whoever watches a key follows its owner: otherwise renewals are seen only at one's own, and a death that much later.
TEST_F(StoreLeadershipTest, WhoWatchesSeesADeathATtlAfterTheLastRenewal) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation sim({.seed = seed, .nodes = 2, .store = StoreKind::kRemote});
    all_.clear();
    sim.run_for(1ms);
    open(sim, 0);
    acquire(sim, 0);
    sim.run_for(Duration(sim.random() % static_cast<std::uint64_t>(kRenew.count())));
    open(sim, 1);
    bool gone = false;
    all_[1]->watch(kKey, [&](const LeadershipEvent& event) { gone |= event.what == LeadershipEvent::What::kGone; });
    sim.run_for(10s + Duration(sim.random() % static_cast<std::uint64_t>(kRenew.count())));
    EXPECT_FALSE(gone);
    sim.crash(0, testing::Crash::kAtOnce, 1h);
    EXPECT_TRUE(sim.run_until([&] { return gone; }, kTtl + 300ms)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace perdure
