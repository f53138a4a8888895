// The turns of what falls due, one at a time: each does a bounded part, and says when there is more.
#include "queue/due.h"

#include "queue/emit.h"
#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

/// A node that promotes nothing by itself, and time as the test has it.
class Due : public QueueFixture {
 protected:
  Queue queue = open({.dispatch = false});
  WallTime later = WallTime(std::chrono::hours(24 * 365 * 100));

  DueTurn turn(DueTurn (*body)(Transaction&, WallTime), WallTime now) {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return body(txn, now);
    });
  }
  void emit_at(const std::string& worker, int count, DueTime at) {
    std::vector<NewEvent> events;
    for (int i = 0; i < count; ++i) events.push_back({worker, i, {.at = at}});
    ASSERT_TRUE(queue.emit_many(std::move(events)));
  }
  DueTime at(Duration before) { return due_at(later - before); }
};

TEST_F(Due, WithNothingToPromoteATurnSaysSo) {
  DueTurn nothing = turn(promote, later);
  EXPECT_FALSE(nothing.acted);
  EXPECT_FALSE(nothing.more);
  EXPECT_EQ(nothing.next, std::nullopt);
  emit_at("mail", 1, at(-1h));
  DueTurn waiting = turn(promote, later);
  EXPECT_FALSE(waiting.acted);
  EXPECT_FALSE(waiting.more);
  EXPECT_EQ(waiting.next, later + 1h);
}

TEST_F(Due, PromotesWhatIsDueAndSaysWhenTheNextIs) {
  emit_at("mail", 2, at(1h));
  emit_at("mail", 1, at(-2h));
  emit_at("other", 1, at(-1h));
  DueTurn done = turn(promote, later);
  EXPECT_TRUE(done.acted);
  EXPECT_FALSE(done.more);
  EXPECT_EQ(done.next, later + 1h) << "of whichever worker";
  EXPECT_EQ(info(queue, "mail").ready, 2U);
  EXPECT_EQ(info(queue, "mail").scheduled, 1U);
  EXPECT_EQ(info(queue, "mail").oldest, later - 1h) << "ready since it was due";
  EXPECT_EQ(rows(timetable()).size(), 2U);
  done = turn(promote, later + 2h);
  EXPECT_TRUE(done.acted);
  EXPECT_EQ(done.next, std::nullopt);
  EXPECT_EQ(rows(timetable()).size(), 0U);
  EXPECT_EQ(rows(head_key(worker_prefix("default", "mail"))).size(), 0U);
}

TEST_F(Due, AWorkerWithManyKeepsNoOtherWaiting) {
  emit_at("a", 200, at(2h));
  emit_at("b", 1, at(1h));
  DueTurn done = turn(promote, later);
  EXPECT_TRUE(done.more);
  EXPECT_EQ(info(queue, "a").ready, 64U) << "some of each";
  EXPECT_EQ(info(queue, "b").ready, 1U);
  int turns = 1;
  while (turn(promote, later).more) ++turns;
  EXPECT_EQ(info(queue, "a").ready, 200U);
  EXPECT_EQ(turns, 3);
  auto events = list(queue, {.worker = "a", .limit = 1000});
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].value, Value(static_cast<std::int64_t>(i)));
}

TEST_F(Due, ExactlyAsManyAsATurnTakesAreDoneInOne) {
  emit_at("a", 64, at(1h));
  DueTurn done = turn(promote, later);
  EXPECT_FALSE(done.more);
  EXPECT_EQ(info(queue, "a").ready, 64U);
  EXPECT_EQ(rows(timetable()).size(), 0U);
  emit_at("a", 65, at(1h));
  EXPECT_TRUE(turn(promote, later).more);
  EXPECT_FALSE(turn(promote, later).more);
}

TEST_F(Due, OfManyWorkersSomeAreDoneInATurn) {
  for (int i = 0; i < 20; ++i) emit_at("w" + std::to_string(i), 1, at(1h));
  EXPECT_TRUE(turn(promote, later).more);
  EXPECT_EQ(rows(timetable()).size(), 12U);
  EXPECT_TRUE(turn(promote, later).more);
  EXPECT_EQ(rows(timetable()).size(), 4U);
  EXPECT_FALSE(turn(promote, later).more);
  EXPECT_EQ(rows(timetable()).size(), 0U);
}

TEST_F(Due, OneThatIsSoonerMovesItsWorkerInTheTimetableAndRings) {
  auto bells = [&] {
    return *store.transact([](Transaction& txn) {
      SystemAccess access(txn);
      return decode_counter(txn.get(timetable_bell()));
    });
  };
  emit_at("mail", 1, at(1h));
  EXPECT_EQ(bells(), 1);
  emit_at("mail", 1, at(0h));
  EXPECT_EQ(bells(), 1) << "a later one changes nothing";
  emit_at("mail", 1, at(1h));
  EXPECT_EQ(bells(), 1) << "nor one of the same time";
  emit_at("mail", 1, at(2h));
  EXPECT_EQ(bells(), 2);
  EXPECT_EQ(rows(timetable()).size(), 1U);
  DueTurn before = turn(promote, later - 3h);
  EXPECT_EQ(before.next, later - 2h);
}

