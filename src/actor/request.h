// A message that somebody in this process sends, and whoever waits for what becomes of it.
#pragma once

#include <memory>
#include <optional>

#include "actor/rows.h"
#include "perdure/actor.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure::actor {

/// Takes one answer; the first one counts. Thread-safe.
class Waiter {
 public:
  explicit Waiter(ValueDone done, ReplyRows rows = ReplyRows::kClear)
      : keeps_(rows == ReplyRows::kKeep), done_(std::move(done)) {}

  /// Of those who wait in Callers, who guards it; 0 for none.
  std::uint64_t place = 0;
  /// Whether the rows that it waits for stay when it is answered.
  bool keeps() const { return keeps_; }
  /// False if it has been answered before.
  bool answer(Result<Value> result) PERDURE_EXCLUDES(mutex_) {
    ValueDone done;
    Task cancel_timer;
    Watch watch;
    {
      MutexLock lock(mutex_);
      if (!done_) return false;
      done = std::move(done_);
      done_ = nullptr;
      cancel_timer = std::move(cancel_timer_);
      watch = std::exchange(watch_, {});
    }
    watch.cancel();
    if (cancel_timer) cancel_timer();
    done(std::move(result));
    return true;
  }
  bool answered() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return !done_;
  }
  /// Its time is over: it will be answered once nothing of it is left in the store. False if it has been answered.
  bool give_up() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    gave_up_ = true;
    return static_cast<bool>(done_);
  }
  /// Whether it still waits for a reply.
  bool wanted() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return done_ && !gave_up_;
  }
  /// How to be rid of the timer that will answer it, once it is answered.
  void timer(Task cancel) PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (done_) cancel_timer_ = std::move(cancel);
  }
  /// The watch that it waits on, which is cancelled once it is answered: rows that are kept may never change.
  void watches(Watch watch) PERDURE_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (done_) std::swap(watch, watch_);
    }
    watch.cancel();
  }

 private:
  const bool keeps_;
  Mutex mutex_;
  ValueDone done_ PERDURE_GUARDED_BY(mutex_);
  bool gave_up_ PERDURE_GUARDED_BY(mutex_) = false;
  Task cancel_timer_ PERDURE_GUARDED_BY(mutex_);
  Watch watch_ PERDURE_GUARDED_BY(mutex_);
};

struct Request {
  enum class What { kMessage, kReset };
  What what = What::kMessage;
  MessageType type = MessageType::kCast;
  Value message;
  /// Names the caller, should it have to wait in the store; calls only.
  std::optional<Caller> caller;
  std::shared_ptr<Waiter> waiter;
  std::string traceparent = {};
  /// It was refused, and is not to be handled. One whose waiter has given up still is.
  bool over = false;

  void refuse(const Error& error) {
    over = true;
    waiter->answer(std::unexpected(error));
  }
};

}  // namespace perdure::actor
