// What the tests of the parts have in common that look at the feed of changes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perdure/changes.h"
#include "store/store_test_util.h"

namespace perdure {

/// "event mail running", with what else is known: "1." attempt, "x2" count, "+43" offset, "new" version, "(error)". Ids
/// of events are left out, for chance makes them.
inline std::string text_of(const Change& change) {
  std::string text = change.type + " " + change.name;
  if (change.type != "event" && !change.id.empty()) text += "/" + change.id;
  text += " " + change.state;
  if (change.attempt > 0) text += " " + std::to_string(change.attempt) + ".";
  if (change.count > 0) text += " x" + std::to_string(change.count);
  if (change.offset) text += " +" + std::to_string(*change.offset);
  if (change.version) text += " new";
  if (!change.error.empty()) text += " (" + change.error + ")";
  return text;
}

inline std::vector<std::string> texts_of(const std::vector<Change>& changes) {
  std::vector<std::string> texts;
  for (const Change& change : changes) texts.push_back(text_of(change));
  return texts;
}

/// All that is in the feed of a space.
inline std::vector<std::string> all_changes(Store& store, const std::string& space = "default") {
  auto changes = Changes::open(store, {.space = space, .trim = false});
  EXPECT_TRUE(changes) << to_string(changes.error());
  auto page = changes->read({.limit = 1'000});
  EXPECT_TRUE(page) << to_string(page.error());
  EXPECT_FALSE(page->more) << "the feed is too long for this";
  return texts_of(page->changes);
}

/// A store that writes the feed, which has begun.
inline Store store_with_feed() {
  Store store = fresh_store({.changes_kept = std::chrono::hours(1)});
  EXPECT_TRUE(Changes::open(store, {.trim = false}));
  return store;
}

}  // namespace perdure
