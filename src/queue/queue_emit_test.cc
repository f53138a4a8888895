// Emitting: what is refused and what is stored.
#include <algorithm>

#include "queue/emit.h"
#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueEmit : public QueueFixture {
 protected:
  std::optional<ErrorCode> refusal(Queue& queue, std::string_view worker, EmitOptions options) {
    return code_of(queue.emit(worker, 1, std::move(options)));
  }
  std::vector<Row> ready_rows(std::string_view worker, std::string_view space = "default") {
    return rows(ready_key(worker_prefix(space, worker)));
  }
};

// DARK-15
TEST_F(QueueEmit, DARK_15_ANewEventHasTheFieldsOfTheSeed) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail"));
  auto emitted = queue.emit("mail", Value::Map{{"to", "ann"}}, {.traceparent = "00-ab-cd-01"});
  ASSERT_TRUE(emitted);
  EXPECT_FALSE(emitted->duplicate);
  Event event = queue.get(emitted->id).value();
  EXPECT_EQ(event.id, emitted->id);
  EXPECT_EQ(event.space, "default");
  EXPECT_EQ(event.worker, "mail");
  EXPECT_EQ(event.value, Value(Value::Map{{"to", "ann"}}));
  EXPECT_EQ(event.retries, 0);
  EXPECT_EQ(event.attempts, 0);
  EXPECT_EQ(event.losses, 0);
  EXPECT_EQ(event.locked_at, std::nullopt);
  EXPECT_EQ(event.token, std::nullopt);
  EXPECT_EQ(event.owner, std::nullopt);
  EXPECT_EQ(event.priority, kPriorityDefault);
  EXPECT_EQ(event.traceparent, "00-ab-cd-01");
  EXPECT_GT(event.enqueued_at, WallTime{});
  EXPECT_EQ(event.delay_until, std::chrono::floor<std::chrono::milliseconds>(event.enqueued_at)) << "now";
  EXPECT_EQ(queue.get(Uuid{}).error().code, ErrorCode::kNotFound);
}

// DARK-U1
TEST_F(QueueEmit, DARK_U1_EventsOfWorkersHaveTheModifierUnderscore) {
  Queue queue = open();
  Event event = queue.get(queue.emit("mail", 1)->id).value();
  EXPECT_EQ(event.module, "WORKER");
  EXPECT_EQ(event.modifier, "_");
}

// DARK-39
TEST_F(QueueEmit, DARK_39_WhoeverEmitsTakesOneWayWithTheSameDefaults) {
  Queue queue = open();
  auto prepared = prepare({"mail", 7, {}}, uuid_v7(1, 2, 3), {"CRON", "Daily"});
  ASSERT_TRUE(prepared);
  Event own = queue.get(queue.emit("mail", 7)->id).value();
  WallTime now = own.enqueued_at;
  ASSERT_TRUE(store.transact([&](Transaction& txn) { emit_in(txn, "default", *prepared, now); }));
  Event other = queue.get(prepared->id).value();
  EXPECT_EQ(other.module, "CRON");
  EXPECT_EQ(other.modifier, "Daily");
  EXPECT_EQ(other.value, own.value);
  EXPECT_EQ(other.retries, own.retries);
  EXPECT_EQ(other.delay_until, own.delay_until);
  EXPECT_EQ(other.enqueued_at, own.enqueued_at);
  EXPECT_EQ(other.locked_at, own.locked_at);
  EXPECT_EQ(other.priority, own.priority);
}

// DARK-16
TEST_F(QueueEmit, DARK_16_SpaceAndWorkerSelectTheHandler) {
  Queue queue = open(), other = queue.in("other");
  std::atomic<int> here = 0, there = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++here; }));
  ASSERT_TRUE(other.work("mail", [&](Job& job) {
    EXPECT_EQ(job.event().space, "other");
    ++there;
  }));
  ended(other, other.emit("mail", 1)->id);
  ended(other, other.emit("mail", 2)->id);
  ended(queue, queue.emit("mail", 3)->id);
  EXPECT_EQ(here, 1);
  EXPECT_EQ(there, 2);
  EXPECT_EQ(other.space(), "other");
}

// DARK-U7
TEST_F(QueueEmit, DARK_U7_ASpaceThatWasNeverHeardOfIsNoError) {
  Queue queue = open(), nowhere = queue.in("nowhere");
  auto id = nowhere.emit("mail", 1)->id;
  EXPECT_EQ(nowhere.get(id)->state, EventState::kReady);
  EXPECT_EQ(code_of(queue.get(id)), ErrorCode::kNotFound) << "an event belongs to its space";
  EXPECT_EQ(info(nowhere, "mail").total, 1U);
  EXPECT_EQ(info(queue, "mail").total, 0U);
}

