// Stopping: with a grace, as often as one likes, and never from inside.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, CloseGivesUpAfterItsGraceAndCanBeRepeated) {
  Latch inside, go_on;
  std::thread holder([&] {
    must(store().transact([&](Transaction& txn) {
      inside.set();
      go_on.wait();
      txn.set("a", "1");
    }));
  });
  inside.wait();
  Error error = error_of(store().close(std::chrono::milliseconds(5)));
  EXPECT_EQ(error.code, ErrorCode::kDeadline);
  EXPECT_NE(error.message.find("1 are still under way"), std::string::npos) << error.message;
  EXPECT_EQ(error_of(store().read([](Reader& reader) { return reader.get("a"); })).code, ErrorCode::kClosed);
  EXPECT_EQ(error_of(store().close(Duration::zero())).code, ErrorCode::kDeadline);
  go_on.set();
  holder.join();
  must(store().close());
  must(store().close(Duration::zero()));
}

TEST_P(Conformance, CloseInAnAnswerOrABodyIsRefusedAndDoesNothing) {
  Promise<Result<void>> in_answer;
  store().transact_async([](Transaction& txn) { txn.set("a", "1"); },
                         [&](const Result<void>&) { in_answer.set(store().close()); });
  EXPECT_EQ(error_of(in_answer.take()).code, ErrorCode::kInvalidArgument);
  for (Body body : {Body::kOptimistic, Body::kShort}) {
    Result<void> in_body;
    must(store().transact([&](Transaction&) { in_body = store().close(); }, {.body = body}));
    EXPECT_EQ(error_of(in_body).code, ErrorCode::kInvalidArgument);
  }
  Promise<Result<void>> in_watch;
  watch("bell").then([&] { in_watch.set(store().close()); });
  set("bell", "1");
  EXPECT_EQ(error_of(in_watch.take()).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(get("a"), "1") << "the store is open as before";
}

TEST_P(Conformance, CloseWaitsForTheCallbacksOfWatchesToo) {
  Latch running, go_on;
  std::atomic<bool> ended = false;
  watch("bell").then([&] {
    running.set();
    go_on.wait();
    ended = true;
  });
  set("bell", "1");
  running.wait();
  EXPECT_EQ(error_of(store().close(std::chrono::milliseconds(5))).code, ErrorCode::kDeadline);
  go_on.set();
  must(store().close());
  EXPECT_TRUE(ended);
}

TEST(StoreByUrl, LastHandleDroppedInACallbackIsABrokenPromiseThatAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto drop_inside = [] {
    auto store = std::make_shared<std::optional<Store>>(*Store::open("memory:", {.threads = 2}));
    Store& used = **store;
    used.transact_async([](Transaction& txn) { txn.set("a", "1"); }, [store](const Result<void>&) { store->reset(); });
    store.reset();
    Latch never;
    (void)never.wait_for(std::chrono::seconds(20));
  };
  EXPECT_EXIT(drop_inside(), testing::KilledBySignal(SIGABRT), "^$") << "and nothing is printed";
}

}  // namespace
}  // namespace perdure::conformance
