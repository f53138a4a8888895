// Actors as their users see them, on the memory engine.
#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "actor/test_kinds.h"

namespace perdure::actor {
namespace {

using namespace std::chrono_literals;

class ActorTest : public ::testing::Test {
 protected:
  Store store = *Store::open("memory:");
  Actors actors = *Actors::open(store);
  Counter counter;

  void SetUp() override { ASSERT_TRUE(actors.serve(counter)); }
};

TEST_F(ActorTest, ACallChangesTheStateAndIsAnswered) {  // DGEN-1, DGEN-8, DGEN-18, DGEN-19
  auto visits = actors.of<Counter>("visits");
  EXPECT_EQ(visits.call(Add{2}).value(), 2);
  EXPECT_EQ(visits.call(Add{3}).value(), 5);
  EXPECT_EQ(visits.call(Get{}).value(), 5);
  EXPECT_EQ(visits.state().value()->count, 5);
}

TEST_F(ActorTest, ACastIsHandled) {  // DGEN-9, DGEN-25
  auto visits = actors.of<Counter>("visits");
  ASSERT_TRUE(visits.cast(Add{4}));
  EXPECT_EQ(visits.call(Get{}).value(), 4);
}

TEST_F(ActorTest, APushOnlyProcessIsServedByAnother) {  // DGEN-11, DGEN-17, DGEN-30
  Actors pusher = *Actors::open(store);
  EXPECT_EQ(pusher.of<Counter>("visits").call(Add{2}).value(), 2);
  ASSERT_TRUE(pusher.of<Counter>("visits").cast(Add{3}));
  EXPECT_EQ(pusher.of<Counter>("visits").call(Get{}).value(), 5);
}

TEST_F(ActorTest, WhatFailsIsTriedAgain) {
  EXPECT_EQ(actors.of<Counter>("a").call(Fail{2}).value(), 3);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1000);
}

TEST_F(ActorTest, WorkUnderTheLockIsCommitted) {  // DGEN-U11
  EXPECT_EQ(actors.of<Counter>("a").call(Slow{7}).value(), 7);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 7);
}

}  // namespace
}  // namespace perdure::actor
