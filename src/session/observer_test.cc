#include "session/observer.h"

#include <gtest/gtest.h>

namespace perdure::session {
namespace {

using namespace std::chrono_literals;

constexpr SessionId kOther{{{7}, 0}};
constexpr Duration kTtl = 5s;
constexpr Duration kGapMax = 2s;

class ObserverTest : public ::testing::Test {
 protected:
  /// The store is reached after `later`, and the other session is seen with `beat`.
  Duration look(Duration later, std::uint64_t beat) {
    now_ += later;
    observer_.contact(now_);
    observer_.saw(kOther, beat, kTtl);
    return observer_.left(kOther);
  }

  SteadyTime now_{1h};
  Observer observer_{kGapMax};
};

TEST_F(ObserverTest, UnchangedForItsTtlIsDead) {
  EXPECT_EQ(look(0s, 1), 5s);
  EXPECT_EQ(look(1s, 1), 4s);
  EXPECT_EQ(look(2s, 1), 2s);
  EXPECT_EQ(look(2s - 1ns, 1), 1ns);
  EXPECT_EQ(look(1ns, 1), 0s);
}

TEST_F(ObserverTest, ARenewalStartsTheCountAnew) {
  look(0s, 1);
  look(2s, 1);
  look(2s, 1);
  EXPECT_EQ(look(1s, 2), 5s);
}

TEST_F(ObserverTest, TimeWithoutContactDoesNotCount) {
  look(0s, 1);
  EXPECT_EQ(look(2s, 1), 3s);
  EXPECT_EQ(look(10s, 1), 3s) << "an observer that was cut off has learned nothing";
  EXPECT_EQ(look(1h, 1), 3s);
  EXPECT_EQ(look(1s, 1), 2s);
}

TEST_F(ObserverTest, ContactsOutOfOrderDoNotCountTwice) {
  look(0s, 1);
  look(2s, 1);
  EXPECT_EQ(look(-1s, 1), 3s);
  EXPECT_EQ(look(1s, 1), 3s);
  EXPECT_EQ(look(1s, 1), 2s);
}

TEST_F(ObserverTest, WhoWasNeverSeenIsNotDead) {
  observer_.contact(now_ + 1h);
  EXPECT_GT(observer_.left(kOther), kTtl);
}

TEST_F(ObserverTest, WhoIsForgottenIsCountedFromNewOn) {
  look(0s, 1);
  look(2s, 1);
  observer_.keep_only({});
  EXPECT_EQ(look(1s, 1), 5s);
}

}  // namespace
}  // namespace perdure::session
