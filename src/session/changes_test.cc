#include "perdure/changes.h"

#include <gmock/gmock.h>

#include <thread>

#include "runtime/latch.h"
#include "session/change_reader.h"
#include "session/changes_test_text.h"
#include "store/store_access.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kPatience = 20s;

class ChangesTest : public ::testing::Test {
 protected:
  /// Of the worker `name`, in one transaction.
  void note(std::vector<std::string> names) { note(std::move(names), now()); }
  void note(std::vector<std::string> names, WallTime at, const std::string& space = "default") {
    auto noted = store_.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      for (const std::string& name : names)
        access.note({.type = ChangeType::kWorker,
                     .state = ChangeState::kPaused,
                     .space = space,
                     .name = name,
                     .id = {},
                     .at = at});
      txn.set("something", names.front());
    });
    ASSERT_TRUE(noted) << to_string(noted.error());
  }
  WallTime now() { return StoreAccess::impl(store_).scheduler().wall_now(); }
  Changes open(ChangesOptions options = {.trim = false}) { return Changes::open(store_, std::move(options)).value(); }
  /// All of perdure's own, but for the one by which a handle on a server finds out about commits with lost answers.
  std::vector<Row> rows() {
    auto found = *store_.transact([](Transaction& txn) {
      SystemAccess access(txn);
      return txn.get_range(KeyRange{Bytes(kSystemKeys), {}});
    });
    std::erase_if(found, [](const Row& row) { return row.key.starts_with(Bytes(kSystemKeys) + "batch/"); });
    return found;
  }
  static std::vector<std::string> names_of(const ChangePage& page) {
    std::vector<std::string> names;
    for (const Change& change : page.changes) names.push_back(change.name);
    return names;
  }
  /// Reads to the end, in pages of `limit`.
  static std::vector<std::string> read_all(Changes& changes, std::string& cursor, std::size_t limit) {
    std::vector<std::string> names;
    for (bool more = true; more;) {
      auto page = changes.read({.after = cursor, .limit = limit});
      EXPECT_TRUE(page);
      EXPECT_FALSE(page->gap);
      for (std::string& name : names_of(*page)) names.push_back(std::move(name));
      cursor = page->next;
      more = page->more;
    }
    return names;
  }
  /// Waits for a turn of the trimming to have cleared something.
  void await_trim(Changes& changes, const std::string& first_left) {
    EXPECT_TRUE(eventually([&] {
      auto page = changes.read({.limit = 1});
      return first_left.empty() ? page->changes.empty() : names_of(*page) == std::vector{first_left};
    })) << "nothing was cleared";
  }

  Store store_ = store_with_feed();
};

TEST_F(ChangesTest, WithTheFeedOffThereIsNoRowAtAll) {
  store_ = fresh_store();
  note({"a", "b"});
  Changes changes = open({});
  EXPECT_THAT(rows(), IsEmpty());
  EXPECT_THAT(changes.read({})->changes, IsEmpty());
}

TEST_F(ChangesTest, TheChangesOfATransactionAreOneRow) {
  std::size_t before = rows().size();
  note(std::vector<std::string>(100, "a"));
  EXPECT_EQ(rows().size(), before + 2) << "the row, and the bell";
  EXPECT_EQ(open().read({.limit = 1'000})->changes.size(), 100U);
  note({"b"});
  EXPECT_EQ(rows().size(), before + 3);
}

TEST_F(ChangesTest, ATransactionThatFailsIsNotInIt) {
  auto failed = store_.transact([&](Transaction& txn) -> Result<void> {
    SystemAccess(txn).note({.space = "default", .name = "a", .id = {}, .at = now()});
    return fail(ErrorCode::kWrongState, "as the test wants it");
  });
  EXPECT_FALSE(failed);
  EXPECT_THAT(open().read({})->changes, IsEmpty());
}

TEST_F(ChangesTest, TheyAreInTheOrderOfTheCommits) {
  // Each takes the next number, so that the store orders them; the number is the name.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(store_.transact([&](Transaction& txn) {
          auto number = decode_counter(txn.get("number"));
          txn.set("number", encode_counter(number + 1));
          SystemAccess(txn).note({.space = "default", .name = std::to_string(number), .id = {}, .at = now()});
        }));
    });
  for (std::thread& thread : threads) thread.join();
  auto page = open().read({.limit = 1'000});
  ASSERT_EQ(page->changes.size(), 200U);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(page->changes[i].name, std::to_string(i));
    EXPECT_TRUE(i == 0 || page->changes[i - 1].cursor < page->changes[i].cursor) << "as texts";
  }
}

