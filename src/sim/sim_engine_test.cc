#include "sim/sim_engine.h"

#include <gtest/gtest.h>

#include <set>

#include "perdure/store.h"
#include "store/store_access.h"

namespace perdure::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two nodes on one store, whose faults the test begins and ends.
class SimEngineTest : public testing::Test {
 protected:
  struct Node {
    Node(SimEngineTest& test, int index, const std::string& name)
        : scheduler(test.timeline_, name, test.seed_),
          engine(new SimEngine(*test.store_, scheduler, index, test.seed_, [this] { crashed = true; })),
          store(Store::on_engine(std::unique_ptr<Engine>(engine), scheduler, {.when_failed = WhenFailed::kRefuseCalls})
                    .value()) {}
    ~Node() {
      engine->sever();
      StoreImpl& impl = StoreAccess::impl(store);
      EXPECT_TRUE(scheduler.drain([&] { return impl.calls_inside() == 0 && !engine->busy(); }, 100'000));
      store.close();
    }

    NodeScheduler scheduler;
    SimEngine* engine;
    Store store;
    bool crashed = false;
  };

  void open(StoreTraits traits, std::uint64_t seed = 1) {
    close();
    seed_ = seed;
    store_ = std::make_unique<SimStore>(world_, traits, faults_, timeline_.trace(), seed);
    a_ = std::make_unique<Node>(*this, 0, "a");
    b_ = std::make_unique<Node>(*this, 1, "b");
  }
  void close() {
    a_.reset();
    b_.reset();
    world_.drop_everything();
    store_.reset();
    answers_.clear();
  }
  ~SimEngineTest() override { close(); }

  FaultEvent begin(FaultClass kind, std::int64_t degree, int node = kEveryNode) {
    FaultEvent event{kind, node, {}, {}, degree};
    faults_.begin(event);
    return event;
  }
  void run_for(Duration duration) {
    SteadyTime end = timeline_.now() + duration;
    while (timeline_.step(end)) continue;
  }
  void add(Node& node, TransactOptions options = {}) {
    node.store.transact_async([](Transaction& txn) { txn.add("n", 1); },
                              [this](Result<void> done) { answers_.push_back(std::move(done)); }, options);
  }
  std::int64_t count() {
    auto row = store_->rows()->snapshot()->get("n").value();
    return row ? decode_counter(row->value) : 0;
  }
  /// A watch of b on what a writes.
  struct Watched {
    Watch watch;
    bool fired = false;
  };
  std::shared_ptr<Watched> watch_from_b() {
    auto watched = std::make_shared<Watched>();
    b_->store.transact_async([](Transaction& txn) { return txn.watch("n"); },
                             [watched](Result<Watch> made) {
                               watched->watch = made.value();
                               watched->watch.then([watched] { watched->fired = true; });
                             });
    run_for(seconds(1));
    return watched;
  }

  /// To `add`, since the store was opened.
  std::vector<Result<void>> answers_;
  std::uint64_t seed_ = 1;
  Timeline timeline_{1};
  ActiveFaults faults_{1};
  NodeScheduler world_{timeline_, "world", 1};
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<Node> a_, b_;
};

TEST_F(SimEngineTest, NodesShareOneStoreAndRace) {
  for (bool remote : {false, true}) {
    open({.remote = remote});
    for (int i = 0; i < 20; ++i) {
      add(*a_);
      add(*b_);
      run_for(milliseconds(2));
    }
    run_for(seconds(1));
    EXPECT_EQ(answers_.size(), 40u);
    for (const auto& answer : answers_) EXPECT_TRUE(answer);
    EXPECT_EQ(count(), 40);
  }
}

TEST_F(SimEngineTest, UnknownCommitsAreResolvedToOneOutcome) {
  for (FaultClass kind : {FaultClass::kUnknownApplied, FaultClass::kUnknownLost, FaultClass::kUnknownLate})
    for (bool remote : {false, true}) {
      open({.remote = remote});
      FaultEvent fault = begin(kind, 500);
      for (int i = 0; i < 30; ++i) {
        add(*a_);
        run_for(milliseconds(10));
      }
      faults_.end(fault);
      run_for(seconds(5));
      EXPECT_EQ(answers_.size(), 30u);
      for (const auto& answer : answers_) EXPECT_TRUE(answer) << to_string(answer.error());
      EXPECT_EQ(count(), 30) << info(kind).name;
      EXPECT_GT(faults_.counts()[static_cast<std::size_t>(kind)], 5u);
    }
}

TEST_F(SimEngineTest, NothingOfASeveredNodeReachesTheStore) {
  for (bool unknown_commits : {false, true}) {
    open({.unknown_commits = unknown_commits});
    add(*a_);
    a_->engine->sever();
    run_for(seconds(1));
    add(*a_);
    run_for(seconds(1));
    ASSERT_EQ(answers_.size(), 2u);
    EXPECT_FALSE(answers_[0]);
    EXPECT_EQ(answers_[1].error().code, ErrorCode::kStoreFailed);
    EXPECT_EQ(count(), 0);
    add(*b_);
    run_for(seconds(1));
    EXPECT_TRUE(answers_[2]);
  }
}

TEST_F(SimEngineTest, ANodeMayDieOnEitherSideOfItsCommit) {
  for (auto moment : {FaultEvent::Moment::kBeforeApply, FaultEvent::Moment::kBeforeAnswer})
    for (bool remote : {false, true}) {
      open({.remote = remote});
      a_->engine->arm(moment);
      add(*a_);
      run_for(seconds(1));
      EXPECT_TRUE(a_->crashed);
      ASSERT_EQ(answers_.size(), 1u);
      bool applied = moment == FaultEvent::Moment::kBeforeAnswer;
      EXPECT_EQ(answers_[0].error().outcome(), applied ? Outcome::kUnknown : Outcome::kNone);
      EXPECT_EQ(count(), applied ? 1 : 0);
    }
}

TEST_F(SimEngineTest, AStoreOutOfReachAnswersSoonAndHeals) {
  open({});
  FaultEvent fault = begin(FaultClass::kUnavailable, 0, 0);
  add(*a_);
  add(*b_);
  run_for(milliseconds(100));
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_[0].has_value() + answers_[1].has_value(), 1) << "b reaches it";
  faults_.end(fault);
  add(*a_);
  run_for(milliseconds(100));
  EXPECT_TRUE(answers_[2]);
}

TEST_F(SimEngineTest, AFullDiskLeavesTheReserveOrNothing) {
  open({});
  FaultEvent nearly = begin(FaultClass::kFullDisk, 0);
  add(*a_);
  run_for(seconds(1));
  add(*a_, {.reserve = Reserve::kMayUse});
  run_for(seconds(1));
  faults_.end(nearly);
  FaultEvent wholly = begin(FaultClass::kFullDisk, 1);
  add(*a_, {.reserve = Reserve::kMayUse});
  run_for(seconds(1));
  faults_.end(wholly);
  add(*a_);
  run_for(seconds(1));
  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_EQ(answers_[0].error().code, ErrorCode::kStoreFull);
  EXPECT_TRUE(answers_[1]);
  EXPECT_EQ(answers_[2].error().code, ErrorCode::kStoreFull);
  EXPECT_TRUE(answers_[3]);
}

TEST_F(SimEngineTest, RetiredSnapshotsAndCommitsStartedOverChangeNoOutcome) {
  open({});
  begin(FaultClass::kRetired, 300);
  begin(FaultClass::kConflict, 700);
  int committed = 0;
  for (int i = 0; i < 30; ++i) {
    a_->store.transact_async([](Transaction& txn) { txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1)); },
                             [&committed](Result<void> done) { committed += done ? 1 : 0; });
    run_for(milliseconds(20));
  }
  run_for(seconds(1));
  EXPECT_EQ(committed, 30);
  EXPECT_EQ(count(), 30);
  EXPECT_GT(faults_.counts()[static_cast<std::size_t>(FaultClass::kRetired)], 5u);
  EXPECT_GT(faults_.counts()[static_cast<std::size_t>(FaultClass::kConflict)], 5u);
}

