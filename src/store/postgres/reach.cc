#include "store/postgres/reach.h"

#include <algorithm>

#include "runtime/latch.h"

namespace perdure::postgres {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds(50), kPauseMax = std::chrono::seconds(1);
/// Between two words of a server that is crowded.
constexpr Duration kQuiet = std::chrono::minutes(1);
/// Longer than an attempt takes; should one never report, another is made then.
constexpr Duration kAttemptMax = std::chrono::seconds(30);

}  // namespace

Result<void> Reach::may_try() {
  MutexLock lock(mutex_);
  if (!away_) return {};
  SteadyTime now = steady_now();
  if (now < next_try_) return std::unexpected(*away_);
  next_try_ = now + kAttemptMax;
  return {};
}

Result<void> Reach::check() {
  MutexLock lock(mutex_);
  if (away_ && steady_now() < next_try_) return std::unexpected(*away_);
  return {};
}

std::uint64_t Reach::losses() {
  MutexLock lock(mutex_);
  return losses_;
}

void Reach::reached() {
  {
    MutexLock lock(mutex_);
    if (!away_) return;
    away_.reset();
    pause_ = Duration::zero();
  }
  say(LogLevel::kInfo, "the server is back", {});
}

void Reach::failed(const Error& why) {
  {
    MutexLock lock(mutex_);
    bool known = away_.has_value();
    away_ = why;
    ++losses_;
    pause_ = std::clamp(pause_ * 2, kPauseMin, kPauseMax);
    next_try_ = steady_now() + pause_;
    if (known) return;
  }
  say(LogLevel::kWarning, "the server is away; it is tried again until it answers", why.message);
}

void Reach::crowded(const Error& why) {
  bool is_away = false;
  {
    MutexLock lock(mutex_);
    is_away = away_.has_value();
    if (!is_away) {
      if (steady_now() < quiet_until_) return;
      quiet_until_ = steady_now() + kQuiet;
    }
  }
  if (is_away) return failed(why);
  say(LogLevel::kWarning, "the server has no room for another connection; those that there are are shared",
      why.message);
}

void Reach::say(LogLevel level, std::string_view message, std::string_view reason) {
  if (!log_) return;
  const LogField fields[] = {{"server", target_.name}, {"reason", reason}};
  try {
    log_({level, "postgres", message, std::span(fields).first(reason.empty() ? 1 : 2)});
  } catch (...) {
    // A host that cannot write its log must not lose its store by that.
  }
}

}  // namespace perdure::postgres
