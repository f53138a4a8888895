// How bodies end, and what that does.
#include <stdexcept>

#include "conformance/conformance.h"
#include "store/system_access.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, BodysValueIsReturned) {
  EXPECT_EQ(must(store().transact([](Transaction& txn) {
              txn.set("a", "1");
              return std::string("seven");
            })),
            "seven");
  EXPECT_EQ(must(store().transact([](Transaction&) -> Result<int> { return 7; })), 7);
}

TEST_P(Conformance, ExceptionInABodyFailsItWithoutEffect) {
  for (Body body : {Body::kOptimistic, Body::kShort}) {
    auto error = error_of(store().transact(
        [](Transaction& txn) {
          txn.set("a", "1");
          throw std::runtime_error("the reason");
        },
        {.body = body}));
    EXPECT_EQ(error.code, ErrorCode::kHandlerFailed);
    EXPECT_NE(error.message.find("the reason"), std::string::npos) << error.message;
    EXPECT_EQ(error_of(store().transact([](Transaction&) { throw 7; }, {.body = body})).code,
              ErrorCode::kHandlerFailed);
  }
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, ErrorThatABodyReturnsEndsItWithoutEffect) {
  // Also the codes that the store uses for itself: what a body returns is never taken for the store's own trouble.
  for (ErrorCode code :
       {ErrorCode::kNotFound, ErrorCode::kConflict, ErrorCode::kUnavailable, ErrorCode::kCommitUnknown})
    for (Body body : {Body::kOptimistic, Body::kShort}) {
      int runs = 0;
      auto error = error_of(store().transact(
          [&](Transaction& txn) -> Result<int> {
            ++runs;
            (void)txn.get("a");
            txn.set("a", "1");
            return fail(code, "the reason");
          },
          {.timeout = std::chrono::milliseconds(200), .body = body}));
      EXPECT_EQ(error.code, code);
      EXPECT_EQ(error.message, "the reason");
      EXPECT_EQ(runs, 1) << info(code).name;
    }
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, BodyThatSwallowsTheStoresExceptionDoesNotCommit) {
  auto error = error_of(store().transact([](Transaction& txn) {
    txn.set("a", "1");
    try {
      (void)txn.get("");
    } catch (...) {
    }
    txn.set("b", "2");
  }));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, BodyThatSwallowsARefusedReadReturnsTheRefusal) {
  auto result = store().transact([](Transaction& txn) {
    txn.set_stamped("stamp", Stamped{});
    try {
      return txn.get("stamp").value_or("none");
    } catch (...) {
      return Bytes("swallowed");
    }
  });
  EXPECT_EQ(error_of(result).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, TransactionInsideABodyIsRefused) {
  must(store().transact([&](Transaction& txn) {
    EXPECT_EQ(error_of(store().transact([](Transaction& inner) { inner.set("a", "inner"); })).code,
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(error_of(store().read([](Reader& reader) { return reader.get("a"); })).code, ErrorCode::kInvalidArgument);
    txn.set("b", "outer");
  }));
  EXPECT_EQ(contents(), "b=outer");
  EXPECT_EQ(get("b"), "outer") << "after the body the thread may use the store again";
}

TEST_P(Conformance, BodyThatStartsAnAsynchronousTransactionMayStillNotBlockOnOne) {
  Countdown done(2);
  store().transact_async(
      [&](Transaction&) {
        store().transact_async([](Transaction& inner) { inner.set("a", "1"); },
                               [&](const Result<void>& result) {
                                 must(result);
                                 done.hit();
                               });
        EXPECT_EQ(error_of(store().transact([](Transaction& inner) { inner.set("b", "1"); })).code,
                  ErrorCode::kInvalidArgument);
      },
      [&](const Result<void>& result) {
        must(result);
        done.hit();
      });
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(contents(), "a=1");
}

TEST_P(Conformance, RerunBodyStartsFromACleanSlate) {
  set("a", "1");
  int runs = 0;
  must(store().transact([&](Transaction& txn) {
    (void)txn.get("a");
    if (++runs == 1) {
      txn.set("left over", "from the first run");
      txn.clear_range({"x", "z"});
      meanwhile([&] {
        set("a", "2");
        set("y", "stays");
      });
    }
    txn.set("b", std::to_string(runs));
  }));
  EXPECT_EQ(contents(), "a=2 b=2 y=stays");
}

TEST_P(Conformance, BodyThatAlwaysConflictsEndsAtItsDeadlineWithoutEffect) {
  constexpr auto kTimeout = std::chrono::milliseconds(150);
  set("contended", "0");
  int runs = 0;
  auto begun = std::chrono::steady_clock::now();
  auto error = error_of(store().transact(
      [&](Transaction& txn) {
        (void)txn.get("contended");
        meanwhile([&] { set("contended", std::to_string(++runs)); });
        txn.set("loser", "written");
      },
      {.timeout = kTimeout}));
  EXPECT_EQ(error.code, ErrorCode::kDeadline);
  EXPECT_EQ(error.outcome(), Outcome::kNone);
  EXPECT_GT(runs, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kTimeout + std::chrono::seconds(5));
  EXPECT_EQ(get("loser"), std::nullopt);
}

TEST_P(Conformance, TimeoutOfZeroFailsWithoutRunningTheBody) {
  bool ran = false;
  auto error = error_of(store().transact([&](Transaction&) { ran = true; }, {.timeout = Duration::zero()}));
  EXPECT_EQ(error.code, ErrorCode::kDeadline);
  EXPECT_FALSE(ran);
  must(store().transact([](Transaction& txn) { txn.set("a", "1"); }, {.timeout = Duration::max()}));
}

/// How a body says no, as users do and as perdure's own parts do.
enum class No { kReturned, kThrown, kRefused };

Result<void> expect_there(Transaction& txn, const Bytes& key, No no) {
  if (txn.get(key)) return {};
  if (no == No::kThrown) throw std::runtime_error("it is not there");
  if (no == No::kRefused) SystemAccess(txn).refuse({ErrorCode::kNotFound, "it is not there"});
  return fail(ErrorCode::kNotFound, "it is not there");
}

TEST_P(Conformance, NoBodyFailsByWhatAnotherProcessHasChangedBefore) {
  if (!capabilities().far_reads) GTEST_SKIP() << "one process sees at once what another has done";
  auto other = Store::on_engine(make_engine(), scheduler(), {});
  ASSERT_TRUE(other);
  for (int i = 0; i < 60; ++i) {
    Bytes key = numbered("key", i);
    No no = i % 3 == 0 ? No::kReturned : i % 3 == 1 ? No::kThrown : No::kRefused;
    Body body = i % 2 == 0 ? Body::kShort : Body::kOptimistic;
    EXPECT_FALSE(get(key));
    must(other->transact([&](Transaction& txn) { txn.set(key, "1"); }));
    must(store().transact([&](Transaction& txn) { return expect_there(txn, key, no); }, {.body = body}));
  }
}

}  // namespace
}  // namespace perdure::conformance
