// How reads are cut into Txns, on an etcd that is a map.
#include "store/etcd/etcd_read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace perdure::etcd {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

/// The value of a row is its size in bytes, of the letter that stands for the revision. After each Txn, everything is
/// written anew.
class MapOfEtcd {
 public:
  void add(const Bytes& key, std::size_t size) { rows_[key] = size; }
  /// "00000" and so on.
  void add_many(std::size_t count, std::size_t size) {
    for (std::size_t i = 0; i < count; ++i) add(name(rows_.size()), size);
  }
  static Bytes name(std::size_t number) {
    Bytes digits = std::to_string(number);
    return Bytes(5 - digits.size(), '0') + digits;
  }
  /// Longer ones do not come in time.
  std::size_t answer_bytes_max = SIZE_MAX;

  Ask ask() {
    return [this](const Txn& txn) -> Result<TxnAnswer> {
      EXPECT_LE(txn.then.size(), kOpsMax);
      TxnAnswer answer{.revision = ++revision_};
      std::size_t bytes = 0;
      for (const Op& op : txn.then) answer.answers.push_back(find(std::get<Range>(op), bytes));
      if (bytes > answer_bytes_max) return fail(ErrorCode::kUnavailable, "it does not answer in time");
      answers_.push_back(bytes);
      return answer;
    };
  }
  /// How many bytes each answer had since the last call.
  std::vector<std::size_t> answers() { return std::exchange(answers_, {}); }

 private:
  RangeAnswer find(const Range& range, std::size_t& bytes) const {
    const Revision revision = range.revision == 0 ? revision_ : range.revision;
    const Bytes end = range.end.empty() ? range.key + '\0' : range.end;
    std::vector<Bytes> keys;
    for (auto row = rows_.lower_bound(range.key); row != rows_.end() && row->first < end; ++row)
      keys.push_back(row->first);
    if (range.direction == Direction::kReverse) std::ranges::reverse(keys);
    RangeAnswer answer{.rows = {}, .more = range.limit > 0 && keys.size() > range.limit};
    if (answer.more) keys.resize(range.limit);
    for (const Bytes& key : keys) {
      bytes += key.size() + rows_.at(key);
      answer.rows.push_back({key, Bytes(rows_.at(key), static_cast<char>('a' + revision % 26)), revision});
    }
    return answer;
  }

  std::map<Bytes, std::size_t> rows_;
  Revision revision_ = 0;
  std::vector<std::size_t> answers_;
};

std::vector<RangeAnswer> read(MapOfEtcd& etcd, const std::vector<Range>& reads) {
  Pace pace;
  auto answers = read_at_once(etcd.ask(), pace, reads);
  EXPECT_TRUE(answers);
  return answers ? std::move(*answers) : std::vector<RangeAnswer>(reads.size());
}

std::vector<Bytes> keys_of(const RangeAnswer& answer) {
  std::vector<Bytes> keys;
  for (const KeyValue& row : answer.rows) keys.push_back(row.key);
  return keys;
}

const Range kAll{.key = "0", .end = "9"};

