// Folding on etcd goes in chunks: who may write them, and what is left when somebody dies or is slow in between.
#include <atomic>
#include <thread>

#include "etcd_fixture.h"

namespace perdure::e2e {
namespace {

using remote::Fold;
using remote::FoldedRow;
using remote::Moment;

class EtcdFoldTest : public EtcdTest {
 protected:
  EtcdFoldTest() {
    for (std::uint64_t i = 0; i < 10; ++i) append(*server_, i, entry(i + 1));
  }
  std::string folder() { return cluster_.ctl({"get", "perdure/folder", "--print-value-only"}); }
  static Fold fold(std::uint64_t from, std::uint64_t to, std::vector<FoldedRow> rows = {}) {
    return {Version{from}, {{to}}, Version{from}, std::move(rows)};
  }

  ServerPtr server_ = open();
};

TEST_F(EtcdFoldTest, NobodyIsLeftAsTheFolder) {
  EXPECT_TRUE(must(server_->fold(fold(0, 5, {row("a", "1", 5)}))));
  EXPECT_EQ(folder(), "");
  EXPECT_FALSE(must(server_->fold(fold(0, 7))));
  EXPECT_EQ(folder(), "");
  EXPECT_TRUE(must(server_->fold(fold(5, 5)))) << "that only trims";
  EXPECT_EQ(versions_of(look(*server_, 5)), "6 7 8 9 10");
}

TEST_F(EtcdFoldTest, WhatIsTrimmedStaysSo) {
  ASSERT_TRUE(must(server_->fold(fold(0, 4))));
  ASSERT_TRUE(must(server_->fold(fold(4, 6))));
  ASSERT_TRUE(must(server_->fold({Version{6}, {{7}}, Version{1}, {}})));
  Moment moment = look(*server_, 2);
  EXPECT_EQ(moment.trimmed.number, 4u);
  EXPECT_EQ(versions_of(moment), "8 9 10");
}

TEST_F(EtcdFoldTest, AFolderThatIsAtWorkIsLeftAlone) {
  for (int i = 0; i < 3; ++i) {
    cluster_.ctl({"put", "perdure/folder", "another"});
    EXPECT_FALSE(must(server_->fold(fold(0, 5)))) << "it was seen to change";
  }
  EXPECT_EQ(look(*server_).folded.number, 0u);
}

TEST_F(EtcdFoldTest, AFolderThatDiedIsReplacedInAFewSeconds) {
  cluster_.ctl({"put", "perdure/folder", "another"});
  const SteadyTime began = steady_now();
  EXPECT_FALSE(must(server_->fold(fold(0, 5))));
  EXPECT_TRUE(within(std::chrono::seconds(20), [this] { return must(server_->fold(fold(0, 5))); }));
  EXPECT_GE(steady_now() - began, std::chrono::seconds(4));
  EXPECT_EQ(look(*server_).folded.number, 5u);
}

// The marks of one fold are of no use to another, though it is of the same process: a chunk may be late.
TEST_F(EtcdFoldTest, EachFoldHasAMarkOfItsOwn) {
  etcd::Layout layout("perdure");
  etcd::Url url = must(etcd::parse_url(cluster_.url()));
  auto client = must(etcd::Client::make(url, {}));
  Heard marks, heard;
  std::jthread watching([&] {
    client->watch(layout.folder(), layout.folder(), [&](const etcd::KeyValue* mark) {
      if (mark) marks.add(mark->value);
      heard.add(mark ? "mark" : "ready");
    });
  });
  EXPECT_TRUE(heard.wait_for("ready"));
  etcd::Folder folder(*client, layout, etcd::Folder::Compaction::kOff);
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(must(folder.fold(fold(i, i + 1))));
    EXPECT_TRUE(heard.wait_for("mark"));
  }
  client->stop_watching();
  watching.join();
  auto seen = marks.all();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].substr(0, 16), seen[1].substr(0, 16)) << "of one object";
  EXPECT_NE(seen[0], seen[1]);
}

