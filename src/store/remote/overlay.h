#pragma once

#include <functional>
#include <iterator>

#include "store/remote/batch.h"

namespace perdure::remote {

/// Lays writes over the rows of a walk: what they erase is left out, what they set is shown in its place or where it
/// belongs.
class Overlay {
 public:
  using Visit = std::function<bool(BytesView, const Versioned&)>;

  /// All three must outlive it. `visit` returns false when it has had enough.
  Overlay(const Writes& writes, const KeyRange& range, Direction direction, const Visit& visit)
      : forward_(direction == Direction::kForward),
        visit_(visit),
        first_(writes.lower_bound(range.begin)),
        last_(range.end.empty() ? writes.end() : writes.lower_bound(range.end)) {}

  /// As many rows of the walk may be left out.
  std::size_t writes() const { return static_cast<std::size_t>(std::distance(first_, last_)); }
  bool enough() const { return enough_; }
  /// The next row of the walk; whether more are wanted.
  bool row(BytesView key, const Versioned& row) {
    bool replaced = false;
    while (!enough_ && !replaced && first_ != last_) {
      int order = forward_ ? front()->first.compare(key) : key.compare(front()->first);
      if (order > 0) break;
      replaced = order == 0;
      show_front();
    }
    if (!enough_ && !replaced) enough_ = !visit_(key, row);
    return !enough_;
  }
  /// The walk is over but for what lies in `left`.
  void end(const KeyRange& left) {
    while (!enough_ && first_ != last_ && !left.contains(front()->first)) show_front();
  }

 private:
  Writes::const_iterator front() const { return forward_ ? first_ : std::prev(last_); }
  void show_front() {
    auto write = front();
    forward_ ? ++first_ : --last_;
    if (write->second) enough_ = !visit_(write->first, *write->second);
  }

  const bool forward_;
  const Visit& visit_;
  Writes::const_iterator first_, last_;
  bool enough_ = false;
};

/// A range that has no key.
inline KeyRange nothing_left() {
  return {"\1", "\1"};
}

}  // namespace perdure::remote
