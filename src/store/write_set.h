#pragma once

#include <map>
#include <optional>
#include <unordered_set>
#include <variant>
#include <vector>

#include "perdure/key_range.h"
#include "perdure/transaction.h"

namespace perdure {

/// What a transaction will write, and how its own reads see it. Clears of ranges come first and single keys after
/// them, whatever the order of the calls: clearing a range drops the writes in it that came before.
class WriteSet {
 public:
  struct Set {
    Bytes value;
  };
  struct Clear {};
  struct Add {
    std::int64_t delta;
  };
  struct SetStamped {
    Stamped value;
  };
  using Write = std::variant<Set, Clear, Add, SetStamped>;
  struct StampedRow {
    Stamped key;
    std::variant<Bytes, Stamped> value;
    /// How many ranges were cleared before it was written.
    std::size_t clears_before = 0;
  };
  using Points = std::map<Bytes, Write, std::less<>>;

  void set(BytesView key, BytesView value);
  void set_stamped(BytesView key, Stamped value);
  void set_stamped_key(StampedRow row);
  void clear(BytesView key);
  void clear_range(const KeyRange& range);
  void add(BytesView key, std::int64_t delta);

  bool empty() const { return points_.empty() && cleared_.empty() && stamped_.empty(); }
  void reset();
  /// Bytes of keys and values, with a little for each row: what the limit on transactions counts.
  std::size_t bytes() const { return bytes_; }

  const Points& points() const { return points_; }
  const std::vector<KeyRange>& cleared() const { return cleared_; }
  const std::vector<StampedRow>& stamped() const { return stamped_; }

  /// Whether a row with just this key and order was stamped already: both would get the same key.
  bool has_stamped_key(const Stamped& key) const;
  /// The pending write of `key`, or null. A key in a cleared range has the write Clear.
  const Write* find(BytesView key) const;
  /// Whether a row that has no stamp yet could be `key`, or lie in `range`: it cannot be read.
  bool unreadable(BytesView key) const;
  bool unreadable(const KeyRange& range) const;
  /// Whether a range with `key` was cleared after `row`, now filled to `key`, had been written.
  bool cleared_after(const StampedRow& row, BytesView key) const;

 private:
  Write& point(BytesView key, std::size_t value_bytes);
  bool in_cleared(BytesView key) const;

  Points points_;
  std::vector<KeyRange> cleared_;
  std::vector<StampedRow> stamped_;
  /// Hashes of their keys and orders.
  std::unordered_set<std::uint64_t> stamped_names_;
  /// Hashes of what stands before the stamps in their keys, by its size: of sizes there are but a few.
  std::map<std::size_t, std::unordered_set<std::uint64_t>> befores_;
  std::size_t bytes_ = 0;
};

}  // namespace perdure