// Whoever has lost its mark writes no chunk more: by now another may have folded further.
TEST_F(EtcdFoldTest, AFolderThatIsReplacedStopsWriting) {
  etcd::Layout layout("perdure");
  auto client = must(etcd::Client::make(must(etcd::parse_url(cluster_.url())), {}));
  Heard heard;
  std::jthread watching([&] {
    client->watch(layout.folder(), layout.folder(),
                  [&](const etcd::KeyValue* mark) { heard.add(mark ? "mark" : "ready"); });
  });
  EXPECT_TRUE(heard.wait_for("ready"));
  constexpr std::uint64_t kRows = 20'000;
  std::vector<FoldedRow> rows;
  for (std::uint64_t i = 0; i < kRows; ++i) rows.push_back(row(std::to_string(10'000 + i), "late", 5));
  std::jthread replacing([&] {
    EXPECT_TRUE(heard.wait_for("mark"));
    EXPECT_TRUE(client->write({.then = {etcd::Put{layout.folder(), "another"}}}));
  });
  EXPECT_FALSE(must(server_->fold(fold(0, 5, rows))));
  client->stop_watching();
  Moment moment = look(*server_, 10, {rows.front().key, rows.back().key});
  EXPECT_FALSE(moment.values[1]);
  EXPECT_EQ(moment.folded.number, 0u);
  EXPECT_EQ(folder(), "another\n");
}

// Whatever two that fold against each other do, the rows with the log are what was appended last.
TEST_F(EtcdFoldTest, InterleavedFoldersLeaveNoStaleRow) {
  constexpr std::uint64_t kRounds = 12, kRows = 250;
  auto rows_at = [](std::uint64_t version) {
    std::vector<FoldedRow> rows;
    for (std::uint64_t i = 0; i < kRows; ++i)
      rows.push_back((i + version) % 7 == 0 ? FoldedRow{std::to_string(1'000 + i), {}}
                                            : row(std::to_string(1'000 + i), std::to_string(version), version));
    return rows;
  };
  std::atomic<std::uint64_t> won = 0;
  auto work = [&] {
    auto server = open();
    for (std::uint64_t at = 0; at < kRounds;) {
      won += must(server->fold({Version{at}, {{at + 1}}, Version{at}, rows_at(at + 1)}));
      at = look(*server).folded.number;
      // At each moment, a row is of the version that is folded, or of one that the log still has.
      Moment moment = look(*server, 0, {}, {{KeyRange{}}});
      for (const Row& each : moment.ranges[0]) {
        ASSERT_EQ(each.value, std::to_string(each.version.number));
        ASSERT_GE(each.version, moment.folded);
      }
    }
  };
  for (std::uint64_t i = 10; i < kRounds; ++i) ASSERT_TRUE(append(*server_, i, entry(i + 1)));
  std::thread one(work), two(work), three(work);
  one.join();
  two.join();
  three.join();
  EXPECT_EQ(won, kRounds);
  Moment moment = look(*server_, 0, {}, {{KeyRange{}}});
  EXPECT_EQ(moment.folded.number, kRounds);
  EXPECT_EQ(moment.trimmed.number, kRounds - 1);
  std::string expected;
  for (const FoldedRow& each : rows_at(kRounds))
    if (each.row) expected += (expected.empty() ? "" : " ") + each.key + "=" + each.row->value + "@" + each.row->value;
  EXPECT_EQ(text_of(moment.ranges[0]), expected);
}

// A read of many pages is of one moment, though revisions go away under it.
TEST_F(EtcdFoldTest, LongReadsAreOfOneMomentWhileOthersFoldAndCompact) {
  constexpr std::uint64_t kRows = 3'000, kFolds = 60;
  std::vector<FoldedRow> rows;
  for (std::uint64_t i = 0; i < kRows; ++i) rows.push_back(row(std::to_string(10'000 + i), "0", 1));
  ASSERT_TRUE(must(server_->fold(fold(0, 1, rows))));
  std::atomic<bool> done = false;
  std::jthread folding([&] {
    auto server = open();
    std::uint64_t end = 10;
    for (std::uint64_t i = 1; i <= kFolds; ++i, ++end) {
      EXPECT_TRUE(append(*server, end, entry(end + 1)));
      Bytes value = std::to_string(i);
      EXPECT_TRUE(must(server->fold(fold(i, i + 1, {row("10000", value, i + 1), row("12999", value, i + 1)}))));
    }
    done = true;
  });
  std::size_t reads = 0;
  for (; !done || reads == 0; ++reads) {
    Moment moment = look(*server_, 0, {"12999"}, {{KeyRange{}}});
    ASSERT_EQ(moment.ranges[0].size(), kRows);
    ASSERT_EQ(moment.ranges[0].front().value, moment.ranges[0].back().value);
    ASSERT_EQ(moment.ranges[0].front().value, moment.values[0]->value);
  }
  RecordProperty("reads", static_cast<int>(reads));
}

}  // namespace
}  // namespace perdure::e2e
