// For tests: rows as a store would hold them, and what the state codec does with them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actor/state_codec.h"
#include "perdure/tuple.h"

namespace perdure::actor {

/// A state under a prefix, among rows of others that nothing may touch.
class StateModel {
 public:
  StateModel() {
    // The neighbours that a range which is a little too wide would hit: ("s", 0), ("s", "a"), ("s", "a\0").
    for (const Bytes& key : {tuple::pack("s", 0), tuple::pack("s", std::string("a\0", 2)), tuple::pack("s"),
                             tuple::pack("s", std::string("a\0", 2), "x"), tuple::pack("s", "b")})
      rows_[key] = "a neighbour";
    neighbours_ = rows_.size();
  }

  static Bytes prefix() { return tuple::pack("s", "a"); }

  Result<StateChanges> try_put(Value value) { return changes(prefix(), state_.get(), std::move(value)); }

  /// Replaces the state, and returns what that took.
  StateChanges put(Value value) {
    auto made = try_put(std::move(value));
    EXPECT_TRUE(made) << to_string(made.error());
    for (const KeyRange& range : made->clear_ranges)
      rows_.erase(rows_.lower_bound(range.begin), rows_.lower_bound(range.end));
    for (const Bytes& key : made->clears) EXPECT_EQ(rows_.erase(key), 1u) << printable(key);
    for (const RowWrite& row : made->sets) rows_[row.key] = row.value;
    state_ = std::make_unique<StoredState>(made->after);
    return *std::move(made);
  }

  /// The rows of the state, as read from the store.
  std::vector<Row> rows() const {
    KeyRange range = state_range(prefix());
    std::vector<Row> rows;
    for (auto row = rows_.lower_bound(range.begin); row != rows_.lower_bound(range.end); ++row)
      rows.push_back({row->first, row->second, Version{}});
    EXPECT_EQ(rows.size() + neighbours_, rows_.size());
    return rows;
  }

  std::vector<Bytes> keys() const {
    std::vector<Bytes> keys;
    for (Row& row : rows()) keys.push_back(std::move(row.key));
    return keys;
  }

  Result<StoredState> read() const { return read_state(prefix(), rows()); }
  const StoredState& state() const { return *state_; }

 private:
  std::map<Bytes, Bytes> rows_;
  std::size_t neighbours_ = 0;
  std::unique_ptr<StoredState> state_;
};

/// Order keys compared by what they are, not by where they lie.
inline std::map<Bytes, std::vector<Bytes>> plain(const ListOrders& orders) {
  std::map<Bytes, std::vector<Bytes>> all;
  for (const auto& [key, list] : orders) all[key] = *list;
  return all;
}

}  // namespace perdure::actor
