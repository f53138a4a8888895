// The tick debouncer over the leadership of the store, on simulated nodes: crashes, pauses, and faults by seed.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "debounce/tick_impl.h"
#include "perdure/testing.h"

namespace perdure::debounce {
namespace {

using namespace std::chrono_literals;
using testing::Faults;
using testing::Node;
using testing::Simulation;
using testing::StoreKind;

constexpr const char* kKey = "ws.cs";

/// Handlers whose runs take virtual time. A run takes all that is pending over to "done", and notes its token.
class SimWork : public TickWork {
 public:
  SimWork(Simulation& sim, Node& node, Duration takes) : sim_(sim), node_(node), takes_(takes) {}
  void pending(const std::string&, std::move_only_function<void(Result<Pending>)> done) override {
    auto left = sim_.read([](Reader& reader) { return decode_counter(reader.get("pending")); });
    done(*left > 0 ? Pending::kWork : Pending::kNothing);
  }
  void run(std::shared_ptr<TickRunState> run, std::move_only_function<void(Result<void>)> done) override {
    run->bodies.push_back([token = run->token](Transaction& txn) -> Result<void> {
      txn.add("done", decode_counter(txn.get("pending")));
      txn.clear("pending");
      txn.set("tokens", txn.get("tokens").value_or("") + token.to_string() + "\n");
      return {};
    });
    node_.after(takes_, [done = std::move(done)]() mutable { done({}); });
  }
  void ended(TickEnd end) override { node_.note("ended " + (end.result ? "ok" : to_string(end.result.error()))); }
  void close(Task idle) override { idle(); }
  void leave_behind() override {}
  void join() override {}

 private:
  Simulation& sim_;
  Node& node_;
  const Duration takes_;
};

/// Nodes that all follow one key.
class Followers {
 public:
  Followers(Simulation& sim, Duration run_takes) : sim_(sim), run_takes_(run_takes) {
    sim.on_start([this](Node& node) { start(node); });
  }
  TickState state(int node) {
    auto tick = ticks_[node].lock();
    if (!tick || !sim_.node(node)) return TickState::kStopped;
    auto info = tick->info(kKey);
    return info ? info->state : TickState::kStopped;
  }
  std::vector<int> leaders() {
    std::vector<int> all;
    for (int node = 0; node < sim_.options().nodes; ++node)
      if (leads(state(node))) all.push_back(node);
    return all;
  }
  /// Waits for one, and answers which.
  int leader(Duration at_most = 30s) {
    EXPECT_TRUE(sim_.run_until([&] { return !leaders().empty(); }, at_most));
    return leaders().empty() ? -1 : leaders().front();
  }
  void touch() {
    for (int node = 0; node < sim_.options().nodes; ++node)
      if (Node* alive = sim_.node(node)) {
        ++touched_;
        return alive->store().transact_async([](Transaction& txn) { txn.add("pending", 1); },
                                             [this](Result<void> added) {
                                               if (added) ++acknowledged_;
                                             });
      }
  }
  std::int64_t count(const char* row) {
    return sim_.read([&](Reader& reader) { return decode_counter(reader.get(row)); }).value();
  }
  std::vector<std::string> tokens() {
    std::string text = sim_.read([](Reader& reader) { return reader.get("tokens").value_or(""); }).value();
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      all.push_back(text.substr(at, text.find('\n', at) - at));
    return all;
  }
  /// Of the key as that node sees it; each owner writes another.
  std::uint64_t revision(int node) {
    std::optional<Result<TickInfo>> info;
    ticks_[node].lock()->inspect_async(kKey, [&](Result<TickInfo> seen) { info = std::move(seen); });
    EXPECT_TRUE(sim_.run_until([&] { return info.has_value(); }, 1s));
    return info && *info && (*info)->leader ? (*info)->leader->revision : 0;
  }
  std::int64_t touched() const { return touched_; }
  std::int64_t acknowledged() const { return acknowledged_; }

 private:
  void start(Node& node) {
    store_leadership_async(node.store(), {.instance_id = node.name()},
                           [this, &node](Result<std::shared_ptr<Leadership>> opened) {
                             // The store may be out of reach just then.
                             if (!opened) return node.after(500ms, [this, &node] { start(node); });
                             follow(node, *opened);
                           });
  }
  void follow(Node& node, const std::shared_ptr<Leadership>& leadership) {
    auto tick = TickImpl::open(node.store(), leadership, {.window = 1s},
                               [&](Scheduler&) { return std::make_unique<SimWork>(sim_, node, run_takes_); });
    ASSERT_TRUE(tick);
    auto kept = std::make_shared<Tick>(std::move(*tick));
    ticks_[node.index()] = kept;
    node.keep(kept);
    ASSERT_TRUE(kept->follow(kKey));
  }