TEST_F(Due, AWorkerWhoseFirstWasCancelledIsLookedAtInVainOnce) {
  auto id = queue.emit("mail", 1, {.at = at(1h)})->id;
  emit_at("mail", 1, at(-1h));
  ASSERT_TRUE(queue.cancel(id));
  DueTurn done = turn(promote, later);
  EXPECT_EQ(done.next, later + 1h);
  EXPECT_EQ(info(queue, "mail").ready, 0U);
  ASSERT_TRUE(queue.cancel_all("mail"));
  EXPECT_EQ(turn(promote, later + 1h).next, std::nullopt);
  EXPECT_EQ(rows(timetable()).size(), 0U);
}

TEST_F(Due, DamageInTheIndexesIsTakenAwayAndTheRestIsPromoted) {
  auto id = queue.emit("mail", 1, {.at = at(1h)})->id;
  Bytes scheduled = scheduled_key(worker_prefix("default", "mail"));
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    std::int64_t ms = at(2h).time_since_epoch().count();
    for (std::uint32_t i = 0; i < 70; ++i)
      txn.set(tuple::pack_onto(scheduled, ms, Stamp{Version{1}, i}), encode_id(Uuid{}));
    txn.set(tuple::pack_onto(scheduled, ms, Stamp{Version{2}, 1}), encode_id(id));
    txn.set(tuple::pack_onto(scheduled, ms, Stamp{Version{2}, 2}), "damaged");
    txn.set(tuple::pack_onto(scheduled, ms, "no stamp"), encode_id(Uuid{}));
    txn.set(tuple::pack_onto(timetable(), ms, "half"), "");
    txn.set(tuple::pack_onto(deadlines(), ms, "half"), "");
    txn.set(tuple::pack_onto(forget_prefix(), ms, Stamp{Version{1}, 3}), "");
    txn.set(tuple::pack_onto(forget_prefix(), ms, Stamp{Version{1}, 4}), "e");
  }));
  while (turn(promote, later).more) {
  }
  EXPECT_EQ(info(queue, "mail").ready, 1U);
  EXPECT_EQ(rows(scheduled).size(), 0U);
  turn(expire, later);
  turn(forget, later);
  for (const Bytes& table : {timetable(), deadlines(), forget_prefix()}) EXPECT_EQ(rows(table).size(), 0U);
}

TEST_F(Due, ClaimsExpireSomeAtATime) {
  ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(300, {"hand", 1, {}})));
  ASSERT_EQ(queue.claim("hand", {.max = 300, .lock = 1h})->size(), 300U);
  DueTurn early = turn(expire, WallTime(1h));
  EXPECT_FALSE(early.acted);
  ASSERT_TRUE(early.next);
  DueTurn some = turn(expire, later);
  EXPECT_TRUE(some.acted);
  EXPECT_TRUE(some.more);
  EXPECT_EQ(info(queue, "hand").lost, 256U);
  DueTurn rest = turn(expire, later);
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(info(queue, "hand").ready, 300U);
  EXPECT_EQ(rows(deadlines()).size(), 0U);
}

TEST_F(Due, AnEntryOfAClaimThatWasExtendedOrEndedTakesNothingBack) {
  auto id = queue.emit("hand", 1)->id;
  Claimed claimed = claim_one(queue, "hand", {.max = 1, .lock = 24h * 365});
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    txn.set(tuple::pack_onto(deadlines(), 1, "default", id), "");
    txn.set(tuple::pack_onto(deadlines(), 1, "default", Uuid{}), "");
  }));
  EXPECT_TRUE(turn(expire, WallTime(1h)).acted);
  EXPECT_EQ(queue.get(id)->token, claimed.token);
  EXPECT_EQ(rows(deadlines()).size(), 1U);
}

TEST_F(Due, AUniqueKeyThatWasTakenAnewIsNotForgottenWithTheFirst) {
  auto emit_now = [&](WallTime now, std::uint64_t number) {
    auto event = prepare({"mail", 1, {.unique = UniqueKey{"report", 10min}}}, uuid_v7(1, 1, number));
    return *store.transact([&](Transaction& txn) { return emit_in(txn, "default", *event, now); });
  };
  EXPECT_FALSE(emit_now(later, 1).duplicate);
  EXPECT_FALSE(emit_now(later + 10min, 2).duplicate);
  EXPECT_TRUE(turn(forget, later + 11min).acted);
  EXPECT_TRUE(emit_now(later + 12min, 3).duplicate);
  EXPECT_TRUE(turn(forget, later + 20min).acted);
  EXPECT_EQ(rows(tuple::pack_onto(worker_prefix("default", "mail"), "u")).size(), 0U);
}

TEST_F(Due, ForgettingLooksAgainWithinAMinuteAndDoesSomeAtATime) {
  for (int i = 0; i < 258; ++i) ASSERT_TRUE(queue.cancel(queue.emit("mail", i)->id));
  DueTurn early = turn(forget, WallTime(1h));
  EXPECT_FALSE(early.acted);
  EXPECT_EQ(early.next, WallTime(1h) + 1min);
  DueTurn some = turn(forget, later);
  EXPECT_TRUE(some.more);
  EXPECT_EQ(rows(forget_prefix()).size(), 2U);
  DueTurn rest = turn(forget, later);
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(rest.next, later + 1min) << "nobody rings for it";
  EXPECT_EQ(rows(tuple::pack_onto(kSystemKeys, "event")).size(), 0U);
}

}  // namespace
}  // namespace perdure::queue
