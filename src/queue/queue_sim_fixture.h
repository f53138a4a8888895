// What the tests of the queue on virtual time have in common: nodes that each have a queue, and calls that are answered
// while time passes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perdure/queue.h"
#include "perdure/testing.h"
#include "queue/admin.h"
#include "queue/queue_test_check.h"

namespace perdure::queue {

using namespace std::chrono_literals;
using testing::Crash;
using testing::Node;
using testing::Simulation;

class QueueSimFixture : public ::testing::Test {
 protected:
  static constexpr Duration kPatience = 10s;

  explicit QueueSimFixture(int nodes = 1) : QueueSimFixture(testing::SimulationOptions{.nodes = nodes}) {}
  explicit QueueSimFixture(testing::SimulationOptions options) : sim_(options) {
    sim_.on_start([this](Node& node) {
      Queue::open_async(node.store(), options_, [this, &node](Result<Queue> opened) {
        ASSERT_TRUE(opened) << to_string(opened.error());
        auto kept = std::make_shared<Queue>(std::move(*opened));
        queues_[node.index()] = kept;
        node.keep(kept);
        if (serve_) serve_(*kept, node);
      });
    });
  }
  void TearDown() override {
    auto wrong = sim_.read([](Reader& reader) { return RowCheck::run(reader); });
    ASSERT_TRUE(wrong);
    EXPECT_EQ(*wrong, std::vector<std::string>()) << "what must hold between rows";
  }

  /// What each life of each node does when its queue is open; the nodes start with the first call that takes time.
  void serve(std::function<void(Queue&, Node&)> serve) { serve_ = std::move(serve); }
  /// As a node does that begins anew: its handlers are replaced.
  void serve_again(int node = 0) { serve_(queue(node), *sim_.node(node)); }
  /// Long times pass on the wall clock alone, which is what decides about what is due: renewals are many.
  void let_days_pass(int days) {
    sim_.run_for(1s);
    for (int node = 0; node < sim_.options().nodes; ++node) sim_.jump_wall_clock(node, 24h * days);
    sim_.run_for(2min);
  }
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  Queue& queue(int node = 0) {
    if (queues_[node].expired()) {
      EXPECT_TRUE(sim_.run_until([&] { return !queues_[node].expired(); }, kPatience));
    }
    return *queues_[node].lock();
  }
  /// Runs an asynchronous call to its end.
  template <class T, class F>
  Result<T> await(F start) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    start([answer](Result<T> result) { answer->emplace(std::move(result)); });
    if (!sim_.run_until([&] { return answer->has_value(); }, kPatience))
      return fail(ErrorCode::kDeadline, "no answer in the test's patience");
    return std::move(**answer);
  }
  template <class F>
  Result<void> transact(F body, int node = 0) {
    queue(node);
    return await<void>([&](auto done) {
      sim_.node(node)->store().transact_async(
          body, [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); });
    });
  }
  Uuid emit(std::string_view worker, Value value = 1, EmitOptions options = {}, int node = 0) {
    auto emitted = await<Emitted>([&, &home = queue(node)](auto done) {
      home.emit_async(worker, std::move(value), std::move(options), std::move(done));
    });
    EXPECT_TRUE(emitted) << to_string(emitted.error());
    return emitted ? emitted->id : Uuid();
  }
  std::vector<Claimed> claim(std::string_view worker, ClaimOptions options = {}, int node = 0) {
    auto claimed = await<std::vector<Claimed>>(
        [&, &home = queue(node)](auto done) { home.claim_async(worker, options, std::move(done)); });
    EXPECT_TRUE(claimed) << to_string(claimed.error());
    return claimed ? *claimed : std::vector<Claimed>();
  }
  void configure(std::string_view worker, const WorkerSettings& settings) {
    ASSERT_TRUE(transact([&](Transaction& txn) { write_settings(txn, "default", worker, settings, {}); }));
  }
  template <class F>
  auto look(F body, int node = 0) {
    return sim_.read([&, &home = queue(node)](Reader& reader) { return body(reader, home); }).value();
  }
  WorkerInfo info(std::string_view worker) {
    return look([&](Reader& reader, Queue& queue) { return queue.worker(reader, worker); });
  }
  Result<Event> get(const Uuid& id) {
    return sim_.read([&, &home = queue()](Reader& reader) { return home.get(reader, id); });
  }
  Result<EndedEvent> history(const Uuid& id) {
    return sim_.read([&, &home = queue()](Reader& reader) { return home.history(reader, id); });
  }
  std::vector<AttemptRecord> attempts(std::string_view worker) {
    return look([&](Reader& reader, Queue& queue) { return queue.attempts(reader, worker); });
  }
  WallTime wall_now(int node = 0) {
    queue(node);
    return sim_.node(node)->wall_now();
  }
  std::size_t rows_of(const Bytes& prefix) {
    return look([&](Reader& reader, Queue&) {
      SystemAccess access(reader);
      return reader.get_range(tuple::extensions(prefix)).size();
    });
  }

  QueueOptions options_;
  Simulation sim_;

 private:
  std::function<void(Queue&, Node&)> serve_;
  std::map<int, std::weak_ptr<Queue>> queues_;
};

}  // namespace perdure::queue
