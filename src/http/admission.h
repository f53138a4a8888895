// How much the daemon takes on at once.
//
// Requests that are being answered are counted by what they do under overload. Past a bound new work is refused with
// 429, long before those that end work are: so a daemon that is asked for ten times of what it can do still completes
// what it has, and answers everybody quickly. Of what brings work, one space has no more than its share, so that a
// tenant who asks for too much leaves room for the others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "http/call.h"
#include "runtime/mutex.h"

namespace perdure::http {

struct AdmissionLimits {
  std::size_t reads = 2'048;
  std::size_t more = 1'024;
  /// Of these, for one space.
  std::size_t more_of_space = 768;
  std::size_t less = 4'096;
  std::size_t waits = 8'192;
};

class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits)
      : limits_{limits.reads, limits.more, limits.less, limits.waits, limits.waits},
        more_of_space_(limits.more_of_space) {}

  /// False if there are too many of its kind; otherwise `leave` it. `space` is empty for what belongs to none.
  bool enter(Load load, const std::string& space) PERDURE_EXCLUDES(mutex_) {
    auto i = static_cast<std::size_t>(load);
    if (inside_[i].fetch_add(1) < limits_[i] && enter_space(load, space)) return true;
    inside_[i].fetch_sub(1);
    return false;
  }
  void leave(Load load, const std::string& space) PERDURE_EXCLUDES(mutex_) {
    inside_[static_cast<std::size_t>(load)].fetch_sub(1);
    if (load != Load::kMore) return;
    MutexLock lock(mutex_);
    auto found = spaces_.find(space);
    if (--found->second == 0) spaces_.erase(found);
  }
  std::size_t inside(Load load) const { return inside_[static_cast<std::size_t>(load)]; }

 private:
  bool enter_space(Load load, const std::string& space) PERDURE_EXCLUDES(mutex_) {
    if (load != Load::kMore) return true;
    MutexLock lock(mutex_);
    std::size_t& count = spaces_[space];
    if (count >= more_of_space_) return false;
    ++count;
    return true;
  }

  const std::array<std::size_t, 5> limits_;
  const std::size_t more_of_space_;
  std::array<std::atomic<std::size_t>, 5> inside_ = {};
  Mutex mutex_;
  /// How many of those that bring work each space has inside; only spaces that have any.
  std::unordered_map<std::string, std::size_t> spaces_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::http
