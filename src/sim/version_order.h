// In which order the values of each key were appended, as the reads tell.
//
// A list only grows at its end, so all reads of a key must be prefixes of the longest one, and the longest one is the
// order. What was appended but never read comes after all that was read. A transaction of unknown outcome took effect
// if and only if somebody saw one of its appends; then its own reads count too, and may reveal more such transactions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/hash_index.h"
#include "sim/history.h"

namespace perdure::sim {

inline constexpr std::uint32_t kNone = HashIndex::kNone;

/// What a checker found wrong.
struct Finding {
  std::string anomaly;
  std::string explanation;
};

class VersionOrder {
 public:
  struct Append {
    Value value;
    std::uint32_t key;  ///< Number of the key in keys().
    std::uint32_t txn;
    std::uint32_t previous = kNone;  ///< The append before it by the same transaction to the same key.
    std::uint32_t next = kNone;      ///< The append after it, likewise.
    std::uint32_t position = kNone;  ///< Its place in the list of the key; kNone if no read has it.
  };

  struct KeyOrder {
    Key key;
    std::span<const Value> longest = {};  ///< The longest list that was read, and by whom.
    std::uint32_t reader = kNone;
    std::uint32_t placed = 0;  ///< How many elements of `longest` have been looked up.
    std::size_t first = 0;     ///< Where the appends of this key begin in the order.
  };

  /// What a transaction saw of a key before its own appends: the first `length` elements. One for each key it read.
  struct Read {
    std::uint32_t txn;
    std::uint32_t key;
    std::uint32_t length;
  };

  /// `history` must outlive this and stay as it is.
  explicit VersionOrder(const History& history);

  /// Works everything out. Returns the first thing that no order of the transactions can explain, if there is one:
  /// duplicate-append, internal, garbage-read, duplicate-elements, G1a, G1b or incompatible-order.
  std::optional<Finding> infer();

  const History& history() const { return history_; }
  bool committed(std::uint32_t txn) const { return committed_[txn]; }
  std::span<const KeyOrder> keys() const { return keys_; }
  std::span<const Append> appends() const { return appends_; }
  std::span<const Read> reads() const { return reads_; }
  /// The appends of a key, by position, as numbers in appends().
  std::span<const std::uint32_t> order(const KeyOrder& key) const {
    return {order_.data() + key.first, key.longest.size()};
  }
  /// For a step of the history: the number of the append, or for a read the number of the key.
  std::uint32_t subject(std::size_t step) const { return subjects_[step]; }

 private:
  /// What the transaction being looked at has done to a key so far.
  struct Scratch {
    std::uint32_t txn = kNone;
    std::uint32_t last_append = kNone;
    std::uint32_t appends_since_read = 0;
    bool has_read = false;
    std::span<const Value> list = {};  ///< What it read last.
  };

  std::optional<Finding> index_steps();
  std::uint32_t intern(Key key);
  std::optional<Finding> index_append(std::uint32_t txn, std::uint32_t key, Value value);
  std::optional<Finding> take_reads(std::uint32_t txn);
  std::optional<Finding> take_read(std::uint32_t txn, std::uint32_t key, std::span<const Value> list);
  std::optional<Finding> place_new_elements(std::uint32_t key);
  void arrange();
  std::optional<Finding> check_whole_transactions() const;

  bool ends_with_own(const Scratch& own, std::span<const Value> list) const;
  std::uint32_t find_append(std::uint32_t key, Value value) const;
  Scratch& scratch(std::uint32_t txn, std::uint32_t key);

  Finding internal(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) const;
  std::optional<Finding> bad_element(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) const;
  Finding incompatible(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) const;
  Finding partial(std::uint32_t reader, std::uint32_t seen, std::uint32_t missed) const;

  const History& history_;
  std::vector<char> committed_;
  std::vector<std::uint32_t> subjects_;
  std::vector<KeyOrder> keys_;
  std::vector<Append> appends_;
  std::vector<Read> reads_;
  std::vector<std::uint32_t> order_;
  HashIndex key_index_;
  HashIndex append_index_;
  std::vector<Scratch> scratch_;           ///< One for each key.
  std::vector<std::uint32_t> grown_keys_;  ///< Keys whose longest list has elements that are not placed yet.
  std::vector<std::uint32_t> pending_;     ///< Committed transactions whose reads are not taken yet.
};

/// "T12", or "the final read" for a read that no client made.
std::string show_txn(const History& history, std::uint32_t txn);

}  // namespace perdure::sim
