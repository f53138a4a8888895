// A store whose callbacks run where the host polls.
#include <stdlib.h>

#include "conformance/conformance.h"
#include "perdure/manual_executor.h"

namespace perdure::conformance {
namespace {

/// A host's loop in little: it sleeps until it is woken, or until something is due, and polls.
class Loop {
 public:
  void run_until(const std::function<bool()>& done) {
    SteadyTime until = deadline_after(kSoon);
    while (!done()) {
      ASSERT_LT(steady_now(), until) << "what the loop waits for does not come";
      {
        MutexLock lock(mutex_);
        auto due = executor->next_due();
        SteadyTime next = deadline_after(due.value_or(kSoon));
        while (!woken_ && steady_now() < std::min(next, until)) bell_.wait_until(lock, std::min(next, until));
        woken_ = false;
      }
      executor->poll();
    }
  }

  std::shared_ptr<ManualExecutor> executor = std::make_shared<ManualExecutor>([this] { wake(); });

 private:
  void wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    bell_.notify_all();
  }

  Mutex mutex_;
  CondVar bell_;
  bool woken_ PERDURE_GUARDED_BY(mutex_) = false;
};

class Polled : public testing::TestWithParam<std::string> {
 protected:
  Polled() {
    std::string pattern = (std::filesystem::temp_directory_path() / "perdure-polled-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    StoreOptions options;
    options.map_bytes = std::size_t{1} << 30;  // Sanitizers cannot reserve a tebibyte.
    options.executor = loop_.executor;
    store_ = must(std::optional(Store::open(GetParam() == "lmdb" ? "lmdb:" + directory_ : "memory:", options)).value());
  }
  ~Polled() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  static std::optional<Store> must(Result<Store> store) {
    if (!store) throw std::runtime_error(to_string(store.error()));
    return std::move(*store);
  }

  std::string directory_;
  Loop loop_;
  std::optional<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Engines, Polled, testing::Values("memory", "lmdb"),
                         [](const auto& test) { return test.param; });

TEST_P(Polled, BodiesAndCallbacksRunOnThePollingThreadAndOnlyInPoll) {
  const auto loop_thread = std::this_thread::get_id();
  std::thread::id body_thread, answer_thread, watch_thread;
  bool answered = false, fired = false;
  auto watch = store_->transact([](Transaction& txn) { return txn.watch("a"); });
  ASSERT_TRUE(watch);
  watch->then([&] {
    watch_thread = std::this_thread::get_id();
    fired = true;
  });
  meanwhile([&] {
    store_->transact_async(
        [&](Transaction& txn) {
          body_thread = std::this_thread::get_id();
          txn.set("a", "1");
        },
        [&](const Result<void>& result) {
          EXPECT_TRUE(result);
          answer_thread = std::this_thread::get_id();
          answered = true;
        });
  });
  EXPECT_EQ(body_thread, std::thread::id()) << "nobody has polled yet";
  loop_.run_until([&] { return answered && fired; });
  EXPECT_EQ(body_thread, loop_thread);
  EXPECT_EQ(answer_thread, loop_thread);
  EXPECT_EQ(watch_thread, loop_thread);
}

TEST_P(Polled, ManyChainsGoOnWithoutThreads) {
  constexpr int kChains = 20, kLength = 20;
  int ended = 0;
  std::function<void(int, int)> next = [&](int chain, int left) {
    store_->transact_async(
        [](Transaction& txn) {
          // Read and written, so that chains lose to each other and are run again, later too.
          txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1));
        },
        [&, chain, left](const Result<void>& result) {
          EXPECT_TRUE(result) << to_string(result.error());
          if (left > 1)
            next(chain, left - 1);
          else
            ++ended;
        },
        {.timeout = kSoon});
  };
  for (int i = 0; i < kChains; ++i) next(i, kLength);
  loop_.run_until([&] { return ended == kChains; });
  auto total = store_->read([](Reader& reader) { return decode_counter(reader.get("n")); });
  EXPECT_EQ(total.value_or(-1), kChains * kLength);
}

TEST_P(Polled, BlockingCallsWorkOnThePollingThreadAlsoInACallback) {
  EXPECT_TRUE(store_->transact([](Transaction& txn) { txn.set("a", "1"); }));
  bool answered = false;
  store_->transact_async([](Transaction& txn) { txn.set("a", "2"); },
                         [&](const Result<void>&) {
                           EXPECT_TRUE(store_->transact([](Transaction& txn) { txn.add("n", 1); }));
                           EXPECT_EQ(store_->read([](Reader& reader) { return *reader.get("a"); }).value_or("?"), "2");
                           EXPECT_EQ(error_of(store_->close()).code, ErrorCode::kInvalidArgument);
                           answered = true;
                         });
  loop_.run_until([&] { return answered; });
}

TEST_P(Polled, CloseRunsWhatIsLeft) {
  int answered = 0;
  for (int i = 0; i < 100; ++i)
    store_->transact_async([i](Transaction& txn) { txn.set(numbered("k", i), ""); },
                           [&](const Result<void>& result) {
                             EXPECT_TRUE(result);
                             ++answered;
                           });
  EXPECT_TRUE(store_->close());
  EXPECT_EQ(answered, 100);
  EXPECT_TRUE(store_->close());
}

TEST_P(Polled, CloseWaitsForABlockingCallOfAnotherThread) {
  Latch inside, go_on;
  std::thread other([&] {
    EXPECT_TRUE(store_->transact([&](Transaction& txn) {
      inside.set();
      go_on.wait();
      txn.set("a", "1");
    }));
  });
  inside.wait();
  EXPECT_EQ(error_of(store_->close(std::chrono::milliseconds(5))).code, ErrorCode::kDeadline);
  std::thread closer([&] { EXPECT_TRUE(store_->close()); });
  go_on.set();
  closer.join();
  other.join();
}

TEST_P(Polled, DroppingTheLastHandleRunsWhatIsLeft) {
  bool answered = false;
  store_->transact_async([](Transaction& txn) { txn.set("a", "1"); }, [&](const Result<void>&) { answered = true; });
  store_.reset();
  EXPECT_TRUE(answered);
}

}  // namespace
}  // namespace perdure::conformance
