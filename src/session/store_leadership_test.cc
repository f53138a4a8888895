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
  void open(Simulation& sim, int index, const StoreLeadershipOptions& options = {}) {
    Node& node = *sim.node(index);
    store_leadership_async(node.store(), options, [&](Result<std::shared_ptr<Leadership>> opened) {
      ASSERT_TRUE(opened) << to_string(opened.error());
      node.keep(*opened);
      all_[index] = opened->get();
    });
    ASSERT_TRUE(sim.run_until([&] { return all_[index] != nullptr; }, 1s));
  }
  template <class T, class F>
  static Result<T> await(Simulation& sim, F start) {
    std::optional<Result<T>> answer;
    start([&](Result<T> result) { answer = std::move(result); });
    sim.run_until([&] { return answer.has_value(); }, 2s);
    return answer ? std::move(*answer) : fail(ErrorCode::kDeadline, "no answer");
  }
  Result<std::uint64_t> try_acquire(Simulation& sim, int index, const std::string& key = kKey) {
    return await<std::uint64_t>(sim, [&](auto done) { all_[index]->acquire(key, std::move(done)); });
  }
  std::uint64_t acquire(Simulation& sim, int index, const std::string& key = kKey) {
    auto revision = try_acquire(sim, index, key);
    EXPECT_TRUE(revision) << to_string(revision.error());
    return revision.value_or(0);
  }
  Result<std::uint64_t> update(Simulation& sim, int index, std::uint64_t revision, LeaderStatus status) {
    return await<std::uint64_t>(sim, [&](auto done) { all_[index]->update(kKey, revision, status, std::move(done)); });
  }
  std::optional<ErrorCode> release(Simulation& sim, int index, std::uint64_t revision) {
    return code_of(await<void>(sim, [&](auto done) { all_[index]->release(kKey, revision, std::move(done)); }));
  }
  std::optional<LeadershipView> look(Simulation& sim, int index) {
    return await<std::optional<LeadershipView>>(sim, [&](auto done) { all_[index]->look(kKey, std::move(done)); })
        .value();
  }
  template <class T>
  static std::optional<ErrorCode> code_of(const Result<T>& result) {
    return result ? std::nullopt : std::optional(result.error().code);
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

// DVU-1, DVU-4, DVU-7, DVU-U3, DVU-U6: a key has one owner, and only the last revision writes it. DVU-17, DVU-B8: what
// others see of it.
TEST_F(StoreLeadershipTest, AKeyHasOneOwnerWhoWritesItByItsLastRevision) {
  Simulation sim({.nodes = 2});
  sim.run_for(1ms);
  for (int index : {0, 1}) open(sim, index);
  std::uint64_t first = acquire(sim, 0);
  EXPECT_EQ(code_of(try_acquire(sim, 1)), ErrorCode::kConflict);
  acquire(sim, 1, "ws.other");
  auto seen = look(sim, 1);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->owner, all_[0]->instance_id());
  EXPECT_EQ(seen->revision, first);
  EXPECT_EQ(seen->status, LeaderStatus::kWaiting);
  EXPECT_EQ(code_of(update(sim, 1, first, LeaderStatus::kRunning)), ErrorCode::kStaleToken);
  auto second = update(sim, 0, first, LeaderStatus::kRunning);
  ASSERT_TRUE(second);
  EXPECT_GT(*second, first);
  EXPECT_EQ(code_of(update(sim, 0, first, LeaderStatus::kWaiting)), ErrorCode::kStaleToken);
  EXPECT_EQ(release(sim, 0, first), ErrorCode::kStaleToken);
  sim.run_for(3s);
  seen = look(sim, 1);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->revision, *second);
  EXPECT_EQ(seen->status, LeaderStatus::kRunning);
  // By the clock of who looks, which may be behind that of the owner.
  EXPECT_GE(seen->age, 0s);
  EXPECT_GE(look(sim, 0)->age, 3s);
  EXPECT_LT(look(sim, 0)->age, 5s);
  EXPECT_EQ(release(sim, 0, *second), std::nullopt);
  EXPECT_FALSE(look(sim, 1));
  EXPECT_GT(acquire(sim, 1), *second);
}