  Simulation& sim_;
  const Duration run_takes_;
  std::map<int, std::weak_ptr<Tick>> ticks_;
  std::int64_t touched_ = 0, acknowledged_ = 0;
};

// DVU-4, DVU-7, DVU-20: one leader of all.
TEST(TickStore, ThreeNodesHaveOneLeader) {
  Simulation sim({.nodes = 3, .store = StoreKind::kEmbedded});
  Followers followers(sim, 2s);
  followers.leader();
  for (int i = 0; i < 200; ++i) {
    sim.run_for(100ms);
    EXPECT_LE(followers.leaders().size(), 1u);
    if (i % 30 == 0) followers.touch();
  }
  sim.run_for(10s);
  EXPECT_EQ(followers.count("done"), followers.touched());
  EXPECT_EQ(followers.count("pending"), 0) << "DVU-U14";
}

// DVU-6, DVU-B3, D5: the death of the leader is known at once on an embedded store, and within the TTL and a second
// else.
TEST(TickStore, ADeadLeaderIsReplacedInTime) {
  for (StoreKind kind : {StoreKind::kEmbedded, StoreKind::kRemote}) {
    // With one observer alone, whose own renewals come at any time.
    Simulation sim({.nodes = 2, .store = kind});
    Followers followers(sim, 2s);
    for (int i = 0; i < 20; ++i) {
      int before = followers.leader();
      sim.run_for(300ms + Duration(sim.random() % 1'250'000'000));
      sim.crash(before, testing::Crash::kAtOnce, 20s);
      Duration died = sim.elapsed();
      followers.leader();
      Duration bound = kind == StoreKind::kEmbedded ? Duration(200ms) : Duration(5200ms);
      EXPECT_LE(sim.elapsed() - died, bound);
      sim.heal();
      sim.run_for(3s);
    }
  }
}

// DVU-B1, DVU-B2: a leader that is paused in a run for longer than its TTL is replaced, and its result is refused.
TEST(TickStore, ALeaderThatIsPausedInARunHasItsResultRefused) {
  Simulation sim({.nodes = 2, .store = StoreKind::kRemote, .keep_trace = true});
  Followers followers(sim, 3s);
  int first = followers.leader();
  followers.touch();
  ASSERT_TRUE(sim.run_until([&] { return followers.state(first) == TickState::kRunning; }, 5s));
  sim.pause(first, 12s);
  ASSERT_TRUE(sim.run_until([&] { return followers.state(1 - first) == TickState::kRunning; }, 12s));
  sim.run_for(30s);
  EXPECT_EQ(followers.count("done"), 1);
  EXPECT_EQ(followers.tokens().size(), 1u) << "one of the two runs has had an effect";
}

// DVU-3: in normal running nobody ever takes a key from another.
TEST(TickStore, AKeyIsHeldForHoursWithoutALoss) {
  Simulation sim({.nodes = 2});
  Followers followers(sim, 1s);
  int first = followers.leader();
  std::uint64_t revision = followers.revision(first);
  sim.run_for(1h);
  EXPECT_NE(revision, 0u);
  EXPECT_EQ(followers.revision(first), revision) << "nor loses it for a moment";
  EXPECT_EQ(followers.leaders(), std::vector<int>{first});
  EXPECT_EQ(
      followers.state(first) == TickState::kLeaderWaiting || followers.state(first) == TickState::kCheckingPending,
      true);
}

// D1 to D3, D5, DVU-19, DVU-B7: whatever happens, each touch is done once, tokens grow, and it drains in the end.
TEST(TickStore, EveryTouchIsDoneOnceUnderFaults) {
  auto report = testing::for_each_seed({.count = 60}, {.nodes = 3, .faults = Faults::kMany}, [](Simulation& sim) {
    Followers followers(sim, 500ms);
    for (int i = 0; i < 30; ++i) {
      sim.run_for(Duration(1s) + Duration(sim.random() % 1'000'000'000));
      followers.touch();
    }
    sim.heal();
    sim.run_until([&] { return followers.count("pending") == 0 && sim.elapsed() > Duration(90s); }, 120s);
    sim.run_for(10s);
    sim.expect(followers.count("pending") == 0, "nothing is pending in the end");
    sim.expect(followers.count("done") >= followers.acknowledged(), "every acknowledged touch is done");
    sim.expect(followers.count("done") <= followers.touched(), "none is done twice");
    auto tokens = followers.tokens();
    sim.expect(!tokens.empty(), "something was run");
    for (std::size_t i = 1; i < tokens.size(); ++i) sim.expect(tokens[i - 1] < tokens[i], "tokens only grow");
  });
  EXPECT_TRUE(report.ok()) << report.to_string();
}

}  // namespace
}  // namespace perdure::debounce
