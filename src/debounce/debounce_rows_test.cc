// The bytes of debouncers in the store, which are a contract: docs/internals/key_layout.md.
#include <gtest/gtest.h>

#include "debounce/merge.h"
#include "debounce/rows.h"

namespace perdure::debounce {
namespace {

using namespace std::chrono_literals;

WallTime at(std::int64_t ns) {
  return WallTime(Duration(ns));
}

TEST(DebounceRows, KeysAreThese) {
  auto key = [](const auto&... parts) { return tuple::pack_onto(kSystemKeys, parts...); };
  Place place{"s", "d", "k"};
  EXPECT_EQ(debouncer_key("s", "d"), key("debounce", "s", "d"));
  EXPECT_EQ(window_key(place.prefix()), key("window", "s", "d", "k", "f"));
  EXPECT_EQ(run_key(place.prefix()), key("window", "s", "d", "k", "r"));
  Bytes content = content_key(place.prefix());
  EXPECT_EQ(latest_key(content), key("window", "s", "d", "k", "c", "l"));
  EXPECT_EQ(count_key(content), key("window", "s", "d", "k", "c", "n"));
  EXPECT_EQ(payload_key(content), key("window", "s", "d", "k", "c", "v"));
  EXPECT_EQ(bytes_key(content), key("window", "s", "d", "k", "c", "b"));
  EXPECT_EQ(payloads_key(content), key("window", "s", "d", "k", "c", "p"));
  EXPECT_EQ(place.due(DueTime(7ms)), key("window-due", 7, "s", "d", "k"));
  EXPECT_EQ(place.held(), key("window-held", "s", "d", "k"));
  EXPECT_EQ(queue::told_key("M", "s", "d/k", Uuid()), key("told", "M", "s", "d/k", Uuid()));
}

TEST(DebounceRows, RowsHaveTheseBytesAndAreReadBack) {
  DebouncerRow row;
  row.settings = {
      .quiet = 1ns,
      .max_wait = 2ns,
      .window = {},
      .max_count = 4,
      .edge = Edge::kBoth,
      .payload = Payload::kMerge,
      .worker = "w",
      .back_off = {
          .delay = 5ns, .factor = 1.5, .max_delay = 6ns, .jitter = 7ns, .max = 8, .then = RetryPolicy::Then::kDrop}};
  Bytes settings = tuple::pack(1, 1, 2, INT64_MIN, 4, 2, 3, "w", 5, 1.5, 6, 7, 8, true);
  EXPECT_EQ(row.encode(), settings + tuple::pack(false));
  EXPECT_EQ(DebouncerRow::decode(row.encode())->settings, row.settings);
  EXPECT_FALSE(DebouncerRow::decode(row.encode())->paused);
  row.paused = SchedulePause{"b", "r", at(9)};
  EXPECT_EQ(row.encode(), settings + tuple::pack(true, "b", "r", 9));
  auto read = DebouncerRow::decode(row.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->paused->by, "b");
  EXPECT_EQ(read->paused->reason, "r");
  EXPECT_EQ(read->paused->since, at(9));

  WindowRow window{at(1), DueTime(2ms), true};
  EXPECT_EQ(window.encode(), tuple::pack(1, 1, 2, true));
  EXPECT_EQ(WindowRow::decode(window.encode())->first, at(1));
  EXPECT_EQ(WindowRow::decode(window.encode())->due, DueTime(2ms));
  EXPECT_TRUE(WindowRow::decode(window.encode())->led);
  EXPECT_EQ((WindowRow{at(1), {}, false}.encode()), tuple::pack(1, 1, INT64_MIN, false));
  EXPECT_FALSE(WindowRow::decode(tuple::pack(1, 1, INT64_MIN, false))->due);

  LatestRow latest{at(0x0102), "payload"};
  EXPECT_EQ(latest.encode(), Bytes("\2\1\0\0\0\0\0\0payload", 15));
  EXPECT_EQ(LatestRow::decode(latest.encode())->time, at(0x0102));
  EXPECT_EQ(LatestRow::decode(latest.encode())->payload, "payload");
}

TEST(DebounceRows, DamageIsNoticed) {
  Bytes row = DebouncerRow{}.encode();
  for (std::size_t size = 0; size < row.size(); ++size)
    EXPECT_FALSE(DebouncerRow::decode(BytesView(row).substr(0, size))) << size;
  EXPECT_FALSE(DebouncerRow::decode(row + "x"));
  Bytes window = WindowRow{}.encode();
  for (std::size_t size = 0; size < window.size(); ++size)
    EXPECT_FALSE(WindowRow::decode(BytesView(window).substr(0, size))) << size;
  EXPECT_FALSE(WindowRow::decode(window + "x"));
  EXPECT_FALSE(WindowRow::decode(tuple::pack(2, 1, 2, true))) << "another format";
  EXPECT_FALSE(LatestRow::decode("short"));
}

// The examples of RFC 7396.
TEST(MergePatch, DoesAsTheRfcHasIt) {
  auto map = [](Value::Map entries) { return Value(std::move(entries)); };
  EXPECT_EQ(merge_patch(map({{"a", "b"}}), map({{"a", "c"}})), map({{"a", "c"}}));
  EXPECT_EQ(merge_patch(map({{"a", "b"}}), map({{"b", "c"}})), map({{"a", "b"}, {"b", "c"}}));
  EXPECT_EQ(merge_patch(map({{"a", "b"}}), map({{"a", nullptr}})), map({}));
  EXPECT_EQ(merge_patch(map({{"a", Value::List{"b"}}}), map({{"a", "c"}})), map({{"a", "c"}}));
  EXPECT_EQ(merge_patch(map({{"a", "c"}}), map({{"a", Value::List{"b"}}})), map({{"a", Value::List{"b"}}}));
  EXPECT_EQ(merge_patch(map({{"a", map({{"b", "c"}})}}), map({{"a", map({{"b", "d"}, {"c", nullptr}})}})),
            map({{"a", map({{"b", "d"}})}}));
  EXPECT_EQ(merge_patch(Value::List{1}, map({{"a", 1}})), map({{"a", 1}}));
  EXPECT_EQ(merge_patch(map({{"a", 1}}), Value::List{1}), Value(Value::List{1}));
  EXPECT_EQ(merge_patch(map({{"a", 1}}), nullptr), Value());
  EXPECT_EQ(merge_patch(nullptr, map({{"a", map({{"b", nullptr}})}})), map({{"a", map({})}}));
}

}  // namespace
}  // namespace perdure::debounce