// DVU-U2: who is given no name has one of its own.
TEST_F(StoreLeadershipTest, InstancesHaveTheirOwnNamesOrThoseThatTheyAreGiven) {
  Simulation sim({.nodes = 3});
  sim.run_for(1ms);
  open(sim, 0);
  open(sim, 1);
  open(sim, 2, {.instance_id = "ada"});
  EXPECT_NE(all_[0]->instance_id(), all_[1]->instance_id());
  EXPECT_FALSE(all_[0]->instance_id().empty());
  EXPECT_EQ(all_[2]->instance_id(), "ada");
}

// DVU-2: a key whose owner does not renew it for the max_age is gone, and not before. DVU-U1: that is 5 s by default.
TEST_F(StoreLeadershipTest, AKeyAgesOutWithTheTtlOfItsSession) {
  EXPECT_EQ(StoreLeadershipOptions().session.ttl, 5s);
  Simulation sim({.nodes = 2, .store = StoreKind::kRemote});
  sim.run_for(1ms);
  for (int index : {0, 1}) open(sim, index, {.session = {.ttl = 20s, .renew = 5s}});
  EXPECT_EQ(all_[0]->max_age(), 20s);
  acquire(sim, 0);
  bool gone = false;
  all_[1]->watch(kKey, [&](const LeadershipEvent& event) { gone |= event.what == LeadershipEvent::What::kGone; });
  sim.run_for(1min);
  sim.crash(0, testing::Crash::kAtOnce, 1h);
  EXPECT_FALSE(sim.run_until([&] { return gone; }, 14s));
  EXPECT_TRUE(sim.run_until([&] { return gone; }, 7s));
}

// WORK-B8, DVU-3: whether a key has aged out is for the steady clock to say.
TEST_F(StoreLeadershipTest, WallClocksThatJumpTakeNoKeyAwayNorKeepIt) {
  for (Duration jump : {Duration(1h), Duration(-1h)}) {
    Simulation sim({.nodes = 2, .store = StoreKind::kRemote});
    all_.clear();
    sim.run_for(1ms);
    for (int index : {0, 1}) open(sim, index);
    acquire(sim, 0);
    bool gone = false;
    all_[1]->watch(kKey, [&](const LeadershipEvent& event) { gone |= event.what == LeadershipEvent::What::kGone; });
    sim.run_for(10s);
    sim.jump_wall_clock(1, jump);
    sim.run_for(10s);
    EXPECT_FALSE(gone);
    sim.crash(0, testing::Crash::kAtOnce, 1h);
    sim.jump_wall_clock(1, -jump);
    EXPECT_TRUE(sim.run_until([&] { return gone; }, kTtl + 300ms));
  }
}

// DVU-B2: who cannot reach the store is told before others can have its key.
TEST_F(StoreLeadershipTest, WhoIsCutOffIsToldThatItsKeyIsLost) {
  Simulation sim({.nodes = 2, .store = StoreKind::kRemote});
  sim.run_for(1ms);
  for (int index : {0, 1}) open(sim, index);
  acquire(sim, 0);
  bool lost = false, gone = false;
  all_[0]->watch(kKey, [&](const LeadershipEvent& event) { lost |= event.what == LeadershipEvent::What::kLost; });
  all_[1]->watch(kKey, [&](const LeadershipEvent& event) { gone |= event.what == LeadershipEvent::What::kGone; });
  sim.run_for(10s);
  EXPECT_FALSE(lost);
  sim.cut_off(0, 1min);
  EXPECT_TRUE(sim.run_until([&] { return lost; }, kTtl));
  EXPECT_FALSE(gone);
}

// DVU-B3: whoever watches a key follows its owner: otherwise renewals are seen only at one's own, and a death that much
// later. That another key of the same owner is watched no more changes nothing.
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
    acquire(sim, 0, "ws.other");
    all_[1]->watch("ws.other", [](const LeadershipEvent&) {});
    sim.run_for(1s);
    all_[1]->unwatch("ws.other");
    sim.run_for(10s + Duration(sim.random() % static_cast<std::uint64_t>(kRenew.count())));
    EXPECT_FALSE(gone);
    sim.crash(0, testing::Crash::kAtOnce, 1h);
    EXPECT_TRUE(sim.run_until([&] { return gone; }, kTtl + 300ms)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace perdure
