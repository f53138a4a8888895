// What the feed of changes tells of actors.
#include <gmock/gmock.h>

#include "actor/actor_fixture.h"
#include "session/changes_test_text.h"

namespace perdure::actor {
namespace {

using ::testing::ElementsAre;

class ActorChanges : public ActorFixture {
 protected:
  ActorChanges() { store = store_with_feed(); }
};

TEST_F(ActorChanges, WhatChangesAnActorIsToldOfAndWhatOnlyLooksIsNot) {
  Actors actors = node();
  auto a = actors.of<Counter>("a");
  ASSERT_EQ(a.call(Add{1}).value(), 1);
  ASSERT_EQ(a.call(Get{}).value(), 1);
  ASSERT_EQ(a.call(Add{2}).value(), 3);
  Stamp version = actors.actor("counter", "a").inspect()->version;
  ASSERT_TRUE(actors.actor("counter", "a").kill());
  EXPECT_THAT(all_changes(store), ElementsAre("actor counter/a created x1 new", "actor counter/a handled x1 new",
                                              "actor counter/a killed"));
  EXPECT_EQ(Changes::open(store)->read({})->changes[1].version, version);
}

TEST_F(ActorChanges, MessagesOfABatchAreOneChange) {
  Actors pusher = open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  Actors actors = node();
  ASSERT_TRUE(eventually([&] { return actors.actor("counter", "a").inspect()->mailbox_length == 0; }));
  std::uint64_t handled = 0;
  auto changes = Changes::open(store)->read({})->changes;
  EXPECT_LT(changes.size(), 20U);
  EXPECT_EQ(changes.front().state, "created");
  for (const Change& change : changes) handled += change.count;
  EXPECT_EQ(handled, 20U);
}

TEST_F(ActorChanges, ALockIsToldOfAndSoIsItsEnd) {
  Actors actors = node();
  ASSERT_EQ(actors.of<Counter>("a").call(Slow{5}).value(), 5);
  EXPECT_THAT(all_changes(store), ElementsAre("actor counter/a locked x1 new", "actor counter/a unlocked new"));
}

TEST_F(ActorChanges, ALockThatIsTakenAwayIsToldOfWithTheReason) {
  std::binary_semaphore began{0}, may_end{0}, ended{0};
  counter.hooks->locked = [&](perdure::Turn&) {
    began.release();
    may_end.acquire();
  };
  Actors actors = node();
  actors.of<Counter>("a").call_async(Slow{5}, {.timeout = 60s}, [&](const Result<std::int64_t>&) { ended.release(); });
  began.acquire();
  ASSERT_TRUE(actors.actor("counter", "a").unlock());
  may_end.release();
  ended.acquire();
  EXPECT_THAT(
      all_changes(store),
      ElementsAre("actor counter/a locked x1 new",
                  "actor counter/a unlocked new (the lock of default/counter/a was taken away by an operator)"));
}

TEST_F(ActorChanges, ADeadLetterIsToldOfWithItsError) {
  KindOptions options = quick();
  options.attempts_max = 2;
  Actors actors = node(options);
  ASSERT_TRUE(open().of<Counter>("a").cast(Fail{9}));
  ASSERT_TRUE(eventually([&] { return !all_changes(store).empty(); }));
  auto told = all_changes(store);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], ::testing::MatchesRegex("actor counter/a dead 2\\. .*not yet.*"));
}

}  // namespace
}  // namespace perdure::actor
