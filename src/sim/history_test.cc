#include "sim/history.h"

#include <gtest/gtest.h>

namespace perdure::sim {
namespace {

std::string error_of(std::string_view text) {
  Result<History> history = parse_history(text, "a.history");
  return history ? "none" : history.error().message;
}

Operation sample() {
  return {12, 1000, 2000, Ending::kOk, {append(7, 3), read(7, {1, 2, 3}), read(8, {})}};
}

TEST(HistoryWriter, WritesOneLineForEachRecord) {
  std::vector<std::string> lines;
  HistoryWriter writer([&](std::string_view line) { lines.emplace_back(line); });
  writer.invoke(sample());
  writer.complete(sample());
  writer.final_read(7, std::vector<Value>{1, 2, 3});
  EXPECT_EQ(lines, (std::vector<std::string>{"invoke 12 1000 a 7 3 r 7 ? r 8 ?\n",
                                             "ok 12 1000 2000 a 7 3 r 7 1,2,3 r 8 -\n", "final 7 1,2,3\n"}));
}

TEST(HistoryFile, WhatIsWrittenIsReadBack) {
  std::vector<Operation> operations = {sample(),
                                       {1, -5, 0, Ending::kFail, {append(1, 18446744073709551615u)}},
                                       {2, 7, kNever, Ending::kUnknown, {read(9), append(9, 0)}},
                                       {3, 8, 8, Ending::kOk, {}}};
  std::string text;
  HistoryWriter writer([&](std::string_view line) { text += line; });
  for (const Operation& operation : operations) {
    writer.invoke(operation);
    writer.complete(operation);
  }
  Result<History> history = parse_history(text, "a.history");
  ASSERT_TRUE(history) << history.error().message;
  ASSERT_EQ(history->size(), operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) EXPECT_EQ(history->operation(i), operations[i]) << i;
}

TEST(HistoryFile, InvocationWithoutCompletionIsUnknown) {
  Result<History> history = parse_history("invoke 1 10 a 7 1 r 7 ?\ninvoke 2 20 a 7 2\nok 2 20 30 a 7 2\n", "f");
  ASSERT_TRUE(history);
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ(history->txn(0).ending, Ending::kOk);
  EXPECT_EQ(history->txn(1).ending, Ending::kUnknown);
  EXPECT_EQ(history->operation(1).micro_ops, (std::vector{append(7, 1), read(7)}));
}

TEST(HistoryFile, EveryTornTailLeavesTheOperationsBeforeItAndTheTornOneUnknown) {
  const std::string whole = "invoke 1 10 a 7 1\nok 1 10 20 a 7 1\ninvoke 2 30 r 7 ?\n", last = "ok 2 30 40 r 7 1,12\n";
  for (std::size_t cut = 0; cut < last.size(); ++cut) {
    Result<History> history = parse_history(whole + last.substr(0, cut), "f");
    ASSERT_TRUE(history) << cut;
    ASSERT_EQ(history->size(), 2u);
    EXPECT_EQ(history->txn(1).ending, Ending::kUnknown) << cut;
  }
  EXPECT_EQ(parse_history(whole + last, "f")->txn(1).ending, Ending::kOk);
}

TEST(HistoryFile, OneProcessMayHaveSeveralOperationsUnderWay) {
  Result<History> history =
      parse_history("invoke 1 10 a 7 1\ninvoke 1 11 a 7 2\nok 1 10 20 a 7 1\nfail 1 11 21 a 7 2\n", "f");
  ASSERT_TRUE(history);
  EXPECT_EQ(history->size(), 2u);
}

TEST(HistoryFile, CommentsAndEmptyLinesAreIgnored) {
  EXPECT_EQ(parse_history("# seed 7\n\nok 1 1 2\n", "f")->size(), 1u);
}

TEST(HistoryFile, ErrorsNameTheLineAndWhatIsWrong) {
  EXPECT_EQ(error_of("ok 1 1 2\nok 1 x 4\n"), "a.history:2: 'x' where the time of invocation should be");
  EXPECT_EQ(error_of("done 1 1 2\n"), "a.history:1: 'done' is no kind of record");
  EXPECT_EQ(error_of("ok 1 1\n"), "a.history:1: the line ends where the time of completion should be");
  EXPECT_EQ(error_of("ok 1 5 4\n"), "a.history:1: the operation completed before it was invoked");
  EXPECT_EQ(error_of("ok 1 1 2 w 7 3\n"), "a.history:1: 'w' where the micro-op 'a' or 'r' should be");
  EXPECT_EQ(error_of("ok 1 1 2 a 7\n"), "a.history:1: the line ends where a value should be");
  EXPECT_EQ(error_of("ok 1 1 2 a 7 -1\n"), "a.history:1: '-1' where a value should be");
  EXPECT_EQ(error_of("ok 1 1 2 r 7 1,,2\n"), "a.history:1: '' where a list should be");
  EXPECT_EQ(error_of("ok 1 1 2 r 7 1,\n"), "a.history:1: '' where a list should be");
  EXPECT_EQ(error_of("ok 1 1 2  a 7 1\n"), "a.history:1: '' where the micro-op 'a' or 'r' should be");
  EXPECT_EQ(error_of("ok 1 1 99999999999999999999\n"),
            "a.history:1: '99999999999999999999' where the time of completion should be");
  EXPECT_EQ(error_of("final 7 ?\n"), "a.history:1: a final read is one key and its list");
  EXPECT_EQ(error_of("final 7 1,2 3\n"), "a.history:1: a final read is one key and its list");
  EXPECT_EQ(error_of("invoke 1 5\n\ninvoke 1 5\n"),
            "a.history:3: the same process invoked another operation at the same time in line 1, which has not "
            "completed");
}

TEST(History, MergeKeepsTheOperationsOfBoth) {
  History left = *parse_history("ok 1 1 2 a 7 1 r 7 1\n", "l"), right = *parse_history("ok 2 3 4 r 7 1,2 r 8 -\n", "r");
  left.merge(right);
  left.merge(*parse_history("final 7 1,2\n", "f"));
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left.operation(0).micro_ops, (std::vector{append(7, 1), read(7, {1})}));
  EXPECT_EQ(left.operation(1), right.operation(0));
  EXPECT_EQ(left.operation(2).micro_ops, (std::vector{read(7, {1, 2})}));
  EXPECT_TRUE(left.txn(2).is_final);
}

TEST(History, LongListsAreShownByTheirEnds) {
  std::vector<Value> list(100);
  for (Value i = 0; i < list.size(); ++i) list[i] = i;
  EXPECT_EQ(show_list(list), "[0 1 2 3 4 5 6 7 ... 92 93 94 95 96 97 98 99]");
  EXPECT_EQ(show_list(std::span(list).first(3)), "[0 1 2]");
}

}  // namespace
}  // namespace perdure::sim