// DARK-20
TEST_F(QueueEmit, DARK_20_TheEntryThatTellsOfAnEventSaysNothingOfRetriesOrDelays) {
  Queue queue = open();
  auto ready = queue.emit("mail", 1)->id;
  auto later = queue.emit("mail", 1, {.delay = 1h})->id;
  auto entries = ready_rows("mail");
  ASSERT_EQ(entries.size(), 1U);
  auto entry = ReadyEntry::decode(entries[0].value);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->id, ready);
  EXPECT_EQ(entry->since, queue.get(ready)->enqueued_at);
  entries = rows(scheduled_key(worker_prefix("default", "mail")));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].value, encode_id(later));
}

TEST_F(QueueEmit, NamesAreChecked) {
  Queue queue = open();
  for (std::string name : {std::string(), std::string("two words"), std::string(65, 'x'), std::string("-x"),
                           std::string("a/b"), std::string("a\0b", 3), std::string("\xff")}) {
    EXPECT_EQ(code_of(queue.emit(name, 1)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.in(name).emit("mail", 1)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.work(name, [](Job&) {})), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.in(name).work("mail", [](Job&) {})), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.claim(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.in(name).claim("mail")), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.pause(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.unblock(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.in(name).pause("mail")), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.configure(name, {})), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.worker(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.list({.worker = name})), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.cancel_all(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(queue.redrive(name)), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(code_of(Queue::open(store, {.space = name})), ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_TRUE(queue.emit(std::string(64, 'x'), 1));
  EXPECT_TRUE(queue.emit("0.A_z:-", 1));
}

TEST_F(QueueEmit, WhatIsWrongWithTheOptionsIsRefusedAndNothingIsStored) {
  Queue queue = open();
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  DueTime soon{std::chrono::hours(24 * 365 * 80)};
  EXPECT_EQ(refusal(queue, "mail", {.delay = -1ns}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.delay = 1ns, .at = soon}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.at = kLastDueTime + 1ms}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.at = DueTime::max()}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.priority = -1}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.priority = 10}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.unique = UniqueKey{""}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.unique = UniqueKey{std::string(201, 'x')}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.unique = UniqueKey{"a\nb"}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.unique = UniqueKey{"x", 0ms}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.limit_key = std::string(201, 'x')}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.limit_key = "\xff"}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.traceparent = std::string(513, 'x')}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.traceparent = "\xff"}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.delay = -1ms}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.jitter = -1ms}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.delay = 2s, .max_delay = 1s}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.factor = 0.9}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.factor = 1001}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.factor = std::numeric_limits<double>::quiet_NaN()}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.max = -1}}), kWrong);
  EXPECT_EQ(refusal(queue, "mail", {.retry = RetryPolicy{.max = 1'000'001}}), kWrong);
  EXPECT_EQ(code_of(queue.emit("mail", "\xff")), kWrong) << "text that is no UTF-8";
  EXPECT_EQ(rows(tuple::pack_onto(kSystemKeys, "event")).size(), 0U);
  EXPECT_EQ(refusal(queue, "mail", {.at = kLastDueTime}), std::nullopt);
  EXPECT_EQ(refusal(queue, "mail",
                    {.retry = RetryPolicy{.delay = 1s, .factor = 1000, .max_delay = 1s, .max = 1'000'000},
                     .priority = 9,
                     .unique = UniqueKey{std::string(200, 'x'), 1ns},
                     .limit_key = std::string(200, 'x'),
                     .traceparent = std::string(512, 'x')}),
            std::nullopt);
}

