// Leases on each engine behind a FaultyEngine: commits whose answers are late or lost.
#include "conformance/faulty_conformance.h"
#include "perdure/session.h"

namespace perdure::conformance {

using namespace std::chrono_literals;

class Sessions : public FaultyConformance {
 protected:
  Session open(SessionOptions options = {.ttl = 60s, .renew = 15s}) {
    auto session = Session::open(store(), std::move(options));
    EXPECT_TRUE(session) << to_string(session.error());
    return std::move(*session);
  }
  std::optional<LeaseInfo> holder() {
    return must(store().read([](Reader& reader) { return Session::holder_of(reader, "x"); }));
  }
  static constexpr Fault kUnknown[] = {Fault::kUnknownApplied, Fault::kUnknownLost, Fault::kUnknownLateBefore,
                                       Fault::kUnknownLateAfter, Fault::kUnknownVeryLate};
};

INSTANTIATE_TEST_SUITE_P(Engines, Sessions, testing::ValuesIn(kEngines),
                         [](const auto& test) { return test.param.name; });

TEST_P(Sessions, TheTokenOfAnUnknownAcquisitionIsTheOneInTheStore) {
  Session session = open();
  for (Fault fault : kUnknown) {
    script_.then({fault});
    auto lease = session.acquire("x", kSoon);
    ASSERT_TRUE(lease) << to_string(lease.error());
    ASSERT_TRUE(holder());
    EXPECT_EQ(holder()->token, lease->token());
    EXPECT_TRUE(store().transact([&](Transaction& txn) {
      lease->fence(txn);
      txn.set("key", "value");
    }));
    ASSERT_TRUE(lease->release());
  }
}

TEST_P(Sessions, AnUnknownReleaseIsFoundOutAbout) {
  Session a = open(), b = open();
  for (Fault fault : kUnknown) {
    auto lease = a.acquire("x", kSoon);
    ASSERT_TRUE(lease);
    script_.then({fault});
    auto released = lease->release();
    EXPECT_TRUE(released) << to_string(released.error());
    EXPECT_FALSE(lease->held());
    auto next = b.acquire("x");
    ASSERT_TRUE(next) << to_string(next.error());
    ASSERT_TRUE(next->release());
  }
}

TEST_P(Sessions, ALeaseThatCameTooLateIsGivenBack) {
  Session a = open(), b = open();
  for (Fault fault : kUnknown) {
    // The commit is on its way, and nothing more can be learned of it, when the caller gives up.
    script_.then({fault});
    script_.break_down();
    auto refused = a.acquire("x", 20ms);
    EXPECT_EQ(error_of(refused).code, ErrorCode::kDeadline);
    script_.heal();
    auto lease = b.acquire("x", kSoon);
    ASSERT_TRUE(lease) << to_string(lease.error());
    ASSERT_TRUE(lease->release());
  }
}

TEST_P(Sessions, AReleaseIsRepeatedUntilItHasHappened) {
  Session a = open({.ttl = 2s, .renew = 500ms}), b = open();
  auto lease = a.acquire("x");
  ASSERT_TRUE(lease);
  script_.then({Fault::kRefused, Fault::kRefused, Fault::kUnknownLost, Fault::kRefused});
  lease->release_async([](const Result<void>&) {});
  auto next = b.acquire("x", kSoon);
  EXPECT_TRUE(next) << to_string(next.error());
}

TEST_P(Sessions, AStoreThatIsAwayForTooLongLosesTheSession) {
  Countdown lost(1);
  Session session = open({.ttl = 300ms, .renew = 75ms, .on_lost = [&](const Error& why) {
                            EXPECT_EQ(why.code, ErrorCode::kStaleToken);
                            lost.hit();
                          }});
  auto lease = session.acquire("x");
  ASSERT_TRUE(lease);
  script_.break_down();
  EXPECT_TRUE(lease->cancel_signal().wait(kSoon));
  EXPECT_TRUE(lost.wait());
  EXPECT_FALSE(lease->held());
  script_.heal();
  EXPECT_EQ(error_of(lease->release()).code, ErrorCode::kStaleToken);
  auto anew = session.reopen();
  ASSERT_TRUE(anew) << to_string(anew.error());
  auto again = anew->acquire("x");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_GT(again->token().stamp, lease->token().stamp);
}

TEST_P(Sessions, WaitingForOthersCostsNoCommits) {
  constexpr int kNames = 500, kRenewals = 20;
  Session holder = open({.ttl = 10s, .renew = 50ms}), waiter = open();
  Countdown held(kNames);
  for (int i = 0; i < kNames; ++i)
    holder.acquire_async(std::to_string(i), 0s, [&](const Result<Lease>& lease) {
      EXPECT_TRUE(lease);
      held.hit();
    });
  ASSERT_TRUE(held.wait());
  for (int i = 0; i < kNames; ++i) waiter.acquire_async(std::to_string(i), 1h, [](const Result<Lease>&) {});
  auto renewals = [&] {
    return must(store().read([&](Reader& reader) { return Session::list(reader).front().renewals; }));
  };
  // Behind the attempts of all who wait.
  set("mark", "");
  std::uint64_t begun = renewals();
  int commits = script_.commits();
  while (renewals() < begun + kRenewals) (void)watch("never written").wait(10ms);
  int made = script_.commits() - commits, renewed = static_cast<int>(renewals() - begun);
  EXPECT_LT(made, renewed * 3 / 2) << "one for each renewal, and none for those who wait";
}

}  // namespace perdure::conformance
