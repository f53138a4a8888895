// The form that does not block, and closing.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, ManyTransactionsInFlightAreEachAnsweredOnce) {
  constexpr int kCalls = 2000;
  std::vector<std::atomic<int>> answers(kCalls);
  Countdown done(kCalls);
  for (int i = 0; i < kCalls; ++i)
    store().transact_async(
        [i](Transaction& txn) {
          txn.set(numbered("k", i), std::to_string(i));
          txn.add("n", 1);
          return i;
        },
        [&, i](Result<int> result) {
          EXPECT_EQ(must(std::move(result)), i);
          ++answers[static_cast<std::size_t>(i)];
          done.hit();
        },
        {.timeout = kSoon});
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(counter("n"), kCalls);
  EXPECT_EQ(range(prefix_range("k")).size(), static_cast<std::size_t>(kCalls));
  close();
  for (auto& count : answers) EXPECT_EQ(count, 1);
}

TEST_P(Conformance, AsynchronousReadModifyWritesLoseNoUpdate) {
  constexpr int kCalls = 150;
  Countdown done(kCalls);
  for (int i = 0; i < kCalls; ++i)
    store().transact_async(
        [i](Transaction& txn) {
          Bytes key = numbered("n", i % 10);
          txn.set(key, encode_counter(decode_counter(txn.get(key)) + 1));
        },
        [&](const Result<void>& result) {
          must(result);
          done.hit();
        },
        {.timeout = kSoon});
  EXPECT_TRUE(done.wait());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(counter(numbered("n", i)), kCalls / 10);
}

TEST_P(Conformance, AnswersMayStartNewTransactions) {
  constexpr int kChains = 8, kLength = 40;
  Countdown done(kChains);
  std::function<void(int)> next = [&](int left) {
    store().transact_async([](Transaction& txn) { txn.add("n", 1); },
                           [&, left](const Result<void>& result) {
                             must(result);
                             if (left > 1)
                               next(left - 1);
                             else
                               done.hit();
                           },
                           {.timeout = kSoon});
  };
  for (int i = 0; i < kChains; ++i) next(kLength);
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(counter("n"), kChains * kLength);
}

/// A body may hold the last handle of something but one, and who gets the answer the last.
TEST_P(Conformance, WhatABodyHoldsIsGoneBeforeItIsAnswered) {
  for (Body kind : {Body::kOptimistic, Body::kShort}) {
    Countdown done(1);
    auto held = std::make_shared<int>(1);
    std::weak_ptr<int> seen = held;
    store().transact_async([held = std::move(held)](Transaction& txn) { txn.add("n", *held); },
                           [&](const Result<void>& result) {
                             must(result);
                             EXPECT_TRUE(seen.expired());
                             done.hit();
                           },
                           {.timeout = kSoon, .body = kind});
    EXPECT_TRUE(done.wait());
  }
}

TEST_P(Conformance, AsynchronousFailuresAreAnswered) {
  Countdown done(3);
  auto expect = [&](ErrorCode code) {
    return [&done, code](const Result<void>& result) {
      EXPECT_EQ(error_of(result).code, code);
      done.hit();
    };
  };
  store().transact_async([](Transaction&) { throw std::runtime_error("no"); }, expect(ErrorCode::kHandlerFailed));
  store().transact_async([](Transaction&) -> Result<void> { return fail(ErrorCode::kNotFound, "no"); },
                         expect(ErrorCode::kNotFound));
  store().transact_async([](Transaction& txn) { txn.set("", ""); }, expect(ErrorCode::kInvalidArgument));
  EXPECT_TRUE(done.wait());
}

TEST_P(Conformance, CloseWaitsForWhatIsUnderWay) {
  constexpr int kCalls = 300;
  std::atomic<int> answered = 0;
  for (int i = 0; i < kCalls; ++i)
    store().transact_async([i](Transaction& txn) { txn.set(numbered("k", i), ""); },
                           [&](const Result<void>& result) {
                             must(result);
                             ++answered;
                           },
                           {.timeout = kSoon});
  store().close();
  EXPECT_EQ(answered, kCalls);
  store().close();
}

TEST_P(Conformance, CallsAfterCloseAreRefused) {
  set("a", "1");
  store().close();
  EXPECT_EQ(error_of(store().transact([](Transaction& txn) { txn.set("a", "2"); })).code, ErrorCode::kClosed);
  EXPECT_EQ(error_of(store().read([](Reader& reader) { return reader.get("a"); })).code, ErrorCode::kClosed);
  EXPECT_EQ(error_of(store().clear_in_batches({})).code, ErrorCode::kClosed);
  EXPECT_EQ(error_of(store().verify()).code, ErrorCode::kClosed);
  EXPECT_EQ(error_of(store().backup((directory() / "copy").string())).code, ErrorCode::kClosed);
  Countdown done(1);
  store().transact_async([](Transaction&) {},
                         [&](const Result<void>& result) {
                           EXPECT_EQ(error_of(result).code, ErrorCode::kClosed);
                           done.hit();
                         });
  EXPECT_TRUE(done.wait());
}

TEST_P(Conformance, CopiesOfAHandleShareTheStore) {
  Store copy = store();
  must(copy.transact([](Transaction& txn) { txn.set("a", "1"); }));
  EXPECT_EQ(get("a"), "1");
  copy.close();
  EXPECT_EQ(error_of(store().read([](Reader& reader) { return reader.get("a"); })).code, ErrorCode::kClosed);
}

}  // namespace

// Stores that own their threads, as users open them.

TEST(StoreByUrl, CallbackThatUsesAClosingStoreIsRefusedAndDoesNotHoldItUp) {
  // Closing joins the threads that callbacks run on, so a callback must never wait for the closing.
  auto opened = Store::open("memory:", {.threads = 2});
  ASSERT_TRUE(opened);
  Store store = *opened;
  Watch watch = must(store.transact([](Transaction& txn) { return txn.watch("a"); }));
  Latch running;
  Promise<ErrorCode> ended;
  watch.then([&] {
    running.set();
    for (;;)
      if (auto result = store.read([](Reader& reader) { return reader.get("a"); }); !result)
        return ended.set(result.error().code);
  });
  must(store.transact([](Transaction& txn) { txn.set("a", "1"); }));
  running.wait();
  Latch closed;
  std::thread closer([&] {
    store.close();
    closed.set();
  });
  if (!closed.wait_for(std::chrono::seconds(20))) {
    ADD_FAILURE() << "close and the callback wait for each other";
    std::abort();
  }
  closer.join();
  EXPECT_EQ(ended.take(), ErrorCode::kClosed);
}

TEST(StoreByUrl, ClosingTwiceAtOnceReturnsFromBothOnceItIsClosed) {
  for (int i = 0; i < 20; ++i) {
    auto store = Store::open("memory:", {.threads = 2});
    ASSERT_TRUE(store);
    store->transact_async([](Transaction& txn) { txn.set("a", "1"); }, [](const Result<void>&) {});
    on_threads(3, [&](int) { store->close(); });
  }
}

TEST(StoreByUrl, UnknownUrlIsRefusedByName) {
  for (const char* url : {"", "lmdb:", "memory", "nosuch:thing", "memory:x"}) {
    auto error = error_of(Store::open(url));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << url;
  }
  EXPECT_NE(error_of(Store::open("nosuch:thing")).message.find("nosuch:thing"), std::string::npos);
}

}  // namespace perdure::conformance
