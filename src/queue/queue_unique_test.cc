// Ids and unique keys: what a second event of the same name becomes.
#include "queue/emit.h"
#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueUnique : public QueueFixture {};

TEST_F(QueueUnique, IdsAreOfVersionSevenAndGrow) {
  Queue queue = open();
  Uuid last;
  for (int i = 0; i < 100; ++i) {
    Uuid id = queue.emit("mail", i)->id;
    EXPECT_EQ(id.bytes[6] >> 4, 7);
    EXPECT_EQ(id.bytes[8] >> 6, 2);
    EXPECT_LT(last, id);
    last = id;
  }
  EXPECT_EQ(to_string(uuid_v7(0x0123456789ab, 0xfffff, ~0ULL)), "01234567-89ab-7fff-bfff-ffffffffffff");
  EXPECT_EQ(to_string(uuid_v7(0, 0x123, 0x0102030405060708)), "00000000-0000-7123-8102-030405060708");
}

TEST_F(QueueUnique, AnIdThatIsKnownMakesNoSecondEvent) {
  Queue queue = open();
  Uuid id = uuid_v7(1, 2, 3);
  auto first = queue.emit("mail", 1, {.id = id});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, id);
  EXPECT_FALSE(first->duplicate);
  auto second = queue.emit("mail", 2, {.id = id});
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->duplicate);
  EXPECT_EQ(queue.get(id)->value, Value(1));
  EXPECT_EQ(info(queue, "mail").total, 1U);
  EXPECT_EQ(code_of(queue.emit("other", 2, {.id = id})), ErrorCode::kInvalidArgument) << "it is that of another worker";
  ASSERT_TRUE(queue.cancel(id));
  EXPECT_TRUE(queue.emit("mail", 3, {.id = id})->duplicate) << "also while its end is remembered";
  EXPECT_EQ(code_of(queue.emit("other", 2, {.id = id})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(queue.emit_many({{"mail", 1, {.id = uuid_v7(2, 0, 0)}}, {"mail", 1, {.id = uuid_v7(2, 0, 0)}}})),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(queue.in("elsewhere").emit("other", 1, {.id = id})->duplicate) << "spaces have their own";
}

TEST_F(QueueUnique, AUniqueKeyIsTakenUntilItsEventHasEndedOrIsDead) {
  Queue queue = open();
  EmitOptions unique{.retry = RetryPolicy{.max = 0}, .unique = UniqueKey{"report"}};
  auto first = queue.emit("mail", 1, unique)->id;
  EXPECT_EQ(queue.get(first)->unique_key, "report");
  auto second = queue.emit("mail", 2, unique);
  EXPECT_TRUE(second->duplicate);
  EXPECT_EQ(second->id, first);
  EXPECT_FALSE(queue.emit("other", 2, unique)->duplicate) << "keys are those of a worker";
  EXPECT_FALSE(queue.emit("mail", 2, {.unique = UniqueKey{"reports"}})->duplicate);
  ASSERT_TRUE(queue.cancel_all("other"));
  auto claimed = claim_one(queue, "mail");
  EXPECT_TRUE(queue.emit("mail", 2, unique)->duplicate) << "also while it runs";
  ASSERT_TRUE(queue.fail(first, *claimed.token, "broken"));
  EXPECT_EQ(queue.get(first)->state, EventState::kDead);
  auto third = queue.emit("mail", 3, unique);
  EXPECT_FALSE(third->duplicate);
  ASSERT_EQ(*queue.redrive("mail"), 1U);
  ASSERT_TRUE(queue.cancel(first));
  EXPECT_EQ(queue.emit("mail", 4, unique)->id, third->id) << "the end of another frees nothing";
  ASSERT_TRUE(queue.cancel(third->id));
  EXPECT_FALSE(queue.emit("mail", 5, unique)->duplicate);
}

TEST_F(QueueUnique, UniqueKeysHoldWithinOneTransaction) {
  Queue queue = open();
  auto emitted = queue.emit_many({{"mail", 1, {.unique = UniqueKey{"x"}}},
                                  {"mail", 2, {.unique = UniqueKey{"x"}}},
                                  {"mail", 3, {.unique = UniqueKey{"y"}}}});
  ASSERT_TRUE(emitted);
  EXPECT_FALSE((*emitted)[0].duplicate);
  EXPECT_TRUE((*emitted)[1].duplicate);
  EXPECT_EQ((*emitted)[1].id, (*emitted)[0].id);
  EXPECT_FALSE((*emitted)[2].duplicate);
  EXPECT_EQ(info(queue, "mail").total, 2U);
}

TEST_F(QueueUnique, AnIdTwiceInOneTransactionOfTheCallersIsRefusedAndNotStoredTwice) {
  Queue queue = open();
  auto twice = store.transact([&](Transaction& txn) {
    queue.emit(txn, "mail", 1, {.id = uuid_v7(1, 2, 3)});
    queue.emit(txn, "mail", 2, {.id = uuid_v7(1, 2, 3)});
  });
  EXPECT_EQ(code_of(twice), ErrorCode::kInvalidArgument);
  EXPECT_EQ(info(queue, "mail").total, 0U);
}

TEST_F(QueueUnique, AKeyWithATimeOfItsOwnIsFreeThenWhetherItWasForgottenOrNot) {
  Queue queue = open({.dispatch = false});
  WallTime start(std::chrono::hours(24 * 365 * 60));
  auto emit_at = [&](WallTime now, std::uint64_t number) {
    auto event = prepare({"mail", 1, {.unique = UniqueKey{"report", 10min}}}, uuid_v7(1, 1, number));
    return *store.transact([&](Transaction& txn) { return emit_in(txn, "default", *event, now); });
  };
  Uuid first = emit_at(start, 1).id;
  EXPECT_EQ(emit_at(start + 10min - 1ms, 2).id, first);
  Emitted second = emit_at(start + 10min, 3);
  EXPECT_FALSE(second.duplicate);
  EXPECT_EQ(emit_at(start + 19min, 4).id, second.id);
}

}  // namespace
}  // namespace perdure::queue
