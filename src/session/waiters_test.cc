// Many who wait at once.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "perdure/session.h"
#include "runtime/latch.h"
#include "store/store_test_util.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr int kWaiters = 5000;

class Waiters : public ::testing::Test {
 protected:
  Session open(Duration renew = 1250ms) {
    auto session = Session::open(store_, {.ttl = 10s, .renew = renew});
    EXPECT_TRUE(session) << to_string(session.error());
    return std::move(*session);
  }

  Store store_ = fresh_store();
};

TEST_F(Waiters, ThousandsForOneNameAreServedInOrder) {
  Session session = open();
  auto lease = session.acquire("x");
  std::atomic<int> served = 0;
  Latch all;
  for (int i = 0; i < kWaiters; ++i)
    session.acquire_async("x", 1h, [&, i](Result<Lease> next) {
      ASSERT_TRUE(next) << to_string(next.error());
      EXPECT_EQ(served++, i);
      next->release_async([&, i](Result<void> released) {
        EXPECT_TRUE(released);
        if (i == kWaiters - 1) all.set();
      });
    });
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(all.wait_for(kPatience));
}

TEST_F(Waiters, ThousandsOfNamesAreFreedByTheEndOfTheirHolder) {
  Session holder = open(), waiter = open();
  std::atomic<int> held = 0, taken = 0;
  Latch all_held, all_taken;
  for (int i = 0; i < kWaiters; ++i)
    holder.acquire_async(std::to_string(i), 0s, [&](Result<Lease> lease) {
      ASSERT_TRUE(lease);
      if (++held == kWaiters) all_held.set();
    });
  ASSERT_TRUE(all_held.wait_for(kPatience));
  for (int i = 0; i < kWaiters; ++i)
    waiter.acquire_async(std::to_string(i), 1h, [&](Result<Lease> lease) {
      ASSERT_TRUE(lease) << to_string(lease.error());
      if (++taken == kWaiters) all_taken.set();
    });
  ASSERT_TRUE(holder.stop());
  EXPECT_TRUE(all_taken.wait_for(kPatience));
}

TEST_F(Waiters, TimeoutsThatPassDuringAnAttemptLeaveNothingBehind) {
  Session a = open(), b = open();
  std::atomic<int> answered = 0;
  Latch all;
  for (int i = 0; i < kWaiters; ++i) {
    // Between nothing and about as long as an attempt takes.
    Session& session = i % 2 ? a : b;
    session.acquire_async(std::to_string(i % 7), std::chrono::microseconds(i % 100), [&](Result<Lease> lease) {
      if (lease) lease->release_async([](Result<void>) {});
      if (++answered == kWaiters) all.set();
    });
  }
  ASSERT_TRUE(all.wait_for(kPatience));
  Session last = open();
  for (int i = 0; i < 7; ++i) {
    auto lease = last.acquire(std::to_string(i), kPatience);
    EXPECT_TRUE(lease) << to_string(lease.error());
  }
}

TEST_F(Waiters, AnImpatientOneIsNotServedLater) {
  Session session = open();
  std::atomic<int> got = 0, refused = 0;
  Latch all;
  // The first attempt is under way for all of them; one gets it, and the others hear so without waiting for it.
  for (int i = 0; i < 100; ++i)
    session.acquire_async("x", 0s, [&](Result<Lease> lease) {
      ++(lease ? got : refused);
      if (got + refused == 100) all.set();
    });
  ASSERT_TRUE(all.wait_for(kPatience));
  EXPECT_EQ(got, 1);
}

}  // namespace
}  // namespace perdure
