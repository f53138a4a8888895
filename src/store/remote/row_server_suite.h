// What every RowServer must do. A server joins by a test file that includes this and says
//
//   INSTANTIATE_TEST_SUITE_P(Etcd, RowServerTest, testing::Values(&fresh_etcd));
//
// where fresh_etcd makes a StoreUnderTest with nothing in it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

#include "runtime/latch.h"
#include "runtime/thread.h"
#include "store/remote/row_server.h"

namespace perdure::remote {

/// A store of its own, empty at first. Each `open` is a server as another node would have it, on the same data.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Result<std::unique_ptr<RowServer>> open() = 0;
};

using MakeStore = std::unique_ptr<StoreUnderTest>();

inline constexpr Duration kSuitePatience = std::chrono::seconds(30);
/// At the end of a batch of the suite's: its link is 0 then, as that of a batch that is too short for one.
inline const Bytes kNoLink(sizeof(Link), '\0');

class RowServerTest : public testing::TestWithParam<MakeStore*> {
 protected:
  void SetUp() override {
    store_ = GetParam()();
    server_ = open();
  }
  std::unique_ptr<RowServer> open() {
    auto opened = store_->open();
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }

  static Moment read(RowServer& server, Version since = {}, std::vector<Bytes> keys = {},
                     std::vector<RangeRead> ranges = {}) {
    auto moment = server.read(since, keys, ranges);
    EXPECT_TRUE(moment) << (moment ? "" : moment.error().message);
    return moment ? std::move(*moment) : Moment{};
  }
  static bool append(RowServer& server, std::uint64_t expected, std::uint64_t version, Bytes batch) {
    auto appended = server.append({expected}, {{version}, std::move(batch)});
    EXPECT_TRUE(appended) << (appended ? "" : appended.error().message);
    return appended && appended->done;
  }
  static bool fold(RowServer& server, const Fold& fold) {
    auto folded = server.fold(fold);
    EXPECT_TRUE(folded) << (folded ? "" : folded.error().message);
    return folded.value_or(false);
  }
  /// Appends entries "1" to "n", each with its number as version.
  void append_up_to(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= n; ++i) ASSERT_TRUE(append(*server_, i - 1, i, std::to_string(i)));
  }
  /// Makes the rows be there, by an append and a fold of it.
  void put(const std::vector<FoldedRow>& rows) {
    Moment now = read(*server_, {UINT32_MAX});
    std::uint64_t next = now.end.version.number + 1;
    ASSERT_TRUE(append(*server_, now.end.version.number, next, "put"));
    ASSERT_TRUE(fold(*server_, {.from = now.folded, .to = {next}, .trim = now.trimmed, .rows = rows}));
  }
  static FoldedRow row(Bytes key, Bytes value, std::uint64_t version = 1) {
    return {std::move(key), Versioned{std::move(value), {version}}};
  }
  static std::vector<std::uint64_t> versions(const Moment& moment) {
    std::vector<std::uint64_t> numbers;
    for (const LogEntry& entry : moment.log) numbers.push_back(entry.version.number);
    return numbers;
  }
  static std::vector<Bytes> keys(const std::vector<Row>& rows) {
    std::vector<Bytes> found;
    for (const Row& each : rows) found.push_back(each.key);
    return found;
  }

  std::unique_ptr<StoreUnderTest> store_;
  std::unique_ptr<RowServer> server_;
};

using Numbers = std::vector<std::uint64_t>;

TEST_P(RowServerTest, ANewStoreIsEmpty) {
  Moment moment = read(*server_, {}, {"a", ""}, {{KeyRange{}}, {{"a", "b"}}});
  EXPECT_EQ(moment.end.version.number, 0u);
  EXPECT_EQ(moment.folded.number, 0u);
  EXPECT_EQ(moment.trimmed.number, 0u);
  EXPECT_TRUE(moment.log.empty());
  ASSERT_EQ(moment.values.size(), 2u);
  EXPECT_FALSE(moment.values[0] || moment.values[1]);
  ASSERT_EQ(moment.ranges.size(), 2u);
  EXPECT_TRUE(moment.ranges[0].empty() && moment.ranges[1].empty());
  EXPECT_FALSE(server_->limits().name.empty());
}