TEST_F(ChangesTest, GoingOnFromACursorMissesNothingAndRepeatsNothing) {
  Changes changes = open();
  for (std::size_t limit = 1; limit <= 4; ++limit) {
    std::string cursor = changes.latest().value();
    note({"a", "b", "c"});
    EXPECT_THAT(read_all(changes, cursor, limit), ElementsAre("a", "b", "c")) << limit;
    note({"d"});
    note({"e", "f"});
    EXPECT_THAT(read_all(changes, cursor, limit), ElementsAre("d", "e", "f")) << limit;
    EXPECT_THAT(read_all(changes, cursor, limit), IsEmpty());
    EXPECT_EQ(cursor, changes.latest().value());
  }
}

TEST_F(ChangesTest, EachChangeIsACursor) {
  note({"a", "b", "c"});
  Changes changes = open();
  auto page = changes.read({});
  ASSERT_EQ(page->changes.size(), 3U);
  EXPECT_THAT(names_of(*changes.read({.after = page->changes[0].cursor})), ElementsAre("b", "c"));
  EXPECT_THAT(names_of(*changes.read({.after = page->changes[1].cursor})), ElementsAre("c"));
  EXPECT_THAT(names_of(*changes.read({.after = page->changes[2].cursor})), IsEmpty());
}

TEST_F(ChangesTest, WhatIsNoCursorIsRefused) {
  Changes changes = open();
  for (std::string cursor : {"x", "0", "0000000000000000000000000000000g", "000000000000000000000000000000AB"})
    EXPECT_EQ(changes.read({.after = cursor}).error().code, ErrorCode::kInvalidArgument) << cursor;
  EXPECT_EQ(changes.in("no space").read({}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ChangesTest, SpacesAreApart) {
  note({"a"});
  note({"b"}, now(), "other");
  Changes changes = open();
  EXPECT_THAT(names_of(*changes.read({})), ElementsAre("a"));
  EXPECT_THAT(names_of(*changes.in("other").read({})), ElementsAre("b"));
}

TEST_F(ChangesTest, AFilterLetsThroughWhatFitsAnyOfIt) {
  auto noted = store_.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    for (ChangeType type : {ChangeType::kEvent, ChangeType::kWorker, ChangeType::kActor, ChangeType::kDebouncer,
                            ChangeType::kSchedule, ChangeType::kPartition})
      for (std::string_view name : {"a", "b"})
        access.note({.type = type, .space = "default", .name = name, .id = {}, .at = now()});
  });
  ASSERT_TRUE(noted);
  Changes changes = open();
  auto filtered = [&](ChangeFilter filter) {
    return texts_of(changes.read({.limit = 100, .filter = std::move(filter)})->changes);
  };
  EXPECT_EQ(filtered({}).size(), 12U);
  EXPECT_THAT(filtered({.workers = {"a"}}), ElementsAre("event a ready", "worker a ready"));
  EXPECT_THAT(filtered({.kinds = {"b"}, .debouncers = {"a"}}), ElementsAre("actor b ready", "debouncer a ready"));
  EXPECT_THAT(filtered({.schedules = {"a", "b"}, .partitions = {"c"}}),
              ElementsAre("schedule a ready", "schedule b ready"));
}

