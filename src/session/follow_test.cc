// How soon a death is noticed by those who wait for what the dead held: a TTL after its last renewal, wherever between
// their own renewals those who wait are. Nobody tells them: the store is across a network.
#include <gtest/gtest.h>

#include "perdure/session.h"
#include "perdure/testing.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;
using testing::StoreKind;

// The defaults; see open().
constexpr Duration kTtl = 5s;
constexpr Duration kRenew = 1250ms;
/// What is promised, see RELIABILITY: a free lease has a holder within TTL + 1 s.
constexpr Duration kPromised = kTtl + 1s;
constexpr int kHolder = 0, kWaiter = 1;

enum class End { kCrash, kPause };

/// Two nodes, the second of which waits for what the first holds.
class Followed {
 public:
  explicit Followed(std::uint64_t seed) : sim_({.seed = seed, .nodes = 2, .store = StoreKind::kRemote}) {
    sim_.on_start([this](Node& node) { nodes_[node.index()] = &node; });
    sim_.run_for(1ms);
  }

  void open(int index) {
    Session::open_async(nodes_[index]->store(), {.ttl = kTtl, .renew = kRenew}, [this, index](Result<Session> opened) {
      sessions_[index] = std::make_shared<Session>(std::move(opened.value()));
      nodes_[index]->keep(sessions_[index]);
    });
    ASSERT_TRUE(sim_.run_until([&] { return sessions_[index] != nullptr; }, 1s));
  }
  void acquire(int index) {
    sessions_[index]->acquire_async("leader", 1h, [this, index](Result<Lease> lease) {
      ASSERT_TRUE(lease) << to_string(lease.error());
      leases_[index] = *lease;
    });
  }
  void run_for(Duration time) { sim_.run_for(time); }
  bool acquired(int index, Duration at_most) {
    return sim_.run_until([&] { return leases_[index].has_value(); }, at_most);
  }
  /// Until the next renewal of that node is in the store.
  void run_until_renewed(int index) {
    std::int64_t before = beat(index);
    ASSERT_TRUE(sim_.run_until([&] { return beat(index) != before; }, 2 * kRenew));
  }
  void end_holder(End how) {
    if (how == End::kCrash)
      sim_.crash(kHolder, testing::Crash::kAtOnce, 1h);
    else
      sim_.pause(kHolder, 1h);
  }
  Duration now() { return sim_.elapsed(); }

 private:
  std::int64_t beat(int index) {
    auto read = sim_.read([id = sessions_[index]->id()](Reader& reader) {
      SystemAccess access(reader);
      return decode_counter(reader.get(session::beat_key(id)));
    });
    return read.value();
  }

  Simulation sim_;
  Node* nodes_[2] = {};
  std::shared_ptr<Session> sessions_[2];
  std::optional<Lease> leases_[2];
};

/// The renewals of the waiter come `phase` after those of the holder.
void open_both(Followed& world, Duration phase) {
  world.open(kHolder);
  world.acquire(kHolder);
  world.run_until_renewed(kHolder);
  world.run_for(phase);
  world.open(kWaiter);
}

class FollowTest : public ::testing::TestWithParam<End> {};

TEST_P(FollowTest, WhoHasWaitedForLongGetsItInTime) {
  for (int step = 0; step < 10; ++step) {
    Followed world(static_cast<std::uint64_t>(step + 1));
    open_both(world, kRenew * step / 10);
    world.acquire(kWaiter);
    world.run_for(3 * kRenew);
    world.run_until_renewed(kHolder);
    world.end_holder(GetParam());
    Duration died = world.now();
    EXPECT_TRUE(world.acquired(kWaiter, kPromised)) << "at step " << step;
    EXPECT_GE(world.now() - died, kTtl - kTtl / 10) << "before the holder has stopped believing";
  }
}

TEST_P(FollowTest, WhoHasJustBegunToWaitGetsItInTime) {
  for (int step = 1; step < 10; ++step) {
    Followed world(static_cast<std::uint64_t>(step));
    open_both(world, kRenew * step / 10);
    world.run_for(2 * kRenew);
    // The last that it sees of the holder by itself is the renewal before the last.
    world.run_until_renewed(kWaiter);
    world.run_for(20ms);
    world.acquire(kWaiter);
    world.run_until_renewed(kHolder);
    world.end_holder(GetParam());
    EXPECT_TRUE(world.acquired(kWaiter, kPromised)) << "at step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, FollowTest, ::testing::Values(End::kCrash, End::kPause),
                         [](const auto& end) { return end.param == End::kCrash ? "Crash" : "Pause"; });

}  // namespace
}  // namespace perdure
