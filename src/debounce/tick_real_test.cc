// The public class on real threads, with the leadership of the store: handlers that block, throw and are waited for.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <string>
#include <vector>

#include "perdure/tick.h"
#include "store/store_test_util.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;

class TickReal : public ::testing::Test {
 protected:
  void open(TickHandlers handlers, TickOptions options = {}) {
    options.window = 20ms;
    auto leadership = store_leadership(store_, {.instance_id = "me"});
    ASSERT_TRUE(leadership) << to_string(leadership.error());
    auto opened = Tick::open(store_, *leadership, options, std::move(handlers));
    ASSERT_TRUE(opened) << to_string(opened.error());
    tick_.emplace(std::move(*opened));
  }
  std::int64_t count(const char* key) {
    return store_.read([&](Reader& reader) { return decode_counter(reader.get(key)); }).value();
  }
  void touch() {
    ASSERT_TRUE(store_.transact([](Transaction& txn) { txn.add("pending", 1); }));
  }
  /// Waits for it by a watch, and so without a sleep.
  bool wait_until_done(std::int64_t wanted) {
    for (int i = 0; i < 1000; ++i) {
      auto watch = store_.transact([](Transaction& txn) { return txn.watch("done"); });
      if (count("done") >= wanted) return true;
      if (!watch || !watch->wait(10s)) return false;
    }
    return false;
  }
  TickHandlers handlers() {
    return {.pending = [this](const std::string&) -> Result<Pending> {
              return count("pending") > 0 ? Pending::kWork : Pending::kNothing;
            },
            .run = [](TickRun& run) -> Result<void> {
              run.complete([](Transaction& txn) -> Result<void> {
                txn.add("done", decode_counter(txn.get("pending")));
                txn.clear("pending");
                return {};
              });
              return {};
            }};
  }

  Store store_ = fresh_store();
  std::optional<Tick> tick_;
};

TEST_F(TickReal, WhatIsPendingIsRun) {
  open(handlers());
  ASSERT_TRUE(tick_->follow("ws.cs"));
  for (int i = 1; i <= 5; ++i) {
    touch();
    ASSERT_TRUE(wait_until_done(i));
  }
  EXPECT_EQ(count("done"), 5);
  EXPECT_EQ(count("pending"), 0);
  auto seen = tick_->inspect("ws.cs");
  ASSERT_TRUE(seen) << to_string(seen.error());
  EXPECT_EQ(tick_->follow("").error().code, ErrorCode::kInvalidArgument);
}

// DVU-U10, DVU-U12: a handler that throws is reported and tried again, and kills nobody.
TEST_F(TickReal, AHandlerThatThrowsIsTriedAgain) {
  TickHandlers all = handlers();
  std::atomic<int> tries = 0;
  std::latch failed(2);
  all.run = [&, good = all.run](TickRun& run) -> Result<void> {
    if (++tries <= 2) throw std::runtime_error("not yet");
    return good(run);
  };
  all.ended = [&](const TickEnd& end) {
    if (!end.result) failed.count_down();
  };
  open(std::move(all));
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  ASSERT_TRUE(wait_until_done(1));
  failed.wait();
  EXPECT_EQ(tries, 3);
}

// DVU-U12: nor does one of the other two.
TEST_F(TickReal, HandlersOfAllKindsMayThrow) {
  TickHandlers all = handlers();
  std::atomic<int> asked = 0;
  std::latch told(1);
  all.pending = [&, good = all.pending](const std::string& key) -> Result<Pending> {
    if (++asked == 1) throw std::runtime_error("not yet");
    return good(key);
  };
  all.ended = [&](const TickEnd&) {
    told.count_down();
    throw std::runtime_error("not at all");
  };
  open(std::move(all));
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  ASSERT_TRUE(wait_until_done(1));
  told.wait();
  ASSERT_TRUE(tick_->stop());
}

