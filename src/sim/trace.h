#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "perdure/time.h"

namespace perdure::sim {

/// Virtual time does not begin at 0, so that "never" and "at the beginning" are not confused.
inline constexpr SteadyTime kBeginning{std::chrono::hours(1)};

/// What happened in a run: always as a hash, which is equal for equal runs and hardly for others, and as lines for a
/// person if asked for.
class Trace {
 public:
  enum class Keep { kHash, kLines };
  explicit Trace(Keep keep) : keep_(keep) {}

  /// A step too small for a line.
  void mark(std::uint64_t number, SteadyTime when) {
    mix(number);
    mix(static_cast<std::uint64_t>(when.time_since_epoch().count()));
  }
  void note(SteadyTime when, std::string_view who, std::string_view what) {
    mark(hash64(what), when);
    if (keep_ == Keep::kLines) lines_.push_back(line(when, who, what));
  }

  std::uint64_t hash() const { return hash_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }
  static std::string line(SteadyTime when, std::string_view who, std::string_view what);

  const Keep keep_;
  std::uint64_t hash_ = 0;
  std::vector<std::string> lines_;
};

/// "12.345678", in seconds since the beginning of the run.
std::string show_time(Duration since_beginning);

}  // namespace perdure::sim
