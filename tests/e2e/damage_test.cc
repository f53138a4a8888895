// Bit rot: a flipped byte is named when it is read, and found by verify before it is.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ostream>

#include "scratch.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kRows = 2000;

Bytes row_key(int row) {
  char key[16];
  std::snprintf(key, sizeof key, "row/%06d", row);
  return key;
}

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Store store = must(Store::open(url_));
    for (int first = 0; first < kRows; first += 500)
      must(store.transact([&](Transaction& txn) {
        for (int row = first; row < first + 500; ++row) txn.set(row_key(row), value_of(row));
      }));
    store.close();
    bytes_ = read_whole(data_);
  }

  static Bytes value_of(int row) { return "<value of " + row_key(row) + ">" + Bytes(50, 'v'); }

  /// Calls `change` with the place of each copy of the row in the file: older pages may hold more than one.
  template <class F>
  void at_copies(int row, F change) {
    int copies = 0;
    for (std::size_t at = 0; (at = bytes_.find(value_of(row), at)) != std::string::npos; ++at, ++copies) change(at);
    ASSERT_GT(copies, 0);
    write_whole(data_, bytes_);
  }

  static void expect_named(const VerifyReport& report, const std::string& what) {
    bool named =
        std::ranges::any_of(report.problems, [&](auto& problem) { return problem.find(what) != problem.npos; });
    EXPECT_TRUE(named) << "no '" << what << "' among the " << report.problem_count << " problems"
                       << (report.ok() ? "" : ", the first is: " + report.problems.front());
  }

  Scratch scratch_;
  std::string directory_ = scratch_ / "store";
  std::string data_ = directory_ + "/data.mdb";
  std::string url_ = lmdb_url(directory_);
  std::string bytes_;
};

TEST_F(DamageTest, AFlippedByteOfAValueIsNamedOnReadingAndByVerify) {
  at_copies(700, [&](std::size_t at) { bytes_[at + 30] = static_cast<char>(bytes_[at + 30] ^ 4); });
  Store store = must(Store::open(url_));
  auto read = store.read([](Reader& reader) { return reader.get(row_key(700)); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  for (const std::string& word : {row_key(700), data_, std::string("backup")})
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  auto range = store.read([](Reader& reader) { return reader.get_range(prefix_range("row/0007")); });
  EXPECT_EQ(range.error().code, ErrorCode::kCorrupt);
  // The rest can be read, and written.
  EXPECT_EQ(get(store, row_key(701)), value_of(701));
  EXPECT_TRUE(set(store, row_key(702), "new"));
  auto report = must(store.verify());
  EXPECT_EQ(report.problem_count, 1u);
  expect_named(report, row_key(700));
}

TEST_F(DamageTest, AddingToADamagedRowFailsNobodyElseInItsBatch) {
  at_copies(700, [&](std::size_t at) { bytes_[at + 30] = static_cast<char>(bytes_[at + 30] ^ 4); });
  Store store = must(Store::open(url_));
  constexpr int kCalls = 200;
  std::atomic<int> good = 0, corrupt = 0;
  for (int i = 0; i < kCalls; ++i)
    store.transact_async([i](Transaction& txn) { txn.add(i % 10 == 0 ? row_key(700) : "counter", 1); },
                         [&](Result<void> result) {
                           if (result)
                             ++good;
                           else if (result.error().code == ErrorCode::kCorrupt)
                             ++corrupt;
                         });
  store.close();
  EXPECT_EQ(good, kCalls - kCalls / 10);
  EXPECT_EQ(corrupt, kCalls / 10);
}

TEST_F(DamageTest, AFlippedByteOfAVersionIsNamed) {
  at_copies(700, [&](std::size_t at) { bytes_[at - 12] = static_cast<char>(bytes_[at - 12] ^ 1); });
  Store store = must(Store::open(url_));
  auto read = store.read([](Reader& reader) { return reader.get(row_key(700)); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  expect_named(must(store.verify()), row_key(700));
}

TEST_F(DamageTest, AFlippedByteOfAKeyIsNamed) {
  at_copies(700, [&](std::size_t at) {
    std::size_t key = bytes_.rfind(row_key(700), at - 1);
    bytes_[key + 4] = static_cast<char>(bytes_[key + 4] ^ 1);
  });
  Store store = must(Store::open(url_));
  EXPECT_FALSE(must(store.verify()).ok());
}

/// Where a page's header holds what, in LMDB's format.
struct HeaderField {
  const char* name;
  std::size_t offset;

  friend void PrintTo(const HeaderField& field, std::ostream* out) { *out << field.name; }
};

class HeaderDamage : public DamageTest, public ::testing::WithParamInterface<HeaderField> {};

TEST_P(HeaderDamage, IsNamedByVerifyWithItsPage) {
  std::vector<std::string> pages;  // One of them is in use, the others hold what was there before.
  at_copies(700, [&](std::size_t at) {
    std::size_t page = at / kPage, place = page * kPage + GetParam().offset;
    bytes_[place] = static_cast<char>(bytes_[place] ^ 0x21);
    pages.push_back("error page " + std::to_string(page) + ":");
  });
  // In another process, since LMDB trusts its pages: whatever happens is seen from here.
  Worker worker;
  ASSERT_EQ(worker.ask("open " + url_), "ok");
  std::string answer = worker.ask("verify");
  EXPECT_TRUE(std::ranges::any_of(pages, [&](const auto& page) { return answer.starts_with(page); })) << answer;
  EXPECT_TRUE(read_whole(data_) == bytes_) << "verify changes nothing";
}

INSTANTIATE_TEST_SUITE_P(Of, HeaderDamage,
                         ::testing::Values(HeaderField{"PageNumber", 0}, HeaderField{"Flags", 10},
                                           HeaderField{"Lower", 12}, HeaderField{"Upper", 14},
                                           HeaderField{"FirstNode", 16}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace perdure::e2e