TEST_P(RowServerTest, WhatIsAppendedIsReadByEverybodyAfterwards) {
  auto other = open();
  ASSERT_TRUE(append(*server_, 0, 1, "first"));
  ASSERT_TRUE(append(*other, 1, 7, "second"));
  for (RowServer* server : {server_.get(), other.get()}) {
    Moment moment = read(*server);
    EXPECT_EQ(moment.end.version.number, 7u);
    ASSERT_EQ(versions(moment), (Numbers{1, 7}));
    EXPECT_EQ(moment.log[0].batch, "first");
    EXPECT_EQ(moment.log[1].batch, "second");
    EXPECT_EQ(versions(read(*server, {1})), (Numbers{7}));
    EXPECT_EQ(versions(read(*server, {7})), (Numbers{}));
  }
}

TEST_P(RowServerTest, AnAppendToAnotherEndIsRefusedAndLeavesNothing) {
  append_up_to(3);
  for (std::uint64_t expected : {0, 2, 4, 9}) {
    auto appended = server_->append({expected}, {{10}, "wrong"});
    ASSERT_TRUE(appended);
    EXPECT_FALSE(appended->done);
    if (!appended->instead) continue;
    EXPECT_EQ(appended->instead->end.version.number, 3u);
    for (const LogEntry& entry : appended->instead->log) EXPECT_GT(entry.version.number, expected);
  }
  EXPECT_EQ(versions(read(*server_)), (Numbers{1, 2, 3}));
  EXPECT_TRUE(append(*server_, 3, 10, "right"));
}

TEST_P(RowServerTest, AnAppendToTheSameVersionWithAnotherPastIsRefused) {
  const Bytes ours = "ours----", theirs = "theirs----";
  ASSERT_TRUE(append(*server_, 0, 1, ours));
  EXPECT_EQ(read(*server_).end, (LogEnd{{1}, link_of(ours)}));
  for (Link link : {Link{0}, link_of(theirs), link_of(ours) + 1}) {
    auto appended = server_->append({{1}, link}, {{2}, "wrong"});
    ASSERT_TRUE(appended) << to_string(appended.error());
    EXPECT_FALSE(appended->done);
  }
  EXPECT_EQ(versions(read(*server_)), (Numbers{1}));
  EXPECT_TRUE(server_->append({{1}, link_of(ours)}, {{2}, "right"})->done);
  EXPECT_EQ(read(*server_).end, (LogEnd{{2}, link_of("right")})) << "it has none";
}

TEST_P(RowServerTest, AFoldOfWhatTheLogDoesNotHaveChangesNothing) {
  const Bytes ours = "ours----", theirs = "theirs----";
  ASSERT_TRUE(append(*server_, 0, 1, ours));
  auto fold_to = [&](const LogEnd& to) {
    return fold(*server_, {.from = {0}, .to = to, .trim = {0}, .rows = {row("k", "v")}});
  };
  EXPECT_FALSE(fold_to({{1}, link_of(theirs)}));
  EXPECT_FALSE(fold_to({{2}, link_of(ours)}));
  Moment moment = read(*server_, {}, {"k"});
  EXPECT_EQ(moment.folded.number, 0u);
  EXPECT_FALSE(moment.values.at(0));
  EXPECT_TRUE(fold_to({{1}, link_of(ours)}));
  EXPECT_EQ(read(*server_, {}, {"k"}).folded.number, 1u);
}

TEST_P(RowServerTest, OfTwoWritersExactlyOneWinsEachVersion) {
  constexpr std::uint64_t kLast = 150;
  auto other = open();
  std::vector<std::map<std::uint64_t, Bytes>> won(2);
  {
    Thread threads[2];
    for (std::size_t w = 0; w < 2; ++w)
      threads[w].start("writer", [&, w, server = w == 0 ? server_.get() : other.get()] {
        for (std::uint64_t end = 0; end < kLast;) {
          Bytes mark = std::to_string(w) + ":" + std::to_string(end);
          if (append(*server, end, end + 1, mark)) won[w][end + 1] = mark;
          std::uint64_t now = read(*server, {UINT32_MAX}).end.version.number;
          ASSERT_GT(now, end);
          end = now;
        }
      });
  }
  std::map<std::uint64_t, Bytes> all = won[0];
  for (const auto& [version, mark] : won[1]) EXPECT_TRUE(all.emplace(version, mark).second) << "both won " << version;
  Moment moment = read(*server_);
  ASSERT_EQ(moment.log.size(), all.size());
  for (const LogEntry& entry : moment.log) EXPECT_EQ(all[entry.version.number], entry.batch);
  EXPECT_EQ(moment.end.version.number, kLast);
}

