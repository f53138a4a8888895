// Random reads and writes inside of transactions, compared step by step with a plain map.
#include <map>
#include <random>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

using Model = std::map<Bytes, Bytes>;

class Steps {
 public:
  Steps(Transaction& txn, Model& model, std::uint64_t seed) : txn_(txn), model_(model), random_(seed) {}

  void take(int count) {
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
      step();
    }
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  /// Keys of one and two letters, few enough that steps meet.
  Bytes key() {
    Bytes key(1, static_cast<char>('a' + below(6)));
    if (below(3) > 0) key.push_back(static_cast<char>('a' + below(6)));
    return key;
  }
  KeyRange range() {
    switch (below(6)) {
      case 0:
        return {};
      case 1:
        return {key(), ""};
      case 2:
        return {"", key()};
      case 3:
        return prefix_range(key());
      default:
        return {key(), key()};
    }
  }

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
        return set();
      case 2:
        return clear();
      case 3:
        return below(4) == 0 ? clear_range() : set();
      case 4:
        return add();
      case 5:
        return get();
      case 6:
        return get_many();
      case 7:
        return get_ranges();
      default:
        return get_range();
    }
  }

  void set() {
    Bytes where = key(), value(below(12), static_cast<char>('A' + below(26)));
    txn_.set(where, value);
    model_[where] = value;
  }
  void clear() {
    Bytes where = key();
    txn_.clear(where);
    model_.erase(where);
  }
  void clear_range() {
    KeyRange where = range();
    txn_.clear_range(where);
    std::erase_if(model_, [&](const auto& row) { return where.contains(row.first); });
  }
  void add() {
    Bytes where = key();
    auto found = model_.find(where);
    if (found != model_.end() && found->second.size() != 8) return;
    auto delta = static_cast<std::int64_t>(random_());
    auto old = found == model_.end() ? 0 : decode_counter(found->second);
    txn_.add(where, delta);
    model_[where] =
        encode_counter(static_cast<std::int64_t>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(delta)));
  }

  std::optional<Bytes> expected(const Bytes& where) const {
    auto found = model_.find(where);
    return found == model_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string expected(const RangeRead& read) const {
    std::vector<Row> rows;
    for (const auto& [k, v] : model_)
      if (read.range.contains(k)) rows.push_back({k, v, {}});
    if (read.options.direction == Direction::kReverse) std::reverse(rows.begin(), rows.end());
    if (rows.size() > read.options.limit) rows.resize(read.options.limit);
    return show(rows);
  }
  RangeRead range_read() {
    return {range(),
            {.limit = below(3) == 0 ? 10'000 : below(6),
             .direction = below(2) == 0 ? Direction::kForward : Direction::kReverse}};
  }

  void get() {
    Bytes where = key();
    EXPECT_EQ(txn_.get(where), expected(where)) << where;
  }
  void get_many() {
    std::vector<Bytes> keys;
    for (std::size_t i = below(5); i > 0; --i) keys.push_back(key());
    auto values = txn_.get_many(keys);
    ASSERT_EQ(values.size(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], expected(keys[i])) << keys[i];
  }
  void get_range() {
    RangeRead read = range_read();
    Reader snapshot = txn_.snapshot();
    Reader& reader = below(4) == 0 ? snapshot : txn_;
    EXPECT_EQ(show(reader.get_range(read.range, read.options)), expected(read))
        << "[" << read.range.begin << ", " << read.range.end << ") limit " << read.options.limit;
  }
  void get_ranges() {
    std::vector<RangeRead> reads = {range_read(), range_read()};
    auto answers = txn_.get_ranges(reads);
    ASSERT_EQ(answers.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(show(answers[i]), expected(reads[i]));
  }

  Transaction& txn_;
  Model& model_;
  std::mt19937_64 random_;
};

std::string show(const Model& model) {
  std::vector<Row> rows;
  for (const auto& [key, value] : model) rows.push_back({key, value, {}});
  return conformance::show(rows);
}

TEST_P(Conformance, RandomStepsReadLikeAMap) {
  constexpr int kTransactions = 120, kSteps = 100;
  Model model;
  for (std::uint64_t seed = 1; seed <= kTransactions && !HasFailure(); ++seed) {
    // Some run on the commit's view, and some fail in the end.
    TransactOptions options{.body = seed % 3 == 0 ? Body::kShort : Body::kOptimistic};
    bool fails = seed % 5 == 0;
    Model after;
    auto done = store().transact(
        [&](Transaction& txn) -> Result<void> {
          after = model;
          Steps(txn, after, seed).take(kSteps);
          if (fails) return fail(ErrorCode::kNotFound, "the body gave up");
          return {};
        },
        options);
    ASSERT_EQ(done.has_value(), !fails) << "seed " << seed;
    if (!fails) model = after;
    ASSERT_EQ(contents(), show(model)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace perdure::conformance
