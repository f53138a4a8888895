// How much the daemon takes on at once.
//
// Requests that are being answered are counted by what they do under overload. Past a bound new work is refused with
// 429, long before those that end work are: so a daemon that is asked for ten times of what it can do still completes
// what it has, and answers everybody quickly.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "http/call.h"

namespace perdure::http {

struct AdmissionLimits {
  std::size_t reads = 2'048;
  std::size_t more = 1'024;
  std::size_t less = 4'096;
  std::size_t waits = 8'192;
};

class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits)
      : limits_{limits.reads, limits.more, limits.less, limits.waits, limits.waits} {}

  /// False if there are too many of its kind; otherwise `leave` it.
  bool enter(Load load) {
    auto i = static_cast<std::size_t>(load);
    if (inside_[i].fetch_add(1) < limits_[i]) return true;
    inside_[i].fetch_sub(1);
    return false;
  }
  void leave(Load load) { inside_[static_cast<std::size_t>(load)].fetch_sub(1); }
  std::size_t inside(Load load) const { return inside_[static_cast<std::size_t>(load)]; }

 private:
  const std::array<std::size_t, 5> limits_;
  std::array<std::atomic<std::size_t>, 5> inside_ = {};
};

}  // namespace perdure::http
