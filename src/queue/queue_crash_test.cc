// Crashes in the middle of everything: whatever dies, an event is there or not, is run, and has its effect once.
#include "queue/inspect.h"
#include "queue/queue_sim_fixture.h"

namespace perdure::queue {
namespace {

using testing::Faults;
using testing::for_each_seed;
using testing::StoreKind;

// DARK-B1
TEST(QueueCrash, DARK_B1_AnEventIsThereAsAWholeOrNotAtAll) {
  for (StoreKind kind : {StoreKind::kEmbedded, StoreKind::kRemote})
    for (Crash when : {Crash::kBeforeApply, Crash::kAfterApply}) {
      Simulation sim({.store = kind});
      Uuid id;
      id.bytes[0] = 1;
      int answers = 0;
      sim.on_start([&](Node& node) {
        Queue::open_async(node.store(), {}, [&](Result<Queue> opened) {
          auto queue = std::make_shared<Queue>(std::move(*opened));
          node.keep(queue);
          // Emitted again in the second life, for nobody knows what became of the first.
          if (node.life() == 1) sim.crash(0, when, 1s);
          queue->emit_async("mail", std::string(250'000, 'x'), {.id = id}, [&](Result<Emitted> emitted) {
            EXPECT_TRUE(emitted);
            EXPECT_EQ(emitted->duplicate, when == Crash::kAfterApply);
            ++answers;
          });
        });
      });
      sim.run_for(10s);
      EXPECT_EQ(answers, 1) << "that of the second life";
      auto wrong = sim.read([](Reader& reader) { return RowCheck::run(reader); });
      EXPECT_EQ(wrong.value(), std::vector<std::string>());
      auto there = sim.read([&](Reader& reader) {
        SystemAccess access(reader);
        return reader.get_range(tuple::extensions(event_key("default", id))).size();
      });
      EXPECT_EQ(there.value(), 3U);
    }
}

/// Two nodes that serve a worker, whose handlers each add one; node 0 emits, and again until it is told.
class Crashing {
 public:
  Crashing(Simulation& sim, int events) : sim_(sim), events_(events) {}

  void run() {
    sim_.on_start([this](Node& node) { open(node); });
    sim_.run_until([this] { return emitted_ == events_; }, 2min);
    sim_.heal();
    bool done = sim_.run_until([this] { return emitted_ == events_ && completed() == events_; }, 30min);
    sim_.expect(done, std::to_string(emitted_) + " emitted, " + std::to_string(completed()) + " completed" + rest());
    auto sum = sim_.read([](Reader& reader) { return decode_counter(reader.get("sum")); });
    sim_.expect(sum && *sum == events_, "each has its effect once");
    auto wrong = sim_.read([](Reader& reader) { return RowCheck::run(reader); });
    sim_.expect(wrong && wrong->empty(), wrong && !wrong->empty() ? wrong->front() : "rows belong together");
  }

 private:
  void open(Node& node) {
    Queue::open_async(node.store(), {}, [this, &node](Result<Queue> opened) {
      if (!opened) return node.after(100ms, [this, &node] { open(node); });
      auto queue = std::make_shared<Queue>(std::move(*opened));
      node.keep(queue);
      EXPECT_TRUE(queue->work("add", [this, &node](Job& job) { return handle(node, job); },
                              {.retry = RetryPolicy{.delay = 50ms, .max = 1'000}}));
      if (node.index() == 0) emit(queue);
    });
  }
  Result<void> handle(Node& node, Job& job) {
    if (node.random() % 8 == 0) sim_.crash(node.index());
    if (node.random() % 4 == 0) return fail(ErrorCode::kUnavailable, "by chance");
    job.complete([](Transaction& txn) -> Result<void> {
      txn.add("sum", 1);
      return {};
    });
    return {};
  }
  void emit(const std::weak_ptr<Queue>& weak) {
    auto queue = weak.lock();
    if (!queue || emitted_ == events_) return;
    Uuid id;
    id.bytes[15] = static_cast<std::uint8_t>(emitted_ + 1);
    queue->emit_async("add", 1, {.id = id}, [this, weak](Result<Emitted> done) {
      if (done) ++emitted_;
      emit(weak);
    });
  }
  std::int64_t completed() {
    auto counter = sim_.read([](Reader& reader) {
      SystemAccess access(reader);
      return decode_counter(reader.get(counter_key(worker_prefix("default", "add"), Counter::kCompleted)));
    });
    return counter.value_or(-1);
  }

  /// What has become of the others.
  std::string rest() {
    auto info = sim_.read([](Reader& reader) { return worker_info(reader, "default", "add", WallTime()); });
    if (!info) return {};
    return ", " + std::to_string(info->ready) + " ready, " + std::to_string(info->scheduled) + " scheduled, " +
           std::to_string(info->running) + " running, " + std::to_string(info->dead) + " dead, " +
           std::to_string(info->lost) + " losses";
  }

  Simulation& sim_;
  const int events_;
  int emitted_ = 0;
};

// DARK-6
TEST(QueueCrash, DARK_6_WhateverDiesEachEventIsRunAndHasItsEffectOnce) {
  auto report = for_each_seed({.count = 25}, {.nodes = 2}, [](Simulation& sim) { Crashing(sim, 20).run(); });
  EXPECT_TRUE(report.ok()) << report.to_string();
}

TEST(QueueCrash, TheSameWithFaultsOfTheStoreAndTheClocks) {
  auto report = for_each_seed({.first = 1'000, .count = 15}, {.nodes = 2, .faults = Faults::kMany},
                              [](Simulation& sim) { Crashing(sim, 20).run(); });
  EXPECT_TRUE(report.ok()) << report.to_string();
}

class QueueUnknown : public QueueSimFixture {
 protected:
  QueueUnknown() : QueueSimFixture(testing::SimulationOptions{.store = StoreKind::kRemote}) {}
};

TEST_F(QueueUnknown, AClaimWhoseAnswerIsLostIsLookedForAndRun) {
  options_.session = {.ttl = 2min, .renew = 30s};
  int runs = 0;
  serve([&](Queue& queue, Node&) { ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; })); });
  Uuid id = emit("mail");
  ASSERT_TRUE(sim_.run_until([&] { return info("mail").running == 1; }, 10s));
  sim_.cut_off(0, 10s);
  EXPECT_EQ(runs, 0) << "it is claimed, and nobody has been told";
  sim_.run_for(40s);
  EXPECT_EQ(runs, 1);
  ASSERT_TRUE(history(id));
  EXPECT_EQ(history(id)->attempts, 1) << "nobody else can have had it";
}

}  // namespace
}  // namespace perdure::queue
