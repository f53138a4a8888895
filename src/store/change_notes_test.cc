#include "store/change_notes.h"

#include <gmock/gmock.h>

namespace perdure {
namespace {

using ::testing::ElementsAre;

const Uuid kId{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

ChangeNote event(ChangeState state) {
  return {.state = state, .space = "default", .name = "mail", .id = kId, .at = WallTime(Duration(7))};
}

/// The notes, as far as they are told apart here.
std::vector<std::string> read(BytesView row) {
  std::vector<std::string> out;
  EXPECT_TRUE(read_changes(row, [&](std::uint32_t index, const ChangeNote& note) {
    const Uuid* uuid = std::get_if<Uuid>(&note.id);
    out.push_back(std::to_string(index) + " " + std::string(name_of(note.type)) + " " + std::string(note.name) + " " +
                  (uuid ? to_string(*uuid) : std::string(std::get<std::string_view>(note.id))) + " " +
                  std::string(name_of(note.state)) + " " + std::to_string(note.attempt) + " " +
                  std::to_string(note.count) + " " + (note.offset ? std::to_string(*note.offset) : "-") + " " +
                  (note.rewritten ? "new" : "-") + " " + std::string(note.error) + "@" +
                  std::to_string(note.at.time_since_epoch().count()));
    return true;
  }));
  return out;
}

TEST(ChangeNotes, WhatIsNotedIsReadAgain) {
  ChangeNotes notes;
  notes.add(event(ChangeState::kRunning));
  ChangeNote failed = event(ChangeState::kFailed);
  failed.attempt = 300;
  failed.error = "no route";
  failed.at = WallTime(Duration(9));
  notes.add(failed);
  notes.add({.type = ChangeType::kActor,
             .state = ChangeState::kHandled,
             .space = "default",
             .name = "counter",
             .id = "a",
             .at = {},
             .count = 64,
             .rewritten = true});
  notes.add({.type = ChangeType::kPartition,
             .state = ChangeState::kAppended,
             .space = "default",
             .name = "p",
             .id = {},
             .at = {},
             .count = 2,
             .offset = UINT64_MAX});
  auto rows = notes.take();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].space, "default");
  EXPECT_THAT(
      read(rows[0].value),
      ElementsAre("0 event mail 01020304-0506-0708-090a-0b0c0d0e0f10 running 0 0 - - @9",
                  "1 event mail 01020304-0506-0708-090a-0b0c0d0e0f10 failed 300 0 - - no route@9",
                  "2 actor counter a handled 0 64 - new @9", "3 partition p  appended 0 2 18446744073709551615 - @9"));
  EXPECT_TRUE(notes.take().empty());
}

TEST(ChangeNotes, EachSpaceHasItsRow) {
  ChangeNotes notes;
  for (std::string_view space : {"a", "b", "a"}) {
    ChangeNote note = event(ChangeState::kReady);
    note.space = space;
    notes.add(note);
  }
  auto rows = notes.take();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(read(rows[0].value).size(), 2U);
  EXPECT_EQ(read(rows[1].value).size(), 1U);
}

TEST(ChangeNotes, AnEventMoreCostsAFewBytes) {
  ChangeNotes one, many;
  one.add(event(ChangeState::kReady));
  for (int i = 0; i < 101; ++i) many.add(event(ChangeState::kReady));
  EXPECT_LE(many.take()[0].value.size() - one.take()[0].value.size(), 100U * 20);
}

TEST(ChangeNotes, ARowThatIsFullIsFollowedByAnother) {
  ChangeNotes notes;
  ChangeNote failed = event(ChangeState::kFailed);
  std::string error(10'000, 'x');
  failed.error = error;
  for (int i = 0; i < 1'000; ++i) notes.add(failed);
  std::size_t count = 0;
  for (const auto& row : notes.take()) {
    EXPECT_LT(row.value.size(), 70'000U) << "only the beginning of a long error is kept";
    count += read(row.value).size();
  }
  EXPECT_EQ(count, 1'000U);
}

TEST(ChangeNotes, ALongErrorIsNotCutInTheMiddleOfACharacter) {
  ChangeNotes notes;
  ChangeNote failed = event(ChangeState::kFailed);
  std::string error = "x";
  while (error.size() < 600) error += "ä";
  failed.error = error;
  notes.add(failed);
  std::string kept;
  auto rows = notes.take();
  read_changes(rows[0].value, [&](std::uint32_t, const ChangeNote& note) {
    kept = note.error;
    return true;
  });
  EXPECT_EQ(kept, error.substr(0, 499));
}

TEST(ChangeNotes, ARowThatIsCutShortIsNotReadToItsEnd) {
  ChangeNotes notes;
  ChangeNote failed = event(ChangeState::kFailed);
  failed.attempt = 1;
  failed.error = "no route";
  notes.add(failed);
  Bytes row = notes.take()[0].value;
  auto nothing = [](std::uint32_t, const ChangeNote&) { return true; };
  EXPECT_TRUE(read_changes(row, nothing));
  for (std::size_t size = 0; size < row.size(); ++size)
    EXPECT_FALSE(read_changes(row.substr(0, size), nothing)) << size;
  row[0] = 2;
  EXPECT_FALSE(read_changes(row, nothing)) << "a format of the future";
}

}  // namespace
}  // namespace perdure
