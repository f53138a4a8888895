// The feed of changes across processes: what each of them does is seen by all, in one order.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "perdure/changes.h"
#include "perdure/queue.h"
#include "scratch.h"

namespace perdure::e2e {
namespace {

using namespace std::chrono_literals;

constexpr int kEvents = 200;

/// Whether all were emitted, one after the other.
bool emit_all(Store& store, const std::string& worker) {
  auto queue = Queue::open(store, {.dispatch = false});
  for (int i = 0; i < kEvents; ++i)
    if (!queue || !queue->emit(worker, i)) return false;
  return true;
}

TEST(ChangesProcesses, WhatTwoProcessesDoIsAllSeenByOneThatWaits) {
  Scratch scratch;
  const std::string url = "lmdb:" + (scratch / "store");
  const StoreOptions options{.changes_kept = 1h};
  auto store = Store::open(url, options);
  ASSERT_TRUE(store) << to_string(store.error());
  auto changes = Changes::open(*store);
  ASSERT_TRUE(changes);
  std::string cursor = changes->latest().value();
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto own = Store::open(url, options);
    _exit(own && emit_all(*own, "theirs") ? 0 : 1);
  }
  EXPECT_TRUE(emit_all(*store, "ours"));
  std::map<std::string, int> seen;
  std::string last = cursor;
  while (seen["ours"] + seen["theirs"] < 2 * kEvents) {
    auto page = changes->wait({.after = cursor}, 30s);
    ASSERT_TRUE(page) << to_string(page.error());
    ASSERT_FALSE(page->changes.empty()) << "after " << seen["ours"] << " and " << seen["theirs"];
    EXPECT_FALSE(page->gap);
    for (const Change& change : page->changes) {
      EXPECT_LT(last, change.cursor);
      last = change.cursor;
      ++seen[change.name];
    }
    cursor = page->next;
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(seen, (std::map<std::string, int>{{"ours", kEvents}, {"theirs", kEvents}}));
  EXPECT_TRUE(changes->read({.after = cursor})->changes.empty());
}

}  // namespace
}  // namespace perdure::e2e
