// A sync that fails is final: the kernel may have dropped what it could not write, and a second sync would succeed.
#include <csignal>

#include "scratch.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

class FailedSync : public ::testing::TestWithParam<const char*> {
 protected:
  Scratch scratch_;
  std::string url_ = lmdb_url(scratch_ / "store");
};

TEST_P(FailedSync, EndsTheStoreOnceAndForAll) {
  Worker worker("armed");
  ASSERT_EQ(worker.ask("open " + url_), "ok");
  ASSERT_TRUE(worker.ask("set before durable").starts_with("ok"));
  ASSERT_EQ(worker.ask("arm " + std::string(GetParam()) + " 0"), "ok");
  constexpr int kBurst = 50;
  ASSERT_EQ(worker.ask("burst " + std::to_string(kBurst)), "ok");

  int unknown = 0, refused = 0, fatal = 0;
  while (unknown + refused < kBurst || fatal == 0) {
    auto event = worker.event();
    ASSERT_TRUE(event) << unknown << " unknown, " << refused << " refused, " << fatal << " fatal";
    if (event->starts_with("burst: error commit_unknown"))
      ++unknown;
    else if (event->starts_with("burst: error store_failed"))
      ++refused;
    else if (event->starts_with("fatal store_failed"))
      ++fatal;
    else
      FAIL() << *event;
  }
  EXPECT_GT(unknown, 0) << "those whose commit failed cannot know";
  EXPECT_TRUE(worker.ask("set later refused").starts_with("error store_failed"));
  EXPECT_TRUE(worker.ask("set again refused").starts_with("error store_failed"));
  EXPECT_TRUE(worker.ask("get before").starts_with("error store_failed"));
  EXPECT_EQ(worker.ask("syncs-after"), "ok 0") << "after a failed sync there is no second one";
  worker.end_input();
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_EQ(worker.event(), std::nullopt) << "on_fatal is called once";

  // What was durable before is safe, and starting again is the way on.
  Store store = must(Store::open(url_));
  EXPECT_EQ(get(store, "before"), "durable");
  EXPECT_EQ(get(store, "later"), std::nullopt);
  expect_sound(store);
  EXPECT_TRUE(set(store, "later", "accepted"));
}

TEST_P(FailedSync, EndsTheProcessUnlessToldOtherwise) {
  Worker worker("armed");
  ASSERT_EQ(worker.ask("open " + url_ + " fatal=abort log"), "ok");
  EXPECT_EQ(worker.event(), "log info store: the store is open url=" + url_);
  ASSERT_EQ(worker.ask("arm " + std::string(GetParam()) + " 3"), "ok");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.ask("set a " + std::to_string(i)).starts_with("ok"));
  worker.say("set a 3");
  EXPECT_EQ(worker.wait(), -SIGABRT);
  worker.gather(kPatience);
  auto told = worker.take_events();
  ASSERT_EQ(told.size(), 3u) << "the log, on_fatal, and then the host's own handler of SIGABRT";
  EXPECT_TRUE(told[0].starts_with("log error store: the store has failed")) << told[0];
  EXPECT_TRUE(told[1].starts_with("fatal store_failed")) << told[1];
  EXPECT_TRUE(told[2].starts_with("abort perdure: broken invariant: the store failed: cannot ")) << told[2];
  Store store = must(Store::open(url_));
  EXPECT_EQ(get(store, "a"), "2");
}

INSTANTIATE_TEST_SUITE_P(At, FailedSync, ::testing::Values("fdatasync", "meta"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(FailedSyncAfterDeath, IsFinalToo) {
  Scratch scratch;
  std::string url = lmdb_url(scratch / "store");
  Worker survivor("armed"), victim("lazy-meta");
  ASSERT_EQ(survivor.ask("open " + url), "ok");
  ASSERT_EQ(victim.ask("open " + url), "ok");
  ASSERT_EQ(survivor.ask("arm fdatasync 0"), "ok");
  // The victim dies with a commit that others see and that is not synced; the survivor has to sync it, and cannot.
  ASSERT_EQ(victim.ask("arm die-after-meta 0"), "ok");
  victim.say("set a unsynced");
  ASSERT_EQ(victim.wait(), -SIGKILL);
  // LMDB shows a commit to readers once its writer lock has been taken over: until then there is nothing to be seen.
  std::string seen = survivor.ask("get a");
  EXPECT_TRUE(seen == "ok (absent)" || seen.starts_with("error store_failed")) << "may be lost, and is shown: " << seen;
  EXPECT_TRUE(survivor.ask("set b c").starts_with("error"));
  EXPECT_TRUE(survivor.ask("get a").starts_with("error store_failed"));
  auto event = survivor.event();
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->starts_with("fatal store_failed")) << *event;
  EXPECT_EQ(survivor.ask("syncs-after"), "ok 0") << "after a failed sync there is no second one";
}

}  // namespace
}  // namespace perdure::e2e