TEST_P(RowServerTest, AReadSeesWhatWasAcknowledgedToSomebodyElse) {
  auto other = open();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    RowServer& writer = i % 2 ? *server_ : *other;
    RowServer& reader = i % 2 ? *other : *server_;
    ASSERT_TRUE(append(writer, i - 1, i, "x"));
    ASSERT_EQ(read(reader, {i - 1}).end.version.number, i);
  }
}

TEST_P(RowServerTest, LargeEntriesComeBackAsTheyWere) {
  Bytes batch(std::min<std::size_t>(server_->limits().entry_bytes_max, 8 << 20), '\0');
  for (std::size_t i = 0; i < batch.size() - kNoLink.size(); ++i) batch[i] = static_cast<char>(i * 31 + i / 977);
  ASSERT_TRUE(append(*server_, 0, 1, batch));
  Moment moment = read(*server_);
  ASSERT_EQ(moment.log.size(), 1u);
  EXPECT_TRUE(moment.log[0].batch == batch);
  auto too_large = server_->append({1}, {{2}, Bytes(server_->limits().entry_bytes_max + 1, 'x')});
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(append(*server_, 1, 2, ""));
  EXPECT_EQ(read(*server_, {1}).log.at(0).batch, "");
}

TEST_P(RowServerTest, TheLogIsGivenAfterSinceOrAfterWhatIsFolded) {
  append_up_to(10);
  ASSERT_TRUE(fold(*server_, {.from = {0}, .to = {6}, .trim = {0}, .rows = {row("k", "6", 6)}}));
  Moment moment = read(*server_);
  EXPECT_EQ(moment.folded.number, 6u);
  EXPECT_EQ(moment.trimmed.number, 0u);
  EXPECT_EQ(moment.log.size(), 10u) << "nothing is trimmed yet, so all after `since` is there";
  EXPECT_EQ(versions(read(*server_, {8})), (Numbers{9, 10}));

  ASSERT_TRUE(fold(*server_, {.from = {6}, .to = {8}, .trim = {6}, .rows = {row("k", "8", 8)}}));
  moment = read(*server_, {3}, {"k"});
  EXPECT_EQ(moment.folded.number, 8u);
  EXPECT_EQ(moment.trimmed.number, 6u);
  EXPECT_EQ(moment.end.version.number, 10u);
  EXPECT_EQ(moment.values.at(0)->value, "8");
  EXPECT_EQ(versions(moment), (Numbers{9, 10})) << "since is below what was trimmed";
  EXPECT_EQ(versions(read(*server_, {6})), (Numbers{7, 8, 9, 10}));
  EXPECT_EQ(versions(read(*server_, {9})), (Numbers{10}));
  EXPECT_EQ(versions(read(*server_, {10})), (Numbers{}));

  ASSERT_TRUE(fold(*server_, {.from = {8}, .to = {10}, .trim = {8}, .rows = {}}));
  ASSERT_TRUE(fold(*server_, {.from = {10}, .to = {10}, .trim = {10}, .rows = {}}));
  EXPECT_EQ(versions(read(*server_)), (Numbers{}));
  EXPECT_TRUE(append(*server_, 10, 11, "goes on"));
  EXPECT_EQ(versions(read(*server_)), (Numbers{11}));
}

TEST_P(RowServerTest, AFoldFromElsewhereChangesNothing) {
  append_up_to(4);
  ASSERT_TRUE(fold(*server_, {.from = {0}, .to = {2}, .trim = {0}, .rows = {row("k", "right", 2)}}));
  auto other = open();
  Fold wrong = {.from = {0}, .to = {2}, .trim = {0}, .rows = {row("k", "wrong", 2), row("other", "wrong", 2)}};
  EXPECT_FALSE(fold(*server_, wrong));
  EXPECT_FALSE(fold(*other, wrong));
  wrong.from = {3}, wrong.to = {4};
  EXPECT_FALSE(fold(*other, wrong));
  Moment moment = read(*other, {}, {"k", "other"});
  EXPECT_EQ(moment.values.at(0)->value, "right");
  EXPECT_FALSE(moment.values.at(1));
  EXPECT_EQ(moment.folded.number, 2u);
  EXPECT_TRUE(fold(*other, {.from = {2}, .to = {4}, .trim = {2}, .rows = {row("k", "next", 4)}}));
  EXPECT_EQ(read(*server_, {}, {"k"}).values.at(0)->value, "next");
}