TEST(EtcdRead, AnswersOfLargeRowsAreAFewMegabytes) {
  MapOfEtcd etcd;
  etcd.add_many(1'000, 100'000);
  for (Direction direction : {Direction::kForward, Direction::kReverse}) {
    Range range = kAll;
    range.limit = 1'000;
    range.direction = direction;
    auto rows = read(etcd, {range}).at(0).rows;
    ASSERT_EQ(rows.size(), 1'000u);
    EXPECT_EQ(rows.front().key, MapOfEtcd::name(direction == Direction::kForward ? 0 : 999));
    auto answers = etcd.answers();
    ASSERT_GT(answers.size(), 1u);
    EXPECT_LE(answers.front(), 8 * kMegabyte) << "of these rows nothing was known";
    EXPECT_LE(*std::max_element(answers.begin() + 1, answers.end()), 4 * kMegabyte);
    EXPECT_LE(answers.size(), 30u);
  }
}

TEST(EtcdRead, AnswersOfLargeKeysAreAFewMegabytes) {
  MapOfEtcd etcd;
  etcd.add_many(200, 300'000);
  std::vector<Range> reads;
  for (std::size_t i = 0; i < 200; ++i) reads.push_back({.key = MapOfEtcd::name(i)});
  auto found = read(etcd, reads);
  for (std::size_t i = 0; i < 200; ++i) ASSERT_EQ(keys_of(found[i]), (std::vector<Bytes>{MapOfEtcd::name(i)}));
  auto answers = etcd.answers();
  ASSERT_GT(answers.size(), 1u);
  EXPECT_LE(answers.front(), 20 * kMegabyte);
  EXPECT_LE(*std::max_element(answers.begin() + 1, answers.end()), 4 * kMegabyte);
}

TEST(EtcdRead, RowsThatBecomeLargeAreNotAskedForByThousands) {
  MapOfEtcd etcd;
  etcd.add_many(100, 10);
  etcd.add_many(900, 50'000);
  EXPECT_EQ(read(etcd, {kAll}).at(0).rows.size(), 1'000u);
  auto answers = etcd.answers();
  // 16 rows of which nothing is known, and then 32 times as many.
  EXPECT_LE(std::ranges::max(answers), 16 * 32 * 50'000u);
}

TEST(EtcdRead, SmallRowsTakeFewTxns) {
  MapOfEtcd etcd;
  etcd.add_many(5'000, 100);
  Range few = kAll, thousand = kAll;
  few.limit = 32;
  thousand.limit = 1'000;
  read(etcd, {few});
  EXPECT_EQ(etcd.answers().size(), 1u);
  EXPECT_EQ(read(etcd, {thousand}).at(0).rows.size(), 1'000u);
  EXPECT_EQ(etcd.answers().size(), 2u);
  EXPECT_EQ(read(etcd, {kAll}).at(0).rows.size(), 5'000u);
  EXPECT_LE(etcd.answers().size(), 7u);
  std::vector<Range> keys, nothing;
  for (std::size_t i = 0; i < 500; ++i) keys.push_back({.key = MapOfEtcd::name(i)});
  for (std::size_t i = 0; i < 100; ++i) nothing.push_back({.key = "x", .end = "y", .limit = 1'000});
  read(etcd, keys);
  EXPECT_LE(etcd.answers().size(), 6u);
  read(etcd, nothing);
  EXPECT_LE(etcd.answers().size(), 5u);
}

TEST(EtcdRead, EverythingIsOfTheRevisionOfTheFirstTxn) {
  MapOfEtcd etcd;
  etcd.add_many(300, 50'000);
  Range reverse = kAll;
  reverse.limit = 250;
  reverse.direction = Direction::kReverse;
  auto answers = read(etcd, {kAll, reverse, {.key = MapOfEtcd::name(7)}});
  EXPECT_GT(etcd.answers().size(), 3u);
  for (const RangeAnswer& answer : answers)
    for (const KeyValue& row : answer.rows) {
      ASSERT_EQ(row.mod_revision, answers[0].rows[0].mod_revision);
      ASSERT_EQ(row.value[0], answers[0].rows[0].value[0]);
    }
}

TEST(EtcdRead, PagesMakeUpWhatWasAskedFor) {
  MapOfEtcd etcd;
  std::vector<Bytes> all;
  for (std::size_t i = 0; i < 1'700; ++i) {
    all.push_back(MapOfEtcd::name(i));
    etcd.add(all.back(), i % 97 == 0 ? 200'000 : i % 50);
  }
  for (auto [from, to] : {std::pair{0, 1'700}, {3, 1'400}, {100, 101}, {500, 500}})
    for (std::size_t limit : {0, 1, 44, 45, 46, 700, 1'000, 1'001, 5'000})
      for (Direction direction : {Direction::kForward, Direction::kReverse}) {
        Range range{.key = MapOfEtcd::name(from), .end = MapOfEtcd::name(to), .limit = limit, .direction = direction};
        std::vector<Bytes> expected(all.begin() + from, all.begin() + to);
        if (direction == Direction::kReverse) std::ranges::reverse(expected);
        const bool more = limit > 0 && expected.size() > limit;
        if (more) expected.resize(limit);
        // Beside others, so that its pages begin anywhere.
        auto answers = read(etcd, {{.key = all[1]}, kAll, range});
        EXPECT_EQ(keys_of(answers[1]), all);
        ASSERT_EQ(keys_of(answers[2]), expected) << from << " " << to << " " << limit;
        EXPECT_EQ(answers[2].more, more);
      }
}

TEST(EtcdRead, AServerThatIsTooSlowIsAskedForLessNextTime) {
  MapOfEtcd etcd;
  etcd.add_many(400, 10);
  etcd.add_many(200, 250'000);
  etcd.answer_bytes_max = 4 * kMegabyte;
  Pace pace(Duration::zero());
  const std::size_t at_first = pace.row_bytes_min();
  std::size_t failures = 0;
  while (failures < 10 && !read_at_once(etcd.ask(), pace, {kAll})) ++failures;
  EXPECT_GE(failures, 1u);
  EXPECT_LE(failures, 4u);
  EXPECT_GT(pace.row_bytes_min(), at_first);
}

TEST(EtcdRead, AServerThatFailsAtOnceIsNotTakenForSlow) {
  MapOfEtcd etcd;
  etcd.add_many(100, 10);
  etcd.answer_bytes_max = 0;
  Pace pace(std::chrono::hours(1));
  const std::size_t at_first = pace.row_bytes_min();
  EXPECT_EQ(read_at_once(etcd.ask(), pace, {kAll}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(pace.row_bytes_min(), at_first);
}

// Threads whose reads were under way together have seen the same.
TEST(EtcdRead, ReadsThatFailTogetherCountAsOne) {
  Pace pace(Duration::zero());
  const std::size_t at_first = pace.row_bytes_min();
  for (int i = 0; i < 8; ++i) pace.failed(at_first, std::chrono::seconds(2));
  const std::size_t slower = pace.row_bytes_min();
  EXPECT_GT(slower, at_first);
  for (int i = 0; i < 8; ++i) pace.failed(slower, std::chrono::seconds(2));
  EXPECT_EQ(pace.row_bytes_min(), 4 * slower);
  for (int i = 0; i < 20; ++i) pace.failed(pace.row_bytes_min(), std::chrono::seconds(2));
  EXPECT_EQ(pace.row_bytes_min(), kMegabyte);
}

}  // namespace
}  // namespace perdure::etcd
