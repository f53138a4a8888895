// Ranges: bounds, directions and limits.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

using namespace std::string_literals;

/// a=0 b=1 c=2 d=3 e=4
void fill(Store& store) {
  must(store.transact([](Transaction& txn) {
    for (int i = 0; i < 5; ++i) txn.set(Bytes(1, static_cast<char>('a' + i)), std::to_string(i));
  }));
}

constexpr auto kReverse = Direction::kReverse;

TEST_P(Conformance, RangeAnswersItsRowsInKeyOrder) {
  fill(store());
  EXPECT_EQ(show(range({"b", "e"})), "b=1 c=2 d=3");
}

TEST_P(Conformance, ReverseRangeAnswersTheSameRowsBackwards) {
  fill(store());
  EXPECT_EQ(show(range({"b", "e"}, {.direction = kReverse})), "d=3 c=2 b=1");
}

TEST_P(Conformance, RangeHasItsBeginAndNotItsEnd) {
  fill(store());
  EXPECT_EQ(show(range({"b", "b\0"s})), "b=1");
  EXPECT_EQ(show(range({"b\0"s, "c"})), "");
  EXPECT_EQ(show(range({"b\0"s, "c\0"s})), "c=2");
  EXPECT_EQ(show(range({"b\0"s, "c\0"s}, {.direction = kReverse})), "c=2");
  EXPECT_EQ(show(range({"a", "c"}, {.direction = kReverse})), "b=1 a=0");
  EXPECT_EQ(show(range(single_key("d"))), "d=3");
}

TEST_P(Conformance, LimitTakesTheFirstRowsInTheDirectionOfReading) {
  fill(store());
  EXPECT_EQ(show(range({"b", ""}, {.limit = 2})), "b=1 c=2");
  EXPECT_EQ(show(range({"", "e"}, {.limit = 2, .direction = kReverse})), "d=3 c=2");
  EXPECT_EQ(show(range({}, {.limit = 5})), "a=0 b=1 c=2 d=3 e=4");
  EXPECT_EQ(show(range({}, {.limit = 6})), "a=0 b=1 c=2 d=3 e=4");
  EXPECT_EQ(show(range({}, {.limit = 0})), "");
}

TEST_P(Conformance, RangeThatEndsBeforeItBeginsIsEmpty) {
  fill(store());
  EXPECT_EQ(show(range({"d", "b"})), "");
  EXPECT_EQ(show(range({"d", "b"}, {.direction = kReverse})), "");
  EXPECT_EQ(show(range({"b", "b"})), "");
  must(store().transact([](Transaction& txn) { txn.clear_range({"d", "b"}); }));
  EXPECT_EQ(contents(), "a=0 b=1 c=2 d=3 e=4");
}

TEST_P(Conformance, RangeWithoutRowsIsEmpty) {
  EXPECT_EQ(show(range({})), "");
  fill(store());
  EXPECT_EQ(show(range({"x", "z"})), "");
  EXPECT_EQ(show(range({"x", ""}, {.direction = kReverse})), "");
  EXPECT_EQ(show(range({"", "a"}, {.direction = kReverse})), "");
}

TEST_P(Conformance, RangeWithoutBoundsIsEverything) {
  fill(store());
  EXPECT_EQ(contents(), "a=0 b=1 c=2 d=3 e=4");
  EXPECT_EQ(show(range({}, {.direction = kReverse})), "e=4 d=3 c=2 b=1 a=0");
}

TEST_P(Conformance, PrefixRangeHasTheKeysThatBeginWithIt) {
  must(store().transact([](Transaction& txn) {
    for (const Bytes& key : {"p"s, "p\0"s, "p/1"s, "p\xff"s, "p\xff\xff"s, "q"s, "o\xff"s}) txn.set(key, "v");
  }));
  EXPECT_EQ(keys_of(range(prefix_range("p"))), (std::vector<Bytes>{"p", "p\0"s, "p/1", "p\xff", "p\xff\xff"}));
  EXPECT_EQ(keys_of(range(prefix_range("p\xff"), {.direction = kReverse})), (std::vector<Bytes>{"p\xff\xff", "p\xff"}));
  EXPECT_EQ(keys_of(range(prefix_range(""))).size(), 7u);
}