TEST_F(SimEngineTest, ABellWakesAndALostOneShowsWhenTheNodeCatchesUp) {
  open({});
  auto fired = watch_from_b();
  add(*a_);
  run_for(seconds(1));
  EXPECT_TRUE(fired->fired);

  begin(FaultClass::kLostBell, 1000);
  auto caught_up = watch_from_b();
  add(*a_);
  run_for(seconds(10));
  EXPECT_FALSE(caught_up->fired);
  b_->engine->catch_up(store_->rows()->last_version());
  run_for(seconds(1));
  EXPECT_TRUE(caught_up->fired);
}

TEST_F(SimEngineTest, ALateBellComes) {
  open({});
  begin(FaultClass::kLateBell, 3000);
  auto fired = watch_from_b();
  add(*a_);
  run_for(seconds(4));
  EXPECT_TRUE(fired->fired);
}

TEST_F(SimEngineTest, DeathsAreKnownAtOnceOrNotAtAll) {
  open({.knows_deaths = true});
  Bytes presence = a_->engine->presence();
  EXPECT_FALSE(presence.empty());
  EXPECT_FALSE(b_->engine->is_gone(presence));
  auto fired = watch_from_b();
  a_->engine->sever();
  EXPECT_TRUE(b_->engine->is_gone(presence));
  run_for(seconds(1));
  EXPECT_TRUE(fired->fired) << "a death rings";

  open({.knows_deaths = false});
  EXPECT_TRUE(a_->engine->presence().empty());
  EXPECT_FALSE(b_->engine->is_gone(presence));
}

TEST_F(SimEngineTest, APowerCutTakesOnlyTheLastCommitsThatNobodyWasToldOf) {
  std::set<std::int64_t> lost;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    open({.sync_max = milliseconds(20)}, seed);
    std::int64_t asked = 0;
    for (; asked < 20; ++asked) {
      add(asked % 2 == 0 ? *a_ : *b_);
      run_for(milliseconds(3));
    }
    auto told = static_cast<std::int64_t>(answers_.size());
    std::int64_t visible = count();
    a_->engine->sever();
    b_->engine->sever();
    store_->power_cut();
    EXPECT_GE(count(), told);
    EXPECT_LE(count(), visible);
    lost.insert(visible - count());
  }
  EXPECT_GT(lost.size(), 1u) << "nothing was ever lost";
}

}  // namespace
}  // namespace perdure::sim