TEST_F(QueueEmit, ValuesOfEverySizeComeBackAsTheyWere) {
  Queue queue = open();
  std::atomic<int> good = 0;
  ASSERT_TRUE(queue.work("back", [&](Job& job) {
    const std::string& text = *job.value().as_text();
    good += text == std::string(text.size(), text.empty() ? 'x' : text[0]);
    return Value(static_cast<std::int64_t>(text.size()));
  }));
  for (std::size_t encoded : {std::size_t{10}, kInlineBytes - 1, kInlineBytes, kInlineBytes + 1, kChunkBytes - 1,
                              kChunkBytes, kChunkBytes + 1, 2 * kChunkBytes, 3 * kChunkBytes + 1, kEventBytesMax}) {
    std::string text(encoded - 10, 'y');
    while (Value(text).encoded_size() < encoded) text += 'y';
    ASSERT_EQ(Value(text).encoded_size(), encoded);
    auto id = queue.emit("keep", text)->id;
    Event event = queue.get(id).value();
    EXPECT_EQ(event.value, Value(text)) << encoded;
    std::size_t chunks = rows(event_key("default", id)).size();
    EXPECT_EQ(chunks, encoded > kInlineBytes ? (encoded + kChunkBytes - 1) / kChunkBytes : 0) << encoded;
    auto run = queue.emit("back", text);
    EXPECT_EQ(ended(queue, run->id).result, Value(static_cast<std::int64_t>(text.size())));
    EXPECT_EQ(claim_one(queue, "keep").value, Value(text)) << encoded;
    ASSERT_TRUE(queue.cancel(id, Queue::Force::kYes));
    EXPECT_EQ(rows(event_key("default", id)).size(), 0U) << "the chunks go with their event";
    EXPECT_EQ(rows(event_key("default", run->id)).size(), 0U);
  }
  EXPECT_EQ(good, 10);
  auto refused = queue.emit("back", std::string(kEventBytesMax, 'x'));
  EXPECT_EQ(code_of(refused), ErrorCode::kTooLarge);
  EXPECT_NE(refused.error().message.find("1048576"), std::string::npos) << refused.error().message;
}

// DARK-B1
TEST_F(QueueEmit, DARK_B1_EmittingIsPartOfTheTransactionItIsIn) {
  Queue queue = open();
  Uuid made, refused;
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    txn.set("order", "1");
    made = queue.emit(txn, "mail", 1).id;
  }));
  auto failed = store.transact([&](Transaction& txn) -> Result<void> {
    txn.set("order", "2");
    refused = queue.emit(txn, "mail", 2, {.unique = UniqueKey{"two"}}).id;
    return fail(ErrorCode::kInvalidArgument, "the test does not want it");
  });
  EXPECT_FALSE(failed);
  EXPECT_TRUE(queue.get(made));
  EXPECT_EQ(code_of(queue.get(refused)), ErrorCode::kNotFound);
  EXPECT_EQ(info(queue, "mail").ready, 1U);
  EXPECT_FALSE(queue.emit("mail", 2, {.unique = UniqueKey{"two"}})->duplicate);
  auto wrong = store.transact([&](Transaction& txn) {
    txn.set("order", "3");
    queue.emit(txn, "mail", 3, {.priority = 11});
  });
  EXPECT_EQ(code_of(wrong), ErrorCode::kInvalidArgument) << "what is wrong makes it fail";
  EXPECT_EQ(*store.read([](Reader& reader) { return reader.get("order"); }), "1");
}

TEST_F(QueueEmit, ManyAreStoredTogetherAndInTheirOrder) {
  Queue queue = open();
  std::vector<NewEvent> events;
  for (int i = 0; i < 300; ++i) events.push_back({i % 3 == 0 ? "a" : "b", i, {}});
  auto emitted = queue.emit_many(events);
  ASSERT_TRUE(emitted);
  ASSERT_EQ(emitted->size(), 300U);
  EXPECT_TRUE(std::ranges::is_sorted(*emitted, {}, &Emitted::id)) << "ids of one node are in the order they were made";
  auto listed = list(queue, {.worker = "b", .limit = 1000});
  ASSERT_EQ(listed.size(), 200U);
  for (std::size_t i = 0; i + 1 < listed.size(); ++i) EXPECT_LT(listed[i].id, listed[i + 1].id);
  EXPECT_EQ(info(queue, "a").ready, 100U);
  events[299].options.delay = -1s;
  EXPECT_EQ(code_of(queue.emit_many(events)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(info(queue, "a").ready, 100U) << "all or none";
  EXPECT_EQ(queue.emit_many({})->size(), 0U);
  EXPECT_EQ(code_of(queue.emit_many(std::vector<NewEvent>(10'001, {"a", 1, {}}))), ErrorCode::kTooLarge);
  // An event as small as this takes less than 300 bytes of a transaction, of which etcd holds fewer.
  std::size_t most = std::min<std::size_t>(10'000, store.limits().transaction_bytes_max / 300);
  auto many = queue.emit_many(std::vector<NewEvent>(most, {"many", 1, {}}));
  ASSERT_TRUE(many) << to_string(many.error());
  EXPECT_EQ(many->size(), most);
}

TEST_F(QueueEmit, ATimeThatHasPassedIsNow) {
  Queue queue = open();
  for (DueTime past : {DueTime(0ms), DueTime(-1h), DueTime::min()}) {
    auto id = queue.emit("mail", 1, {.at = past})->id;
    Event event = queue.get(id).value();
    EXPECT_EQ(event.state, EventState::kReady);
    EXPECT_EQ(event.delay_until, past);
  }
}

}  // namespace
}  // namespace perdure::queue
