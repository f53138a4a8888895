// The rows and the log of a store on a real etcd: what is etcd's own beyond what every server does
// (etcd_suite_test.cc).
#include <algorithm>

#include "etcd_fixture.h"

namespace perdure::e2e {
namespace {

using remote::Fold;
using remote::Moment;

TEST_F(EtcdTest, AnAppendBehindIsToldWhatIsThereInstead) {
  auto server = open(), other = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  ASSERT_TRUE(append(*server, 1, entry(2, "theirs")));
  auto appended = must(other->append({{1}}, entry(2, "ours")));
  EXPECT_FALSE(appended.done);
  ASSERT_TRUE(appended.instead);
  EXPECT_EQ(appended.instead->end.version.number, 2u);
  ASSERT_EQ(versions_of(*appended.instead), "2");
  EXPECT_EQ(appended.instead->log[0].batch, "theirs");
  EXPECT_EQ(look(*other).log.size(), 2u);
}

TEST_F(EtcdTest, AnAppendFarBehindIsRefusedToo) {
  auto server = open();
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(append(*server, i, entry(i + 1)));
  auto appended = must(server->append({{0}}, entry(50)));
  EXPECT_FALSE(appended.done);
  EXPECT_FALSE(appended.instead) << "too much for one answer";
  EXPECT_EQ(look(*server).log.size(), 40u);
  EXPECT_FALSE(must(server->append({{60}}, entry(61))).done) << "ahead of the log";
}

TEST_F(EtcdTest, StoresUnderOtherPrefixesAreApart) {
  auto one = open("/one"), two = open("/one0"), deep = open("/one/two");
  ASSERT_TRUE(append(*one, 0, entry(1)));
  ASSERT_TRUE(must(one->fold({Version{0}, {{1}}, Version{0}, {row("k", "v", 1)}})));
  for (auto* other : {&two, &deep}) {
    Moment moment = look(**other, 0, {"k"}, {{KeyRange{}}});
    EXPECT_EQ(moment.end.version.number, 0u);
    EXPECT_FALSE(moment.values[0]);
    EXPECT_TRUE(moment.ranges[0].empty());
  }
}

TEST_F(EtcdTest, AFoldGoesForwardAndTrimsOnlyWhatIsFolded) {
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  EXPECT_EQ(server->fold({Version{1}, {{0}}, Version{0}, {}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(server->fold({Version{0}, {{1}}, Version{1}, {}}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EtcdTest, ThousandsOfRowsAreFoldedAndReadInPages) {
  constexpr std::size_t kRows = 3'456;
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  Fold fold{Version{0}, {{1}}, Version{0}, {}};
  std::vector<Bytes> keys;
  for (std::size_t i = 0; i < kRows; ++i) {
    keys.push_back(std::to_string(100'000 + i));
    fold.rows.push_back(row(keys.back(), Bytes(i % 500, 'v'), 1));
  }
  ASSERT_TRUE(must(server->fold(fold)));
  Moment moment = look(*server, 1, keys,
                       {{KeyRange{}, {}},
                        {KeyRange{}, {.direction = Direction::kReverse}},
                        {KeyRange{}, {.limit = 2'000, .direction = Direction::kReverse}},
                        {KeyRange{keys[10], ""}, {.limit = 3'000}}});
  ASSERT_EQ(moment.values.size(), kRows);
  for (std::size_t i = 0; i < kRows; ++i) ASSERT_EQ(moment.values[i]->value.size(), i % 500);
  ASSERT_EQ(moment.ranges[0].size(), kRows);
  EXPECT_TRUE(std::ranges::is_sorted(moment.ranges[0], {}, &Row::key));
  ASSERT_EQ(moment.ranges[1].size(), kRows);
  EXPECT_EQ(moment.ranges[1].front().key, keys.back());
  ASSERT_EQ(moment.ranges[2].size(), 2'000u);
  EXPECT_EQ(moment.ranges[2].back().key, keys[kRows - 2'000]);
  ASSERT_EQ(moment.ranges[3].size(), 3'000u);
  EXPECT_EQ(moment.ranges[3].back().key, keys[3'009]);
}

TEST_F(EtcdTest, AServerWithSmallRequestsRefusesWhatIsTooLarge) {
  EtcdCluster small(scratch_ / "small", {.members = 1, .arguments = {"--max-request-bytes=65536"}});
  auto server = open_etcd(small.url());
  EXPECT_GE(server->limits().transaction_bytes_max, std::size_t{1'280} << 10) << "unless the server says otherwise";
  auto refused = server->append({{0}}, entry(1, Bytes(100'000, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge) << refused.error().message;
  refused = server->append({{0}}, entry(1, Bytes(1'000'000, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge) << refused.error().message;
  EXPECT_TRUE(append(*server, 0, entry(1)));
}

TEST_F(EtcdTest, AServerWithSmallRequestsIsFoldedInSmallChunks) {
  EtcdCluster small(scratch_ / "small", {.members = 1, .arguments = {"--max-request-bytes=65536"}});
  auto server = open_etcd(small.url());
  ASSERT_TRUE(append(*server, 0, entry(1)));
  Fold fold{Version{0}, {{1}}, Version{0}, {}};
  for (int i = 0; i < 60; ++i) fold.rows.push_back(row("large" + std::to_string(i), Bytes(60'000, 'x'), 1));
  for (int i = 0; i < 2'000; ++i) fold.rows.push_back(row("small" + std::to_string(i), Bytes(100, 'x'), 1));
  for (int i = 0; i < 500; ++i) fold.rows.push_back(row("mixed" + std::to_string(i), Bytes(3'000, 'x'), 1));
  auto folded = server->fold(fold);
  ASSERT_TRUE(folded) << to_string(folded.error());
  EXPECT_TRUE(*folded);
  ASSERT_TRUE(append(*server, 1, entry(2)));
  for (auto& each : fold.rows) each.row->value.back() = 'y';
  EXPECT_TRUE(must(server->fold({Version{1}, {{2}}, Version{1}, fold.rows})));
  Moment moment = look(*server, 2, {}, {{KeyRange{}}});
  ASSERT_EQ(moment.ranges[0].size(), fold.rows.size());
  for (const Row& each : moment.ranges[0]) ASSERT_EQ(each.value.back(), 'y') << each.key;
  // One that cannot have come by the log is refused, and leaves the server as it is.
  ASSERT_TRUE(append(*server, 2, entry(3)));
  auto refused = server->fold({Version{2}, {{3}}, Version{2}, {row("huge", Bytes(70'000, 'x'), 3)}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge) << refused.error().message;
  EXPECT_EQ(look(*server, 2).folded.number, 2u);
}

// Read as one page, they are more than a network may bring before the deadline.
TEST_F(EtcdTest, ManyLargeRowsAreReadInPagesOfOneMoment) {
  constexpr std::size_t kRows = 300, kBytes = 100'000;
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  Fold fold{Version{0}, {{1}}, Version{0}, {}};
  std::vector<Bytes> keys;
  for (std::size_t i = 0; i < kRows; ++i) {
    keys.push_back(std::to_string(1'000 + i));
    fold.rows.push_back(row(keys.back(), Bytes(kBytes, 'v'), 1));
  }
  ASSERT_TRUE(must(server->fold(fold)));
  Moment moment = look(*server, 1, {keys.begin(), keys.begin() + 100},
                       {{KeyRange{}, {.limit = 250}}, {KeyRange{}, {.limit = 250, .direction = Direction::kReverse}}});
  ASSERT_EQ(moment.values.size(), 100u);
  for (const auto& value : moment.values) ASSERT_EQ(value->value.size(), kBytes);
  ASSERT_EQ(moment.ranges[0].size(), 250u);
  ASSERT_EQ(moment.ranges[1].size(), 250u);
  for (std::size_t i = 0; i < 250; ++i) {
    ASSERT_EQ(moment.ranges[0][i].key, keys[i]);
    ASSERT_EQ(moment.ranges[1][i].key, keys[kRows - 1 - i]);
  }
}

TEST_F(EtcdTest, OldRevisionsGoWithTheSecondFold) {
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  ASSERT_TRUE(append(*server, 1, entry(2)));
  ASSERT_TRUE(append(*server, 2, entry(3)));
  auto old_is_there = [this] {
    try {
      cluster_.ctl({"get", "perdure/version", "--rev=4"});
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  ASSERT_TRUE(must(server->fold({Version{0}, {{1}}, Version{0}, {}})));
  EXPECT_TRUE(old_is_there());
  ASSERT_TRUE(must(server->fold({Version{1}, {{2}}, Version{1}, {}})));
  EXPECT_FALSE(old_is_there());
  auto lenient = open("/lenient?compact=off");
  ASSERT_TRUE(append(*lenient, 0, entry(1)));
  EXPECT_EQ(versions_of(look(*server, 2)), "3");
}

TEST_F(EtcdTest, AStoreOfANewerPerdureIsRefused) {
  open();
  cluster_.ctl({"put", "perdure/format", "perdure 3"});
  auto opened = etcd::EtcdServer::open({cluster_.url()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupportedFormat) << opened.error().message;
  EXPECT_NE(opened.error().message.find("use a newer perdure"), std::string::npos) << opened.error().message;
  cluster_.ctl({"put", "perdure/format", "perdure 1"});
  opened = etcd::EtcdServer::open({cluster_.url()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupportedFormat) << opened.error().message;
  EXPECT_NE(opened.error().message.find("use the perdure that made it"), std::string::npos) << opened.error().message;
  cluster_.ctl({"put", "perdure/format", "something"});
  opened = etcd::EtcdServer::open({cluster_.url()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt) << opened.error().message;
}

TEST_F(EtcdTest, KeysThatSomebodyDeletedOrOverwroteAreNoticed) {
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  cluster_.ctl({"put", "perdure/row/k", "short"});
  EXPECT_EQ(server->read(Version{0}, std::vector<Bytes>{"k"}, {}).error().code, ErrorCode::kCorrupt);
  cluster_.ctl({"del", "perdure/version"});
  EXPECT_EQ(server->read(Version{0}, {}, {}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(server->append({{1}}, entry(2)).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace perdure::e2e