// DVU-U8, DVU-18: a stop waits for the run, its end is committed and told, and the key is free.
TEST_F(TickReal, AStopWaitsForTheRunAndLosesNoReport) {
  TickHandlers all = handlers();
  std::latch begun(1), go_on(1);
  std::mutex mutex;
  std::vector<std::string> told;
  all.run = [&, good = all.run](TickRun& run) -> Result<void> {
    begun.count_down();
    go_on.wait();
    return good(run);
  };
  all.ended = [&](const TickEnd& end) {
    std::lock_guard lock(mutex);
    told.push_back(end.key + (end.result ? " ok" : " failed"));
  };
  open(std::move(all), {.concurrency = 1});
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  begun.wait();
  std::latch stopped(1);
  tick_->stop_async(30s, [&](const Result<void>& result) {
    EXPECT_TRUE(result);
    stopped.count_down();
  });
  EXPECT_FALSE(stopped.try_wait());
  go_on.count_down();
  stopped.wait();
  EXPECT_EQ(count("done"), 1);
  std::lock_guard lock(mutex);
  EXPECT_EQ(told, std::vector<std::string>{"ws.cs ok"});
  EXPECT_TRUE(tick_->followed().empty());
}

// DVU-U8: nor does it lose a report for which there was no thread yet.
TEST_F(TickReal, AStopWaitsForReportsThatHaveNotBegun) {
  TickHandlers all = handlers();
  std::latch begun(1), go_on(1), occupied(1), free(1);
  std::atomic<int> told = 0;
  all.run = [&, good = all.run](TickRun& run) -> Result<void> {
    begun.count_down();
    go_on.wait();
    return good(run);
  };
  all.pending = [&, good = all.pending](const std::string& key) -> Result<Pending> {
    if (key == "ws.cs") return good(key);
    occupied.count_down();
    free.wait();
    return Pending::kNothing;
  };
  all.ended = [&](const TickEnd&) { ++told; };
  open(std::move(all), {.concurrency = 1});
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  begun.wait();
  ASSERT_TRUE(tick_->follow("ws.slow"));
  // It waits for the only thread, and has it before the report of the run.
  while (tick_->info("ws.slow")->state != TickState::kCheckingPending) count("done");
  std::latch stopped(1);
  tick_->stop_async(30s, [&](const Result<void>& result) {
    EXPECT_TRUE(result);
    stopped.count_down();
  });
  go_on.count_down();
  occupied.wait();
  while (!tick_->followed().empty()) count("done");
  for (int i = 0; i < 100; ++i) count("done");
  EXPECT_EQ(told, 0);
  free.count_down();
  stopped.wait();
  EXPECT_EQ(told, 1);
}

// DVU-B5: a handler that hangs is told, and given up.
TEST_F(TickReal, AHandlerThatHangsIsToldAndGivenUp) {
  TickHandlers all = handlers();
  std::atomic<int> tries = 0;
  std::latch told(1);
  all.run = [&, good = all.run](TickRun& run) -> Result<void> {
    if (++tries > 1) return good(run);
    EXPECT_TRUE(run.cancel_signal().wait(30s));
    told.count_down();
    return good(run);
  };
  open(std::move(all), {.run_timeout = 50ms});
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  told.wait();
  ASSERT_TRUE(wait_until_done(1));
  EXPECT_EQ(count("done"), 1) << "what the one that was given up wanted to write does not count";
}

TEST_F(TickReal, BlockingCallsAreRefusedInHandlers) {
  TickHandlers all = handlers();
  std::latch asked(1);
  std::optional<Error> refused;
  all.run = [&, good = all.run](TickRun& run) -> Result<void> {
    if (auto stopped = tick_->stop(); !stopped && !refused) {
      refused = stopped.error();
      asked.count_down();
    }
    return good(run);
  };
  open(std::move(all));
  touch();
  ASSERT_TRUE(tick_->follow("ws.cs"));
  asked.wait();
  ASSERT_TRUE(wait_until_done(1));
  ASSERT_TRUE(tick_->stop());
  EXPECT_EQ(refused->code, ErrorCode::kInvalidArgument);
}

TEST_F(TickReal, ManyKeysAreFollowedAndDropped) {
  open(handlers());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(tick_->follow("ws." + std::to_string(i)));
  touch();
  ASSERT_TRUE(wait_until_done(1));
  EXPECT_EQ(tick_->followed().size(), 200u);
  tick_.reset();
  for (int i = 0; i < 200; ++i) {
    auto holder = store_.read(
        [&](Reader& reader) { return Session::holder_of(reader, "leadership/default/ws." + std::to_string(i)); });
    ASSERT_TRUE(holder);
    EXPECT_FALSE(*holder) << "ws." << i << " was not given back";
  }
}

}  // namespace
}  // namespace perdure