TEST_F(ChangesTest, APageThatItsFilterLeavesEmptyStillGoesOn) {
  for (int i = 0; i < 1'500; ++i) note({"a"});
  note({"b"});
  Changes changes = open();
  ChangeQuery query{.filter = {.workers = {"b"}}};
  auto page = changes.read(query);
  EXPECT_THAT(page->changes, IsEmpty());
  EXPECT_TRUE(page->more) << "it looks at a bounded number of rows";
  query.after = page->next;
  EXPECT_THAT(names_of(*changes.read(query)), ElementsAre("b"));
}

// Waiting.

TEST_F(ChangesTest, WhoWaitsIsWokenByTheNextOne) {
  Changes changes = open();
  Promise<std::vector<std::string>> woken;
  std::thread waiter([&, cursor = changes.latest().value()] {
    woken.set(names_of(changes.wait({.after = cursor, .filter = {.workers = {"b"}}}, kPatience).value()));
  });
  note({"a"});
  note({"b"});
  EXPECT_THAT(woken.take(), ElementsAre("b"));
  waiter.join();
}

TEST_F(ChangesTest, WaitingEndsInTime) {
  Changes changes = open();
  std::string cursor = changes.latest().value();
  auto page = changes.wait({.after = cursor}, 1ms);
  ASSERT_TRUE(page);
  EXPECT_THAT(page->changes, IsEmpty());
  EXPECT_EQ(page->next, cursor);
}

TEST_F(ChangesTest, NewsComeToWhoReadToTheEndWithoutBlocking) {
  Changes changes = open();
  note({"a"});
  Promise<Result<ChangePage>> read;
  changes.read_async({}, [&](Result<ChangePage> page) { read.set(std::move(page)); });
  auto page = read.take();
  ASSERT_TRUE(page);
  EXPECT_THAT(names_of(*page), ElementsAre("a"));
  EXPECT_FALSE(page->news.wait(Duration::zero()));
  note({"b"});
  EXPECT_TRUE(page->news.wait(kPatience));
  Promise<Result<std::string>> latest;
  changes.latest_async([&](Result<std::string> cursor) { latest.set(std::move(cursor)); });
  EXPECT_EQ(latest.take().value(), changes.read({.after = page->next})->changes[0].cursor);
}

// Gaps.

TEST_F(ChangesTest, WhoIsBehindWhatWasClearedIsTold) {
  note({"a", "a2"}, now() - 2h);
  note({"b", "b2"}, now() - 2h);
  note({"c"});
  Changes changes = open();
  auto all = changes.read({});
  ASSERT_EQ(all->changes.size(), 5U);
  Changes trimming = open({.trim = true});
  await_trim(changes, "c");
  for (std::size_t i = 0; i < 5; ++i) {
    auto page = changes.read({.after = all->changes[i].cursor});
    EXPECT_EQ(page->gap, i < 3) << i;
    EXPECT_EQ(page->changes.size(), i < 4 ? 1U : 0U) << i;
  }
  EXPECT_FALSE(changes.read({})->gap) << "who asks for all that is kept misses nothing";
}

TEST_F(ChangesTest, WhenAllIsClearedTheLatestIsStillNoGap) {
  note({"a"}, now() - 2h);
  Changes changes = open();
  std::string before = changes.latest().value();
  Changes trimming = open({.trim = true});
  await_trim(changes, "");
  EXPECT_EQ(changes.latest().value(), before);
  EXPECT_FALSE(changes.read({.after = before})->gap);
}

TEST_F(ChangesTest, OnlySoManyRowsAreKept) {
  for (int i = 0; i < 10; ++i) note({std::to_string(i)});
  note({"alone"}, now(), "other");
  Changes changes = open();
  Changes trimming = open({.trim = true, .rows_max = 3});
  await_trim(changes, "7");
  EXPECT_THAT(names_of(*changes.read({})), ElementsAre("7", "8", "9"));
  EXPECT_THAT(names_of(*changes.in("other").read({})), ElementsAre("alone"));
}

TEST_F(ChangesTest, ManyOldRowsAreClearedInSeveralTurns) {
  for (int i = 0; i < 2'500; ++i) note({"old"}, now() - 2h);
  note({"old too"}, now() - 2h, "other");
  note({"new"});
  Changes changes = open(), other = changes.in("other");
  Changes trimming = open({.trim = true});
  await_trim(changes, "new");
  await_trim(other, "");
  EXPECT_THAT(names_of(*changes.read({})), ElementsAre("new"));
}

TEST_F(ChangesTest, ACursorOfBeforeTheFeedWasBegunIsAGap) {
  store_ = fresh_store({.changes_kept = 1h});
  std::string before = session::ChangePosition{}.cursor();
  Changes changes = open();
  auto page = changes.read({.after = before});
  EXPECT_TRUE(page->gap);
  EXPECT_EQ(page->next, changes.latest().value());
  note({"a"});
  auto next = changes.read({.after = page->next});
  EXPECT_FALSE(next->gap);
  EXPECT_THAT(names_of(*next), ElementsAre("a"));
}

TEST_F(ChangesTest, ACursorFromTheFutureIsAGap) {
  note({"a"});
  Changes changes = open();
  auto page = changes.read({.after = session::ChangePosition{{Version{1'000'000}, 0}, 0}.cursor()});
  EXPECT_TRUE(page->gap);
  EXPECT_TRUE(page->more);
  EXPECT_THAT(names_of(*changes.read({.after = page->next})), ElementsAre("a"));
}

TEST_F(ChangesTest, ARowThatIsDamagedIsAGapAndNoEnd) {
  note({"a"});
  note({"b"});
  ASSERT_TRUE(store_.transact([](Transaction& txn) {
    SystemAccess access(txn);
    auto row = txn.get_range(tuple::extensions(changes_prefix("default")), {.limit = 1});
    txn.set(row[0].key, "x");
  }));
  auto page = open().read({});
  EXPECT_TRUE(page->gap);
  EXPECT_THAT(names_of(*page), ElementsAre("b"));
}

TEST_F(ChangesTest, TheBeginningStaysWhereItWas) {
  note({"a"});
  open();
  EXPECT_THAT(names_of(*open().read({})), ElementsAre("a"));
}

}  // namespace
}  // namespace perdure
