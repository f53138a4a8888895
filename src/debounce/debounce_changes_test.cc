// What the feed of changes tells of debouncers.
#include <gmock/gmock.h>

#include "perdure/debounce.h"
#include "queue/queue_fixture.h"
#include "session/changes_test_text.h"

namespace perdure::debounce {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class DebounceChanges : public queue::QueueFixture {
 protected:
  DebounceChanges() { store = store_with_feed(); }
  /// Of debouncers, without the events that windows become.
  std::vector<std::string> told() {
    auto page = Changes::open(store, {.trim = false})->read({.limit = 1'000, .filter = {.debouncers = {"save"}}});
    return texts_of(page->changes);
  }
};

TEST_F(DebounceChanges, AWindowIsToldOfOnceAndNotForEachTouch) {
  Queue queue = open();
  Debouncers debouncers = *Debouncers::open(store);
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h, .max_count = 5}));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(debouncers.touch("save", "a", i));
  Claimed run = claim_one(queue, "save");
  ASSERT_TRUE(queue.complete(run.id, *run.token));
  ASSERT_TRUE(eventually([&] { return told().size() == 4; }));
  EXPECT_THAT(told(), ElementsAre("debouncer save set", "debouncer save/a waiting", "debouncer save/a fired x5",
                                  "debouncer save/a ended"));
}

TEST_F(DebounceChanges, WhatPeopleDoIsToldOf) {
  Debouncers debouncers = *Debouncers::open(store);
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  ASSERT_TRUE(debouncers.touch("save", "a"));
  EXPECT_TRUE(debouncers.cancel("save", "a").value());
  EXPECT_FALSE(debouncers.cancel("save", "a").value());
  ASSERT_TRUE(debouncers.pause("save"));
  ASSERT_TRUE(debouncers.unpause("save"));
  ASSERT_TRUE(debouncers.touch("save", "b"));
  ASSERT_TRUE(debouncers.remove("save"));
  EXPECT_THAT(told(), ElementsAre("debouncer save set", "debouncer save/a waiting", "debouncer save/a cancelled",
                                  "debouncer save paused", "debouncer save unpaused", "debouncer save/b waiting",
                                  "debouncer save removed", "debouncer save/b cancelled"));
}

}  // namespace
}  // namespace perdure::debounce
