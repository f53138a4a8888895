// The rows and the log of a store on a real etcd: what src/store/remote/row_server.h promises.
#include <algorithm>
#include <thread>

#include "etcd_fixture.h"

namespace perdure::e2e {
namespace {

using remote::Fold;
using remote::Moment;

TEST_F(EtcdTest, ANewStoreIsEmpty) {
  auto server = open();
  EXPECT_EQ(server->limits().name, "etcd");
  Moment moment = look(*server, 0, {"k"}, {{KeyRange{}}});
  EXPECT_EQ(moment.version.number, 0u);
  EXPECT_EQ(moment.folded.number, 0u);
  EXPECT_EQ(moment.trimmed.number, 0u);
  EXPECT_TRUE(moment.log.empty());
  ASSERT_EQ(moment.values.size(), 1u);
  EXPECT_FALSE(moment.values[0]);
  ASSERT_EQ(moment.ranges.size(), 1u);
  EXPECT_TRUE(moment.ranges[0].empty());
}

TEST_F(EtcdTest, AnAppendWithTheRightEndIsThereForAll) {
  auto server = open(), other = open();
  EXPECT_TRUE(append(*server, 0, entry(3, Bytes("\0\xff b", 4))));
  EXPECT_TRUE(append(*server, 3, entry(4, "")));
  Moment moment = look(*other);
  EXPECT_EQ(moment.version.number, 4u);
  ASSERT_EQ(versions_of(moment), "3 4");
  EXPECT_EQ(moment.log[0].batch, Bytes("\0\xff b", 4));
  EXPECT_EQ(moment.log[1].batch, "");
  EXPECT_EQ(versions_of(look(*other, 3)), "4");
  EXPECT_EQ(versions_of(look(*other, 4)), "");
}

TEST_F(EtcdTest, AnAppendBehindIsToldWhatIsThereInstead) {
  auto server = open(), other = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  ASSERT_TRUE(append(*server, 1, entry(2, "theirs")));
  auto appended = must(other->append(Version{1}, entry(2, "ours")));
  EXPECT_FALSE(appended.done);
  ASSERT_TRUE(appended.instead);
  EXPECT_EQ(appended.instead->version.number, 2u);
  ASSERT_EQ(versions_of(*appended.instead), "2");
  EXPECT_EQ(appended.instead->log[0].batch, "theirs");
  EXPECT_EQ(look(*other).log.size(), 2u);
}

TEST_F(EtcdTest, AnAppendFarBehindIsRefusedToo) {
  auto server = open();
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(append(*server, i, entry(i + 1)));
  auto appended = must(server->append(Version{0}, entry(50)));
  EXPECT_FALSE(appended.done);
  EXPECT_FALSE(appended.instead) << "too much for one answer";
  EXPECT_EQ(look(*server).log.size(), 40u);
  EXPECT_FALSE(must(server->append(Version{60}, entry(61))).done) << "ahead of the log";
}

TEST_F(EtcdTest, OfRacingWritersOneWinsEachVersion) {
  constexpr std::uint64_t kEach = 50;
  auto work = [this](const Bytes& name) {
    auto server = open();
    std::uint64_t end = 0;
    for (std::uint64_t done = 0; done < kEach;) {
      auto appended = must(server->append(Version{end}, entry(end + 1, name)));
      done += appended.done;
      end = appended.done      ? end + 1
            : appended.instead ? appended.instead->version.number
                               : look(*server).version.number;
    }
  };
  std::thread one(work, "one"), two(work, "two");
  one.join();
  two.join();
  auto server = open();
  Moment moment = look(*server);
  EXPECT_EQ(moment.version.number, 2 * kEach);
  ASSERT_EQ(moment.log.size(), 2 * kEach);
  EXPECT_EQ(std::ranges::count(moment.log, "one", &remote::LogEntry::batch), static_cast<std::ptrdiff_t>(kEach));
}

TEST_F(EtcdTest, RowsAreReadByKeyAndRangeInBothDirections) {
  auto server = open();
  const Bytes low("\0\0", 2), high("\xff\xff\xff", 3);
  ASSERT_TRUE(append(*server, 0, entry(1)));
  ASSERT_TRUE(must(
      server->fold({Version{0},
                    Version{1},
                    Version{0},
                    {row("a", "1", 1), row("b", "2", 1), row("c", "", 1), row(low, "low", 1), row(high, high, 1)}})));
  Moment moment = look(*server, 1, {"b", "none", low, high, "c"},
                       {{KeyRange{}, {}},
                        {KeyRange{}, {.direction = Direction::kReverse}},
                        {KeyRange{"a", "c"}, {}},
                        {KeyRange{"a", "d"}, {.limit = 2}},
                        {KeyRange{"a", "d"}, {.limit = 2, .direction = Direction::kReverse}},
                        {KeyRange{"b", ""}, {.limit = 1, .direction = Direction::kReverse}},
                        {KeyRange{"c", "a"}, {}},
                        {KeyRange{"a", "d"}, {.limit = 0}},
                        {KeyRange{"b", "d"}, {}}});
  ASSERT_EQ(moment.values.size(), 5u);
  EXPECT_EQ(moment.values[0]->value, "2");
  EXPECT_EQ(moment.values[0]->version.number, 1u);
  EXPECT_FALSE(moment.values[1]);
  EXPECT_EQ(moment.values[2]->value, "low");
  EXPECT_EQ(moment.values[3]->value, high);
  EXPECT_EQ(moment.values[4]->value, "");
  ASSERT_EQ(moment.ranges.size(), 9u);
  const std::string all = low + "=low@1 a=1@1 b=2@1 c=@1 " + high + "=" + high + "@1";
  EXPECT_EQ(text_of(moment.ranges[0]), all);
  std::ranges::reverse(moment.ranges[1]);
  EXPECT_EQ(text_of(moment.ranges[1]), all);
  EXPECT_EQ(text_of(moment.ranges[2]), "a=1@1 b=2@1");
  EXPECT_EQ(text_of(moment.ranges[3]), "a=1@1 b=2@1");
  EXPECT_EQ(text_of(moment.ranges[4]), "c=@1 b=2@1");
  EXPECT_EQ(text_of(moment.ranges[5]), high + "=" + high + "@1");
  EXPECT_EQ(text_of(moment.ranges[6]), "");
  EXPECT_EQ(text_of(moment.ranges[7]), "");
  EXPECT_EQ(text_of(moment.ranges[8]), "b=2@1 c=@1");
}

TEST_F(EtcdTest, StoresUnderOtherPrefixesAreApart) {
  auto one = open("/one"), two = open("/one0"), deep = open("/one/two");
  ASSERT_TRUE(append(*one, 0, entry(1)));
  ASSERT_TRUE(must(one->fold({Version{0}, Version{1}, Version{0}, {row("k", "v", 1)}})));
  for (auto* other : {&two, &deep}) {
    Moment moment = look(**other, 0, {"k"}, {{KeyRange{}}});
    EXPECT_EQ(moment.version.number, 0u);
    EXPECT_FALSE(moment.values[0]);
    EXPECT_TRUE(moment.ranges[0].empty());
  }
}

TEST_F(EtcdTest, TheLogIsWhatTheReaderLacks) {
  auto server = open();
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(append(*server, i, entry(i + 1)));
  ASSERT_TRUE(must(server->fold({Version{0}, Version{2}, Version{0}, {}})));
  EXPECT_EQ(versions_of(look(*server, 0)), "1 2 3 4 5 6") << "nothing is trimmed yet";
  ASSERT_TRUE(must(server->fold({Version{2}, Version{4}, Version{2}, {}})));
  Moment moment = look(*server, 1);
  EXPECT_EQ(moment.folded.number, 4u);
  EXPECT_EQ(moment.trimmed.number, 2u);
  EXPECT_EQ(versions_of(moment), "5 6") << "some after 1 are gone: those after the folded ones";
  EXPECT_EQ(versions_of(look(*server, 2)), "3 4 5 6");
  EXPECT_EQ(versions_of(look(*server, 3)), "4 5 6");
}

TEST_F(EtcdTest, AFoldWritesErasesAndMovesOnceOnly) {
  auto server = open(), other = open();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(append(*server, i, entry(i + 1)));
  ASSERT_TRUE(must(server->fold({Version{0}, Version{1}, Version{0}, {row("a", "1", 1), row("b", "1", 1)}})));
  EXPECT_FALSE(must(other->fold({Version{0}, Version{2}, Version{0}, {row("a", "stale", 1)}})));
  ASSERT_TRUE(must(other->fold({Version{1}, Version{2}, Version{1}, {{"a", {}}, row("b", "2", 2)}})));
  Moment moment = look(*server, 3, {"a"}, {{KeyRange{}}});
  EXPECT_FALSE(moment.values[0]);
  EXPECT_EQ(text_of(moment.ranges[0]), "b=2@2");
  EXPECT_EQ(server->fold({Version{3}, Version{2}, Version{0}, {}}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EtcdTest, ThousandsOfRowsAreFoldedAndReadInPages) {
  constexpr std::size_t kRows = 3'456;
  auto server = open();
  ASSERT_TRUE(append(*server, 0, entry(1)));
  Fold fold{Version{0}, Version{1}, Version{0}, {}};
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

TEST_F(EtcdTest, LargeValuesGoThroughTheLogAndIntoRows) {
  auto server = open();
  const Bytes value(1'280 << 10, 'x');
  ASSERT_TRUE(append(*server, 0, entry(1, value)));
  Bytes largest(server->limits().entry_bytes_max, 'y');
  ASSERT_TRUE(append(*server, 1, entry(2, largest)));
  EXPECT_EQ(server->append(Version{2}, entry(3, largest + "y")).error().code, ErrorCode::kTooLarge);
  EXPECT_GE(server->limits().transaction_bytes_max, value.size());
  ASSERT_TRUE(must(server->fold({Version{0}, Version{2}, Version{0}, {row("a", value, 1), row("b", value, 2)}})));
  Moment moment = look(*server, 0, {"a", "b"});
  EXPECT_EQ(moment.log.at(1).batch, largest);
  EXPECT_EQ(moment.values[0]->value, value);
  EXPECT_EQ(moment.values[1]->value, value);
}

TEST_F(EtcdTest, AServerWithSmallRequestsRefusesWhatIsTooLarge) {
  EtcdCluster small(scratch_ / "small", {.members = 1, .arguments = {"--max-request-bytes=65536"}});
  auto server = open_etcd(small.url());
  auto refused = server->append(Version{0}, entry(1, Bytes(100'000, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge) << refused.error().message;
  refused = server->append(Version{0}, entry(1, Bytes(1'000'000, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge) << refused.error().message;
  EXPECT_TRUE(append(*server, 0, entry(1)));
}

TEST_F(EtcdTest, TheBellRingsForOwnAppendsAndThoseOfOthers) {
  Heard heard;
  auto server = open(), other = open();
  server->listen(heard.bell());
  EXPECT_TRUE(heard.wait_for("0")) << "what came before is not known";
  ASSERT_TRUE(append(*server, 0, entry(1)));
  EXPECT_TRUE(heard.wait_for("1"));
  ASSERT_TRUE(append(*other, 1, entry(2)));
  EXPECT_TRUE(heard.wait_for("2"));
  server->listen({});
  ASSERT_TRUE(append(*other, 2, entry(3)));
  Heard again;
  server->listen(again.bell());
  ASSERT_TRUE(append(*other, 3, entry(4)));
  EXPECT_TRUE(again.wait_for("4"));
  EXPECT_EQ(heard.count("3"), 0u);
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
  ASSERT_TRUE(must(server->fold({Version{0}, Version{1}, Version{0}, {}})));
  EXPECT_TRUE(old_is_there());
  ASSERT_TRUE(must(server->fold({Version{1}, Version{2}, Version{1}, {}})));
  EXPECT_FALSE(old_is_there());
  auto lenient = open("/lenient?compact=off");
  ASSERT_TRUE(append(*lenient, 0, entry(1)));
  EXPECT_EQ(versions_of(look(*server, 2)), "3");
}

TEST_F(EtcdTest, AStoreOfANewerPerdureIsRefused) {
  open();
  cluster_.ctl({"put", "perdure/format", "perdure 2"});
  auto opened = etcd::EtcdServer::open({cluster_.url()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupportedFormat) << opened.error().message;
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
  EXPECT_EQ(server->append(Version{1}, entry(2)).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace perdure::e2e