TEST_P(RowServerTest, FoldedRowsAreThereUntilAFoldErasesThem) {
  put({row("a", "1", 1), row("b", "2", 1), row("c", "3", 1)});
  put({row("a", "changed", 2), {"b", std::nullopt}, {"never was", std::nullopt}});
  Moment moment = read(*server_, {}, {"c", "b", "a", "a", "never was"}, {{KeyRange{}}});
  ASSERT_EQ(moment.values.size(), 5u);
  EXPECT_EQ(moment.values[0]->value, "3");
  EXPECT_EQ(moment.values[0]->version.number, 1u);
  EXPECT_FALSE(moment.values[1]);
  EXPECT_EQ(moment.values[2]->value, "changed");
  EXPECT_EQ(moment.values[3]->version.number, 2u) << "a key may be asked for twice";
  EXPECT_FALSE(moment.values[4]);
  EXPECT_EQ(moment.ranges.at(0), (std::vector<Row>{{"a", "changed", {2}}, {"c", "3", {1}}}));
}

TEST_P(RowServerTest, AnyByteMayBeInKeysAndValues) {
  using namespace std::string_literals;
  std::vector<Bytes> sorted = {"\0"s,   "\0\0"s, "\0\xff"s, "\x01"s,   "'"s,        "\\x41"s,          "a\0b"s,
                               "\x7f"s, "\x80"s, "\xff"s,   "\xff\0"s, "\xff\xff"s, Bytes(480, '\xff')};
  std::vector<FoldedRow> rows;
  for (const Bytes& key : sorted) rows.push_back(row(key, key + "\0\xff\xfe"s + key));
  rows.push_back(row("empty", ""));
  sorted.insert(std::ranges::find(sorted, "\x7f"s), "empty");
  put(rows);
  Moment moment =
      read(*server_, {}, sorted, {{KeyRange{}}, {prefix_range("\xff"), {.direction = Direction::kReverse}}});
  EXPECT_EQ(keys(moment.ranges.at(0)), sorted);
  EXPECT_EQ(keys(moment.ranges.at(1)), (std::vector<Bytes>{Bytes(480, '\xff'), "\xff\xff"s, "\xff\0"s, "\xff"s}));
  for (std::size_t i = 0; i < sorted.size(); ++i)
    EXPECT_EQ(moment.values.at(i)->value, sorted[i] == "empty" ? "" : sorted[i] + "\0\xff\xfe"s + sorted[i]);
}

TEST_P(RowServerTest, RangesKeepToTheirBoundsLimitAndDirection) {
  std::vector<FoldedRow> rows;
  std::vector<Bytes> all;
  for (int i = 0; i < 40; ++i) all.push_back("k" + std::to_string(10 + i));
  for (const Bytes& key : all) rows.push_back(row(key, "value of " + key));
  put(rows);
  std::vector<KeyRange> ranges = {{},           {"k20", ""},  {"", "k20"},      {"k15", "k25"}, {"k15", "k15"},
                                  {"k3", "k1"}, {"z", ""},    {"", "a"},        {"k49", ""},    {"k155", "k165"},
                                  {"k", "l"},   {"k4", "k5"}, single_key("k33")};
  std::vector<RangeRead> reads;
  for (const KeyRange& range : ranges)
    for (std::size_t limit : {SIZE_MAX, std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{40}})
      for (Direction direction : {Direction::kForward, Direction::kReverse})
        reads.push_back({range, {limit, direction}});
  Moment moment = read(*server_, {}, {}, reads);
  ASSERT_EQ(moment.ranges.size(), reads.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    std::vector<Bytes> expected;
    for (const Bytes& key : all)
      if (reads[i].range.contains(key)) expected.push_back(key);
    if (reads[i].options.direction == Direction::kReverse) std::ranges::reverse(expected);
    if (expected.size() > reads[i].options.limit) expected.resize(reads[i].options.limit);
    EXPECT_EQ(keys(moment.ranges[i]), expected) << i;
  }
}