TEST_P(Conformance, GetRangesAnswersInTheOrderOfItsReads) {
  fill(store());
  const std::vector<RangeRead> reads = {
      {{"c", ""}, {}}, {{"x", "y"}, {}}, {{}, {.limit = 2, .direction = kReverse}}, {{"a", "c"}, {}}};
  auto answers = must(store().read([&](Reader& reader) { return reader.get_ranges(reads); }));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(show(answers[0]), "c=2 d=3 e=4");
  EXPECT_EQ(show(answers[1]), "");
  EXPECT_EQ(show(answers[2]), "e=4 d=3");
  EXPECT_EQ(show(answers[3]), "a=0 b=1");
}

TEST_P(Conformance, RangesOfThousandsOfRowsCanBePagedThrough) {
  constexpr int kRows = 3000;
  must(store().transact([](Transaction& txn) {
    for (int i = 0; i < kRows; ++i) txn.set(numbered("k", i), std::to_string(i));
  }));
  for (Direction direction : {Direction::kForward, kReverse}) {
    int seen = 0;
    KeyRange rest = prefix_range("k");
    for (auto page = range(rest, {.limit = 700, .direction = direction}); !page.empty();
         page = range(rest, {.limit = 700, .direction = direction})) {
      for (const Row& row : page) {
        int expected = direction == kReverse ? kRows - 1 - seen : seen;
        ASSERT_EQ(row.key, numbered("k", expected));
        ++seen;
      }
      (direction == kReverse ? rest.end : rest.begin) =
          direction == kReverse ? page.back().key : single_key(page.back().key).end;
    }
    EXPECT_EQ(seen, kRows);
  }
}

TEST_P(Conformance, ClearRangeClearsItsRowsAndNoOthers) {
  fill(store());
  must(store().transact([](Transaction& txn) { txn.clear_range({"b", "d"}); }));
  EXPECT_EQ(contents(), "a=0 d=3 e=4");
  must(store().transact([](Transaction& txn) { txn.clear_range({}); }));
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, ClearInBatchesClearsWhatOneTransactionMayNot) {
  constexpr int kRows = 12'500;
  const Limits& limits = store().limits();
  ASSERT_GT(kRows, static_cast<int>(limits.clear_range_rows_max));
  must(store().transact([](Transaction& txn) {
    for (int i = 0; i < kRows; ++i) txn.set(numbered("k", i), "");
    txn.set("j", "before");
    txn.set("l", "after");
  }));
  auto refused = error_of(store().transact([](Transaction& txn) {
    txn.set("also", "not written");
    txn.clear_range(prefix_range("k"));
  }));
  EXPECT_EQ(refused.code, ErrorCode::kTooLarge);
  EXPECT_NE(refused.message.find("clear_in_batches"), std::string::npos) << refused.message;
  EXPECT_EQ(range({}, {.limit = 20'000}).size(), static_cast<std::size_t>(kRows + 2));
  EXPECT_EQ(must(store().clear_in_batches(prefix_range("k"))), static_cast<std::uint64_t>(kRows));
  EXPECT_EQ(contents(), "j=before l=after");
  EXPECT_EQ(must(store().clear_in_batches(prefix_range("k"))), 0u);
}

TEST_P(Conformance, ClearRangeOfExactlyTheBoundIsAllowed) {
  const int rows = static_cast<int>(store().limits().clear_range_rows_max);
  must(store().transact([&](Transaction& txn) {
    for (int i = 0; i < rows; ++i) txn.set(numbered("k", i), "");
  }));
  must(store().transact([](Transaction& txn) { txn.clear_range(prefix_range("k")); }));
  EXPECT_EQ(contents(), "");
}

}  // namespace
}  // namespace perdure::conformance
