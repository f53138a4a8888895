// What is to go wrong in a FaultyEngine, and what did.
#pragma once

#include <deque>
#include <random>

#include "runtime/mutex.h"

namespace perdure::conformance {

enum class Fault {
  kNone,
  kUnknownApplied,
  kUnknownLost,        ///< Not applied, and never will be.
  kUnknownLateBefore,  ///< Arrives just before the next commit.
  kUnknownLateAfter,   ///< Arrives after the next commit, and before the one after that.
  kUnknownVeryLate,    ///< Arrives after the next two.
  kRefused,            ///< kUnavailable without effect.
  kFails,              ///< kStoreFailed, for good.
};

/// What is to go wrong, one fault for each commit in turn; none when the script has ended. Thread-safe.
class FaultScript {
 public:
  void then(std::initializer_list<Fault> faults) {
    MutexLock lock(mutex_);
    faults_.insert(faults_.end(), faults);
  }
  /// Every commit is refused until `heal`, once the script has ended.
  void break_down() {
    MutexLock lock(mutex_);
    broken_ = true;
  }
  void heal() {
    MutexLock lock(mutex_);
    broken_ = false;
  }
  /// One read in `n` finds that its snapshot was taken back; 0 is never.
  void retire_one_read_in(unsigned n) {
    MutexLock lock(mutex_);
    retire_one_in_ = n;
  }

  /// The next `n` reads find that their snapshots were taken back.
  void retire_next_reads(int n) {
    MutexLock lock(mutex_);
    retire_next_ = n;
  }

  Fault next() {
    MutexLock lock(mutex_);
    ++commits_;
    if (faults_.empty()) return broken_ ? Fault::kRefused : Fault::kNone;
    Fault fault = faults_.front();
    faults_.pop_front();
    return fault;
  }
  bool retires() {
    MutexLock lock(mutex_);
    bool now = retire_next_ > 0 || (retire_one_in_ > 0 && random_() % retire_one_in_ == 0);
    if (!now) return false;
    if (retire_next_ > 0) --retire_next_;
    ++retired_;
    return true;
  }
  void arrived(bool was_applied) {
    MutexLock lock(mutex_);
    ++(was_applied ? late_applied_ : late_refused_);
  }
  void opened() {
    MutexLock lock(mutex_);
    closing_ = false;
  }
  void closing() {
    MutexLock lock(mutex_);
    closing_ = true;
  }
  void check_open() {
    MutexLock lock(mutex_);
    if (closing_) ++commits_after_closing_;
  }

  bool ended() { return read(&FaultScript::faults_).empty(); }
  int commits() { return read(&FaultScript::commits_); }
  int retired() { return read(&FaultScript::retired_); }
  int late_applied() { return read(&FaultScript::late_applied_); }
  int late_refused() { return read(&FaultScript::late_refused_); }
  int commits_after_closing() { return read(&FaultScript::commits_after_closing_); }

 private:
  template <class T>
  T read(T FaultScript::* member) {
    MutexLock lock(mutex_);
    return this->*member;
  }

  Mutex mutex_;
  std::deque<Fault> faults_;
  bool broken_ = false, closing_ = false;
  unsigned retire_one_in_ = 0;
  int retire_next_ = 0;
  int commits_ = 0, retired_ = 0, late_applied_ = 0, late_refused_ = 0, commits_after_closing_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace perdure::conformance