TEST_P(RowServerTest, LargeAndManyRowsAreFoldedWhole) {
  std::vector<FoldedRow> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(row("large" + std::to_string(i), Bytes(1258291, static_cast<char>(i))));
  for (int i = 0; i < 20'000; ++i) rows.push_back(row("many" + std::to_string(i), Bytes(100, 'v'), 5));
  put(rows);
  Moment moment = read(*server_, {}, {"large1"}, {{prefix_range("large")}, {prefix_range("many")}});
  EXPECT_TRUE(moment.values.at(0)->value == Bytes(1258291, '\1'));
  ASSERT_EQ(moment.ranges.at(0).size(), 3u);
  EXPECT_TRUE(moment.ranges[0][2].value == Bytes(1258291, '\2'));
  EXPECT_EQ(moment.ranges.at(1).size(), 20'000u);
  for (FoldedRow& each : rows) each.row.reset();
  put(rows);
  EXPECT_TRUE(read(*server_, {}, {}, {{KeyRange{}}}).ranges.at(0).empty());
}

TEST_P(RowServerTest, OfTwoFoldersAtMostOneWins) {
  append_up_to(40);
  auto other = open();
  std::atomic<int> won[41] = {};
  {
    Thread threads[2];
    for (int f = 0; f < 2; ++f)
      threads[f].start("folder", [&, server = f == 0 ? server_.get() : other.get()] {
        for (Version from; !HasFailure() && (from = read(*server).folded).number < 40;) {
          Version to{from.number + 1};
          if (fold(*server, {.from = from, .to = {to}, .trim = from, .rows = {row("n", std::to_string(to.number))}}))
            ++won[to.number];
        }
      });
  }
  for (int i = 1; i <= 40; ++i) EXPECT_EQ(won[i], 1) << i;
  EXPECT_EQ(read(*server_, {}, {"n"}).values.at(0)->value, "40");
}

TEST_P(RowServerTest, WhatIsStoredIsThereForALaterOpen) {
  put({row("a", "1")});
  ASSERT_TRUE(append(*server_, 1, 2, "later"));
  server_.reset();
  server_ = open();
  Moment moment = read(*server_, {1}, {"a"});
  EXPECT_EQ(moment.end.version.number, 2u);
  EXPECT_EQ(moment.values.at(0)->value, "1");
  EXPECT_EQ(moment.log.at(0).batch, "later");
}

TEST_P(RowServerTest, SeveralMayOpenANewStoreAtOnce) {
  store_ = GetParam()();
  std::atomic<int> opened = 0;
  {
    Thread threads[6];
    for (Thread& thread : threads)
      thread.start("opener", [&] {
        auto server = store_->open();
        EXPECT_TRUE(server) << (server ? "" : server.error().message);
        if (server && (*server)->read({}, {}, {})) ++opened;
      });
  }
  EXPECT_EQ(opened, 6);
}

TEST_P(RowServerTest, ManyThreadsReadAtOnce) {
  std::vector<FoldedRow> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(row("k" + std::to_string(i), std::to_string(i)));
  put(rows);
  Thread threads[20];
  for (int t = 0; t < 20; ++t)
    threads[t].start("reader", [&, t] {
      for (int i = 0; i < 20; ++i) {
        int n = (t * 7 + i) % 50;
        Moment moment = read(*server_, {}, {"k" + std::to_string(n)}, {{prefix_range("k"), {.limit = 5}}});
        ASSERT_EQ(moment.values.at(0)->value, std::to_string(n));
        ASSERT_EQ(moment.ranges.at(0).size(), 5u);
      }
    });
}

/// A bank in the batches: "account=balance;" for each account that a transfer changes. Whatever is in the rows and
/// whatever in the log, the sum of all is always the same.
class Bank {
 public:
  static constexpr int kAccounts = 8, kSum = 800;

  using Balances = std::map<Bytes, int>;
  static void apply(Balances& balances, const Bytes& batch) {
    for (std::size_t at = 0; at < batch.size() - kNoLink.size();) {
      std::size_t equals = batch.find('=', at), end = batch.find(';', at);
      balances[batch.substr(at, equals - at)] = std::stoi(batch.substr(equals + 1, end - equals - 1));
      at = end + 1;
    }
  }
  static Bytes batch(const Balances& changed) {
    Bytes text;
    for (const auto& [account, balance] : changed) text += account + "=" + std::to_string(balance) + ";";
    return text + kNoLink;
  }
  static Balances rows(const Moment& moment) {
    Balances balances;
    for (const Row& row : moment.ranges.back()) balances[row.key] = std::stoi(row.value);
    return balances;
  }
  static Balances at(const Moment& moment) {
    Balances balances = rows(moment);
    for (const LogEntry& entry : moment.log) apply(balances, entry.batch);
    return balances;
  }
  static int sum(const Balances& balances) {
    int sum = 0;
    for (const auto& [account, balance] : balances) sum += balance;
    return sum;
  }
  static Balances at_first() {
    Balances balances;
    for (int i = 0; i < kAccounts; ++i) balances["account" + std::to_string(i)] = kSum / kAccounts;
    return balances;
  }
};

TEST_P(RowServerTest, ReadersAlwaysSeeTheWholeWhileOthersAppendAndFold) {
  constexpr std::uint64_t kTransfers = 300;
  ASSERT_TRUE(append(*server_, 0, 1, Bank::batch(Bank::at_first())));
  std::atomic<bool> over = false;
  auto folds_here = open(), reads_here = open();
  // Much else is asked for between the log and the rows, so that a server which reads them at two moments is found out.
  std::vector<RangeRead> everything(100, {{"none", "nonf"}});
  everything.push_back({KeyRange{}});
  Thread folder, readers[3];
  folder.start("folder", [&] {
    for (Version trim; !over && !HasFailure();) {
      Moment moment = read(*folds_here, trim, {}, everything);
      if (moment.end.version == moment.folded) continue;
      Fold next = {.from = moment.folded, .to = moment.end, .trim = moment.folded, .rows = {}};
      for (const auto& [account, balance] : Bank::at(moment))
        next.rows.push_back(row(account, std::to_string(balance), moment.end.version.number));
      // An account that is empty has no row.
      std::ranges::for_each(next.rows, [](FoldedRow& each) {
        if (each.row->value == "0") each.row.reset();
      });
      if (fold(*folds_here, next)) trim = next.from;
    }
  });
  for (int r = 0; r < 3; ++r)
    readers[r].start("reader", [&, server = r == 0 ? server_.get() : reads_here.get()] {
      Bank::Balances followed;
      Version since;
      while (!over) {
        Moment moment = read(*server, since, {}, everything);
        ASSERT_LE(moment.trimmed, moment.folded);
        ASSERT_LE(moment.folded, moment.end.version);
        Moment afresh = read(*server, {}, {}, everything);
        ASSERT_EQ(Bank::sum(Bank::at(afresh)), Bank::kSum);
        ASSERT_GE(afresh.end.version, moment.end.version);
        // Who follows needs no rows, unless what comes next has been trimmed.
        if (since < moment.trimmed) followed = Bank::rows(moment);
        for (const LogEntry& entry : moment.log) Bank::apply(followed, entry.batch);
        ASSERT_EQ(Bank::sum(followed), Bank::kSum);
        since = moment.end.version;
      }
    });
  Bank::Balances balances = Bank::at_first();
  for (std::uint64_t i = 2; i <= kTransfers; ++i) {
    Bytes from = "account" + std::to_string(i % 8), to = "account" + std::to_string((i * 5 + i / 8 + 1) % 8);
    if (from == to) to = "account" + std::to_string((i + 1) % 8);
    int amount = std::min<int>(balances[from], static_cast<int>(i % 60));
    balances[from] -= amount, balances[to] += amount;
    EXPECT_TRUE(append(*server_, i - 1, i, Bank::batch({{from, balances[from]}, {to, balances[to]}})));
  }
  over = true;
  folder.join();
  Bank::Balances last = Bank::at(read(*server_, {}, {}, everything));
  std::erase_if(last, [](const auto& each) { return each.second == 0; });
  std::erase_if(balances, [](const auto& each) { return each.second == 0; });
  EXPECT_EQ(last, balances);
}

/// Takes down what a bell rings.
class BellBook {
 public:
  Bell bell() {
    return [this](Ring ring) {
      MutexLock lock(mutex_);
      if (ring.turn_wanted)
        ++turns_wanted_;
      else
        rung_.push_back(ring.reached.number);
      changed_.notify_all();
    };
  }
  /// Whether it rings with at least `version` in time.
  bool wait_for(std::uint64_t version) {
    return wait([&] { return std::ranges::any_of(rung_, [&](std::uint64_t rung) { return rung >= version; }); });
  }
  /// Whether it has rung with 0 so often.
  bool wait_for_zeros(int times) {
    return wait([&] { return std::ranges::count(rung_, 0u) >= times; });
  }
  bool wait_for_any() {
    return wait([&] { return !rung_.empty(); });
  }
  /// Whether somebody asks for a turn, for the so-manieth time.
  bool wait_for_turn(int times) {
    return wait([&] { return turns_wanted_ >= times; });
  }
  std::size_t count() {
    MutexLock lock(mutex_);
    return rung_.size();
  }
  int turns_wanted() {
    MutexLock lock(mutex_);
    return turns_wanted_;
  }

 private:
  bool wait(const std::function<bool()>& is_it) {
    SteadyTime until = steady_now() + kSuitePatience;
    MutexLock lock(mutex_);
    while (!is_it()) {
      if (steady_now() > until) return false;
      changed_.wait_until(lock, until);
    }
    return true;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::uint64_t> rung_;
  int turns_wanted_ = 0;
};

TEST_P(RowServerTest, TheBellRingsForOwnAppendsAndThoseOfOthers) {
  auto other = open();
  BellBook book, others_book;
  server_->listen(book.bell());
  other->listen(others_book.bell());
  // Until it rings for the first time it may not be in place: whoever listens looks once on his own.
  ASSERT_TRUE(append(*server_, 0, 1, "x"));
  ASSERT_TRUE(book.wait_for_any());
  ASSERT_TRUE(others_book.wait_for_any());
  for (std::uint64_t i = 2; i <= 10; ++i) {
    ASSERT_TRUE(append(i % 2 ? *server_ : *other, i - 1, i, "x"));
    ASSERT_TRUE(book.wait_for(i)) << i;
    ASSERT_TRUE(others_book.wait_for(i)) << i;
  }
  server_->listen({});
  std::size_t silent = book.count();
  ASSERT_TRUE(append(*server_, 10, 11, "x"));
  ASSERT_TRUE(others_book.wait_for(11));
  EXPECT_EQ(book.count(), silent);
  BellBook later;
  server_->listen(later.bell());
  ASSERT_TRUE(append(*other, 11, 12, "x"));
  EXPECT_TRUE(later.wait_for_any());
  server_->listen({});
  other->listen({});
}

TEST_P(RowServerTest, OthersHearWhoAsksForATurn) {
  auto other = open();
  BellBook book, others_book;
  server_->listen(book.bell());
  other->listen(others_book.bell());
  ASSERT_TRUE(append(*server_, 0, 1, "x"));
  ASSERT_TRUE(book.wait_for_any());
  ASSERT_TRUE(others_book.wait_for_any());
  server_->ask_for_turn();
  ASSERT_TRUE(others_book.wait_for_turn(1));
  other->ask_for_turn();
  ASSERT_TRUE(book.wait_for_turn(1));
  ASSERT_TRUE(append(*server_, 1, 2, "x"));
  ASSERT_TRUE(book.wait_for(2));
  ASSERT_TRUE(others_book.wait_for(2));
  EXPECT_EQ(book.turns_wanted(), 1) << "nobody hears himself";
  EXPECT_EQ(others_book.turns_wanted(), 1);
  server_->listen({});
  other->listen({});
}

TEST_P(RowServerTest, WhoeverLosesAgainIsToldWhatCameInstead) {
  auto other = open();
  ASSERT_TRUE(append(*other, 0, 1, "a"));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(append(*other, i, i + 1, "b" + std::to_string(i)));
    // With the version that the winner has, too.
    auto lost = server_->append({{i}}, {Version{i + 1}, "lost"});
    ASSERT_TRUE(lost) << to_string(lost.error());
    ASSERT_FALSE(lost->done);
    if (!lost->instead) continue;
    EXPECT_EQ(lost->instead->end.version, Version{i + 1});
    ASSERT_EQ(lost->instead->log.size(), 1u);
    EXPECT_EQ(lost->instead->log[0].batch, "b" + std::to_string(i));
  }
  // After a loss it is asked for, and says nothing if there is nothing to say.
  auto won = server_->append({{4}}, {Version{5}, "won"});
  ASSERT_TRUE(won) << to_string(won.error());
  EXPECT_TRUE(won->done);
  EXPECT_FALSE(won->instead);
}

}  // namespace perdure::remote
