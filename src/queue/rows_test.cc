// The bytes of the queue's rows are a contract: docs/internals/key_layout.md.
#include "queue/rows.h"

#include <gtest/gtest.h>

#include "queue/worker_table.h"

namespace perdure::queue {
namespace {

using namespace std::chrono_literals;

std::string hex(BytesView bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (char c : bytes) {
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

Uuid id(std::uint8_t first) {
  Uuid made;
  for (std::size_t i = 0; i < made.bytes.size(); ++i) made.bytes[i] = static_cast<std::uint8_t>(first + i);
  return made;
}

Given given() {
  return {
      .worker = "w",
      .module = "WORKER",
      .modifier = "_",
      .limit_key = "l",
      .unique_key = "u",
      .traceparent = "t",
      .retry =
          RetryPolicy{
              .delay = 1ns, .factor = 2, .max_delay = 3ns, .jitter = 4ns, .max = 5, .then = RetryPolicy::Then::kDrop},
      .apart_bytes = 0,
      .value = Value(7).encode()};
}

EventRow event() {
  EventRow row;
  row.state = Stored::kRunning;
  row.stamp = {Version{0x0102}, 3};
  row.priority = 4;
  row.retries = 5;
  row.attempts = 6;
  row.losses = 7;
  row.enqueued_at = wall_time(8);
  row.delay_until = DueTime(9ms);
  row.locked_at = wall_time(10);
  row.session = {{Version{11}, 12}};
  row.locked_until = DueTime(13ms);
  row.failures = {{14, wall_time(15), "e"}};
  row.set_given(given().encode());
  return row;
}

TEST(QueueRows, AnEventHasTheseBytes) {
  EXPECT_EQ(hex(event().encode_as_it_is()),
            "0163"                      // format, state
            "000000000000010200000003"  // stamp
            "04"
            "05000000"
            "06000000"
            "07000000"  // priority, retries, attempts, losses
            "0800000000000000"
            "0900000000000000"          // enqueued_at, delay_until
            "0a00000000000000"          // locked_at
            "000000000000000b0000000c"  // session
            "0d00000000000000"          // locked_until
            "11000000"                  // the size of the failures: attempt, time, size of the error, the error
            "0e000000"
            "0f00000000000000"
            "01000000"
            "65" +
                hex(given().encode()));
  EXPECT_EQ(hex(event().encode(9).filled(Version{0x0102})).substr(4, 24), "000000000000010200000009");
}

TEST(QueueRows, WhatIsGivenIsNamesThenATupleAndThenTheValue) {
  EXPECT_EQ(hex(given().encode()), "0101010000000000" + hex("wlu") +
                                       hex(tuple::pack("WORKER", "_", "t", true, 1, 2.0, 3, 4, 5, true)) +
                                       hex(Value(7).encode()));
  Given plain;
  plain.worker = "w";
  plain.apart_bytes = 250'000;
  plain.value = "not in the row";
  plain.told = true;
  EXPECT_EQ(hex(plain.encode()), "01000090d0030001" + hex("w") + hex(tuple::pack("WORKER", "_", "", false)));
}

TEST(QueueRows, AnEventComesBackAsItWas) {
  auto read = EventRow::decode(event().encode_as_it_is());
  ASSERT_TRUE(read);
  EventRow wanted = event();
  EXPECT_EQ(read->state, wanted.state);
  EXPECT_EQ(read->stamp, wanted.stamp);
  EXPECT_EQ(read->priority, wanted.priority);
  EXPECT_EQ(read->retries, wanted.retries);
  EXPECT_EQ(read->attempts, wanted.attempts);
  EXPECT_EQ(read->losses, wanted.losses);
  EXPECT_EQ(read->enqueued_at, wanted.enqueued_at);
  EXPECT_EQ(read->delay_until, wanted.delay_until);
  EXPECT_EQ(read->locked_at, wanted.locked_at);
  EXPECT_EQ(read->session, wanted.session);
  EXPECT_EQ(read->locked_until, wanted.locked_until);
  ASSERT_EQ(read->failures.size(), 1U);
  EXPECT_EQ(read->failures[0].attempt, 14);
  EXPECT_EQ(read->failures[0].at, wall_time(15));
  EXPECT_EQ(read->failures[0].error, "e");
  EXPECT_EQ(read->given(), wanted.given());
  EXPECT_EQ(read->names().worker, "w");
  EXPECT_EQ(read->names().limit_key, "l");
  EXPECT_EQ(read->names().unique_key, "u");
  EXPECT_EQ(read->names().apart_bytes, 0U);
  EXPECT_FALSE(read->names().told);
  auto back = Given::decode(read->given());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->worker, "w");
  EXPECT_EQ(back->module, "WORKER");
  EXPECT_EQ(back->modifier, "_");
  EXPECT_EQ(back->limit_key, "l");
  EXPECT_EQ(back->unique_key, "u");
  EXPECT_EQ(back->traceparent, "t");
  EXPECT_EQ(back->retry, given().retry);
  EXPECT_EQ(Value::decode(back->value), Value(7));
  wanted.locked_at.reset();
  wanted.locked_until.reset();
  wanted.failures.clear();
  read = EventRow::decode(wanted.encode_as_it_is());
  EXPECT_EQ(read->locked_at, std::nullopt);
  EXPECT_EQ(read->locked_until, std::nullopt);
  EXPECT_EQ(read->failures.size(), 0U);
}

TEST(QueueRows, AnEndHasTheseBytes) {
  EndedRow row{.how = EndedEvent::How::kDropped,
               .token = {Version{1}, 2},
               .attempts = 3,
               .finished_at = wall_time(4),
               .worker = "w",
               .last_error = "e",
               .result = Value(7).encode()};
  EXPECT_EQ(hex(row.encode()),
            "0165"
            "000000000000000100000002"
            "01"
            "03000000"
            "0400000000000000"
            "01000000"
            "77"
            "01000000"
            "65" +
                hex(Value(7).encode()));
  auto read = EndedRow::decode(row.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->how, row.how);
  EXPECT_EQ(read->token, row.token);
  EXPECT_EQ(read->attempts, 3U);
  EXPECT_EQ(read->finished_at, row.finished_at);
  EXPECT_EQ(read->worker, "w");
  EXPECT_EQ(read->last_error, "e");
  EXPECT_EQ(read->result, row.result);
}

TEST(QueueRows, SmallRowsHaveTheseBytes) {
  EXPECT_EQ(hex(encode_id(id(0x10))), "101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(hex(ReadyEntry{id(0x10), wall_time(1)}.encode()),
            "101112131415161718191a1b1c1d1e1f"
            "0100000000000000");
  EXPECT_EQ(hex(HeldClaims{"s", {id(0), id(1)}}.encode()), hex(tuple::pack("s", 2)) +
                                                               "000102030405060708090a0b0c0d0e0f"
                                                               "0102030405060708090a0b0c0d0e0f10");
  std::vector<Rule> rules = {
      {.id = 1, .type = Rule::Type::kBlock, .reason = "r", .by = "b", .since = wall_time(2), .until = DueTime(3ms)},
      {.id = 4, .type = Rule::Type::kPause, .reason = "", .by = "", .since = wall_time(5), .until = {}}};
  EXPECT_EQ(hex(encode_rules(rules)), hex(tuple::pack(1, 1, "r", "b", 2, 3) + tuple::pack(4, 0, "", "", 5, INT64_MIN)));
  WorkerSettings settings{.retry = {.delay = 1ns, .factor = 2, .max_delay = 3ns, .jitter = 4ns, .max = 5},
                          .rate = Rate{6, 7ns},
                          .limit_per_key = 8,
                          .retention = 9ns,
                          .losses_max = 10};
  EXPECT_EQ(hex(encode_settings(settings)), hex(tuple::pack(6, 7, 8, 9, 10, 1, 2.0, 3, 4, 5, false)));
  AttemptRecord record{.event = id(0),
                       .attempt = 1,
                       .outcome = AttemptRecord::Outcome::kLost,
                       .started = wall_time(2),
                       .ended = wall_time(3),
                       .value = {},
                       .result = {},
                       .error = "e"};
  RecordBlock block{258, {}};
  block.add(record, Value(4).encode(), {});
  auto sized = [](const Bytes& bytes) { return Bytes(1, static_cast<char>(bytes.size())) + Bytes(3, '\0') + bytes; };
  EXPECT_EQ(hex(block.encode()),
            hex(Bytes("\2\1\0\0\0\0\0\0", 8) + sized(tuple::pack(id(0), tuple::BlobView("e"), 1, 3, 2, 3)) +
                sized(Value(4).encode()) + sized({})));
  auto records = RecordBlock::decode(block.encode()).value().records();
  ASSERT_EQ(records.size(), 1U);
  const AttemptRecord* read = records.data();
  EXPECT_EQ(read->event, record.event);
  EXPECT_EQ(read->attempt, 1);
  EXPECT_EQ(read->outcome, record.outcome);
  EXPECT_EQ(read->started, record.started);
  EXPECT_EQ(read->ended, record.ended);
  EXPECT_EQ(read->value, Value(4));
  EXPECT_EQ(read->result, Value());
  EXPECT_EQ(read->error, "e");
  EXPECT_EQ(decode_settings(encode_settings(settings)).value(), settings);
  settings.rate.reset();
  EXPECT_EQ(decode_settings(encode_settings(settings)).value(), settings);
  auto decoded = decode_rules(encode_rules(rules));
  ASSERT_EQ(decoded->size(), 2U);
  EXPECT_EQ((*decoded)[0].type, Rule::Type::kBlock);
  EXPECT_EQ((*decoded)[0].until, DueTime(3ms));
  EXPECT_EQ((*decoded)[1].id, 4);
  EXPECT_EQ((*decoded)[1].until, std::nullopt);
}

TEST(QueueRows, KeysAreThoseOfTheLayout) {
  auto key = [](auto... parts) { return tuple::pack_onto(kSystemKeys, parts...); };
  Bytes prefix = worker_prefix("s", "w");
  EXPECT_EQ(prefix, key("queue", "s", "w"));
  EXPECT_EQ(event_key("s", id(1)), key("event", "s", id(1)));
  EXPECT_EQ(ready_key(prefix), key("queue", "s", "w", "r"));
  EXPECT_EQ(scheduled_key(prefix), key("queue", "s", "w", "t"));
  EXPECT_EQ(head_key(prefix), key("queue", "s", "w", "h"));
  EXPECT_EQ(dead_key(prefix), key("queue", "s", "w", "d"));
  EXPECT_EQ(slots_key(prefix, "k"), key("queue", "s", "w", "k", "k", "r"));
  EXPECT_EQ(waiting_key(prefix, "k"), key("queue", "s", "w", "k", "k", "w"));
  EXPECT_EQ(unique_key(prefix, "k"), key("queue", "s", "w", "u", "k"));
  EXPECT_EQ(counter_key(prefix, Counter::kIn), key("queue", "s", "w", "n", "in"));
  EXPECT_EQ(counter_key(prefix, Counter::kRecorded), key("queue", "s", "w", "n", "recorded"));
  EXPECT_EQ(rules_key(prefix), key("queue", "s", "w", "x"));
  EXPECT_EQ(settings_key(prefix), key("queue", "s", "w", "o"));
  EXPECT_EQ(rate_key(prefix), key("queue", "s", "w", "g"));
  EXPECT_EQ(ring_key(prefix), key("queue", "s", "w", "a"));
  EXPECT_EQ(servers_key(prefix), key("queue", "s", "w", "s"));
  EXPECT_EQ(timetable(), key("event-due"));
  EXPECT_EQ(timetable_bell(), key("event-due-bell"));
  EXPECT_EQ(deadlines(), key("claim-due"));
  EXPECT_EQ(deadlines_bell(), key("claim-due-bell"));
  EXPECT_EQ(forget_prefix(), key("forget"));
  EXPECT_EQ(recall_key({{Version{1}, 2}}), key("session", "held", Stamp{Version{1}, 2}, "recall"));
  EXPECT_EQ(rule_id_key(), key("rule-id"));
}

/// Whether any shorter version of `bytes` can still be read.
template <class F>
void expect_no_prefix_is_read(const Bytes& bytes, std::size_t complete, F read) {
  for (std::size_t size = 0; size < complete; ++size) EXPECT_FALSE(read(BytesView(bytes).substr(0, size))) << size;
}

TEST(QueueRows, DamagedRowsAreRefused) {
  Bytes row = event().encode_as_it_is();
  std::size_t given_size = given().encode().size();
  expect_no_prefix_is_read(row, row.size() - given_size, [](BytesView bytes) {
    auto read = EventRow::decode(Bytes(bytes));
    EXPECT_TRUE(read || read.error().code == ErrorCode::kCorrupt);
    return read.has_value();
  });
  Bytes other = row;
  other[0] = 2;
  EXPECT_FALSE(EventRow::decode(other)) << "another format";
  other = row;
  other[1] = 'e';
  EXPECT_FALSE(EventRow::decode(other)) << "an end is no event";
  EXPECT_FALSE(EndedRow::decode(row)) << "nor the other way round";
  Bytes packed = given().encode();
  expect_no_prefix_is_read(packed, packed.size() - Value(7).encode().size(),
                           [](BytesView bytes) { return Given::decode(bytes).has_value(); });
  EndedRow ended;
  ended.worker = "w";
  ended.last_error = "e";
  Bytes end = ended.encode();
  expect_no_prefix_is_read(end, end.size(), [](BytesView bytes) { return EndedRow::decode(bytes).has_value(); });
  other = end;
  other[0] = 2;
  EXPECT_FALSE(EndedRow::decode(other));
  EXPECT_FALSE(decode_id("short"));
  EXPECT_FALSE(decode_id(Bytes(17, 'x')));
  EXPECT_FALSE(ReadyEntry::decode(Bytes(23, 'x')));
  EXPECT_FALSE(ReadyEntry::decode(Bytes(25, 'x')));
  EXPECT_FALSE(HeldClaims::decode("damaged"));
  EXPECT_FALSE(decode_rules("damaged"));
  EXPECT_FALSE(decode_rules(tuple::pack(1, 1, "r"))) << "half a rule";
  Bytes settings = encode_settings({});
  expect_no_prefix_is_read(settings, settings.size(),
                           [](BytesView bytes) { return decode_settings(bytes).has_value(); });
  RecordBlock block;
  block.add({}, {}, {});
  Bytes one = block.bytes;
  expect_no_prefix_is_read(one, one.size(),
                           [](BytesView bytes) { return !RecordBlock{0, Bytes(bytes)}.records().empty(); });
  EXPECT_FALSE(RecordBlock::decode("short"));
  block.bytes.append("damage");
  EXPECT_EQ(block.records().size(), 1U) << "what stands before the damage is read";
  EXPECT_EQ(state_of(""), Stored{});
}

TEST(QueueRows, DueTimesAreComparedWithoutOverflow) {
  WallTime now = wall_time(1'500'000);  // 1.5 ms
  EXPECT_TRUE(is_due(DueTime(1ms), now));
  EXPECT_FALSE(is_due(DueTime(2ms), now));
  EXPECT_TRUE(is_due(DueTime(2ms), wall_time(2'000'000)));
  EXPECT_FALSE(is_due(kLastDueTime, WallTime::max()));
  EXPECT_TRUE(is_due(DueTime::min(), now));
  EXPECT_EQ(due_at(now), DueTime(2ms)) << "never earlier";
  EXPECT_EQ(due_after(now, 1ns), DueTime(3ms));
  EXPECT_EQ(due_after(WallTime::max(), Duration::max()),
            DueTime(std::chrono::ceil<std::chrono::milliseconds>(WallTime::max()).time_since_epoch() +
                    std::chrono::ceil<std::chrono::milliseconds>(Duration::max())));
}

}  // namespace
}  // namespace perdure::queue
