// What the tests of debouncers on virtual time have in common: nodes with a queue and debouncers, and touches that are
// answered while time passes. Runs are taken by hand, so that a test says how long they last.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "debounce/debounce_test_check.h"
#include "perdure/debounce.h"
#include "queue/queue_sim_fixture.h"

namespace perdure::debounce {

using namespace std::chrono_literals;
using testing::Crash;
using testing::Node;

class DebounceSimFixture : public queue::QueueSimFixture {
 protected:
  explicit DebounceSimFixture(int nodes = 1) : DebounceSimFixture(testing::SimulationOptions{.nodes = nodes}) {}
  explicit DebounceSimFixture(testing::SimulationOptions options) : QueueSimFixture(options) {
    serve([this](Queue& queue, Node& node) {
      auto opened = Debouncers::open(node.store());
      ASSERT_TRUE(opened);
      auto kept = std::make_shared<Debouncers>(std::move(*opened));
      debouncers_[node.index()] = kept;
      node.keep(kept);
      if (on_node_) on_node_(queue, *kept, node);
    });
  }
  void TearDown() override {
    auto wrong = sim_.read([](Reader& reader) { return RowCheck::run(reader); });
    ASSERT_TRUE(wrong);
    EXPECT_EQ(*wrong, std::vector<std::string>()) << "what must hold between rows";
    QueueSimFixture::TearDown();
  }

  void on_node(std::function<void(Queue&, Debouncers&, Node&)> begin) { on_node_ = std::move(begin); }
  Debouncers& on(int node = 0) {
    queue(node);
    return *debouncers_[node].lock();
  }
  Result<void> set(std::string_view name, const DebounceSettings& settings, int node = 0) {
    return transact([&, &home = on(node)](Transaction& txn) { home.set(txn, name, settings); }, node);
  }
  Result<Window> try_touch(std::string_view name, std::string_view key, Value payload = {}, int node = 0) {
    return await<Window>(
        [&, &home = on(node)](auto done) { home.touch_async(name, key, std::move(payload), std::move(done)); });
  }
  Window touch(std::string_view name, std::string_view key, Value payload = {}, int node = 0) {
    auto window = try_touch(name, key, std::move(payload), node);
    EXPECT_TRUE(window) << to_string(window.error());
    return window ? *window : Window();
  }
  DebounceKey state(std::string_view name, std::string_view key) {
    return sim_.read([&, &home = on()](Reader& reader) { return home.key(reader, name, key); }).value();
  }
  /// Waits for a run, takes it, and says when it came.
  struct Taken {
    Claimed event;
    Duration at;
  };
  std::optional<Taken> take_run(std::string_view worker, Duration patience = 20s) {
    std::optional<Taken> taken;
    SteadyTime end = sim_.node(0)->now() + patience;
    while (!taken && sim_.node(0)->now() < end) {
      auto events = claim(worker, {.max = 1, .wait = 1s, .lock = 1h});
      if (!events.empty()) taken = Taken{events[0], sim_.elapsed()};
    }
    return taken;
  }
  void end_run(const Taken& run) {
    EXPECT_TRUE(
        transact([&, &home = queue()](Transaction& txn) { home.complete(txn, run.event.id, *run.event.token); }));
  }
  /// Runs that nobody has taken.
  std::uint64_t fired(std::string_view worker) { return info(worker).ready; }
  static std::uint64_t count_of(const Taken& run) {
    return static_cast<std::uint64_t>(*run.event.value.find("count")->as_integer());
  }
  static Value payload_of(const Taken& run) { return *run.event.value.find("payload"); }

 private:
  std::function<void(Queue&, Debouncers&, Node&)> on_node_;
  std::map<int, std::weak_ptr<Debouncers>> debouncers_;
};

}  // namespace perdure::debounce
