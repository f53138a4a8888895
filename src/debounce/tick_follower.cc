#include "debounce/tick_follower.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "debounce/tick_impl.h"
#include "debounce/tick_rows.h"

namespace perdure::debounce {

TickFollower::TickFollower(TickImpl& home, std::string key) : home_(home), key_(std::move(key)) {
  publish();
}

// The line.

void TickFollower::in_line(Task task) {
  MutexLock lock(mutex_);
  line_.push_back(std::move(task));
  if (std::exchange(moving_, true)) return;
  while (!line_.empty()) {
    Task next = std::move(line_.front());
    line_.pop_front();
    lock.unlock();
    next();
    next = {};
    lock.lock();
  }
  moving_ = false;
}

Executor::TimerId TickFollower::after(Duration delay, Task task) {
  return home_.at(home_.scheduler().now() + delay,
                  [self = shared_from_this(), task = std::move(task)]() mutable { self->in_line(std::move(task)); });
}

void TickFollower::drop(Executor::TimerId& timer) {
  if (Executor::TimerId old = std::exchange(timer, 0); old != 0) home_.scheduler().cancel(old);
}

void TickFollower::start() {
  in_line([this] { perform(TickAction::kWatch); });
}

void TickFollower::cancel() {
  in_line([this] { handle(TickEvent::kCancel); });
}

void TickFollower::cancel_run() {
  in_line([this] {
    if (run_) run_->cancel.cancel();
  });
}

TickInfo TickFollower::info() {
  MutexLock lock(mutex_);
  return info_;
}

void TickFollower::publish() {
  MutexLock lock(mutex_);
  info_ = {key_, state_, restarted_, runs_, failed_runs_, {}};
}

// The table.

void TickFollower::handle(TickEvent event) {
  auto edge = tick_edge(state_, event);
  if (!edge || (event == TickEvent::kLost && seeded(SeededBug::kIgnoreLoss))) return;
  if (event == TickEvent::kCancel) leaving_ = true;
  TickAction action = leaving_ ? edge->leaving_action : edge->action;
  state_ = leaving_ ? edge->leaving_to : edge->to;
  if (action != TickAction::kNone) {
    ++step_;
    drop(step_timer_);
  }
  publish();
  perform(action);
}

void TickFollower::perform(TickAction action) {
  switch (action) {
    case TickAction::kNone:
      return;
    case TickAction::kWatch:
    case TickAction::kForget:
      forget();
      if (runs_ > 0 && seeded(SeededBug::kFollowOnce)) return;
      return watch();
    case TickAction::kAcquire:
      return acquire();
    case TickAction::kBeginWindow:
      return begin_window();
    case TickAction::kAskPending:
      return ask_pending();
    case TickAction::kSetRunning:
      return write(Wanted::kRunning);
    case TickAction::kRun:
      return run();
    case TickAction::kLeave:
      leaving_ = true;
      return write(Wanted::kRelease);
    case TickAction::kRelease:
      if (leaving_ && seeded(SeededBug::kLeaveWithoutRelease)) return handle(TickEvent::kReleased);
      return write(Wanted::kRelease);
    case TickAction::kForgetRun:
      if (run_) run_->cancel.cancel();
      return forget();
    case TickAction::kBackOff: {
      Duration pause = home_.options().restart_min;
      for (unsigned i = 0; i < faults_ && pause < home_.options().restart_max; ++i) pause *= 2;
      ++faults_;
      step_timer_ = after(std::min(pause, home_.options().restart_max), [this, step = step_] {
        if (step == step_) handle(TickEvent::kBackOffOver);
      });
      return;
    }
    case TickAction::kStop:
      forget();
      if (auto leadership = home_.leadership()) leadership->unwatch(key_);
      return home_.stopped(key_);
  }
}

void TickFollower::warn(std::string_view what, const Error& why) {
  home_.warn(what, key_, restarted_, why);
}

void TickFollower::fault(const Error& why) {
  ++restarted_;
  warn("a key is followed anew after an error", why);
  handle(TickEvent::kFault);
}

// Waiting.

void TickFollower::watch() {
  auto leadership = home_.leadership();
  if (!leadership) return;
  leadership->watch(key_, [weak = home_.weak_from_this(), self = shared_from_this()](const LeadershipEvent& event) {
    auto home = weak.lock();
    if (!home) return;
    if (auto use = home->enter()) self->in_line([self, event] { self->watched(event); });
  });
  bool looks = leadership->renewal() == perdure::Renewal::kByOwner && !seeded(SeededBug::kTrustTheWatch);
  if (looks) check_missing();
}

void TickFollower::watched(const LeadershipEvent& event) {
  using What = LeadershipEvent::What;
  auto leadership = home_.leadership();
  if (!leadership) return;
  if (state_ == TickState::kRestarting && event.what == What::kUnsure) return handle(TickEvent::kBackOffOver);
  if (state_ == TickState::kWaiting && event.what == What::kGone) return handle(TickEvent::kGone);
  if (state_ == TickState::kWaiting && event.what == What::kUnsure) return check_missing();
  if (!leads(state_)) return;
  bool foreign = event.what == What::kChanged && event.owner != leadership->instance_id();
  // Our own release is told as well, and what happened before we had the key may be told late.
  bool gone = event.what == What::kGone && state_ != TickState::kDeleting;
  if (event.what == What::kLost || ((foreign || gone) && event.revision > revision_)) handle(TickEvent::kLost);
}

void TickFollower::check_missing() {
  auto leadership = home_.leadership();
  if (!leadership || state_ != TickState::kWaiting) return;
  drop(step_timer_);
  using Seen = Result<std::optional<LeadershipView>>;
  leadership->look(key_, back<Seen>([this, step = step_](Seen seen) {
                     if (step != step_) return;
                     if (!seen) return fault(seen.error());
                     if (!*seen) return handle(TickEvent::kAbsent);
                     faults_ = 0;
                     drop(step_timer_);
                     step_timer_ = after(home_.missing_check(), [this, step] {
                       if (step == step_) check_missing();
                     });
                   }));
}

void TickFollower::acquire() {
  auto leadership = home_.leadership();
  if (!leadership) return;
  SteadyTime sent = home_.scheduler().now();
  using Won = Result<std::uint64_t>;
  leadership->acquire(key_, back<Won>([this, step = step_, sent](Won revision) {
                        if (step == step_) acquired(sent, revision);
                      }));
}

void TickFollower::acquired(SteadyTime sent, const Result<std::uint64_t>& revision) {
  if (!revision && revision.error().code == ErrorCode::kConflict) return handle(TickEvent::kLostRace);
  if (!revision) return fault(revision.error());
  faults_ = 0;
  ++leadership_;
  revision_ = *revision;
  status_ = LeaderStatus::kWaiting;
  renewed(sent);
  handle(TickEvent::kWon);
}

// Leading.

void TickFollower::begin_window() {
  step_timer_ = after(home_.options().window, [this, step = step_] {
    if (step == step_) handle(TickEvent::kWindowOver);
  });
}

void TickFollower::ask_pending() {
  home_.work().pending(key_, back<Result<Pending>>([this, step = step_](Result<Pending> answer) {
                         if (step != step_) return;
                         if (!answer) {
                           warn("the pending check of a key failed", answer.error());
                           return handle(TickEvent::kCheckFailed);
                         }
                         switch (*answer) {
                           case Pending::kNothing:
                             return handle(TickEvent::kNothing);
                           case Pending::kWork:
                             return handle(TickEvent::kWork);
                           case Pending::kClosed:
                             return handle(TickEvent::kClosed);
                         }
                       }));
}

void TickFollower::renewed(SteadyTime sent) {
  auto leadership = home_.leadership();
  if (!leadership || leadership->renewal() == perdure::Renewal::kByItself) return;
  drop(keepalive_timer_);
  drop(belief_timer_);
  SteadyTime now = home_.scheduler().now();
  if (seeded(SeededBug::kCountFromTheAnswer)) sent = now;
  keepalive_timer_ = after(sent + home_.keepalive() - now, [this, owned = leadership_] {
    if (owned == leadership_) keep_alive();
  });
  belief_timer_ = after(sent + leadership->max_age() - now, [this, owned = leadership_] {
    if (owned != leadership_) return;
    warn("a key was lost: its keep-alive is overdue", {ErrorCode::kDeadline, "no update was answered within max_age"});
    handle(TickEvent::kLost);
  });
}

void TickFollower::keep_alive() {
  // A write that is under way is as good, and its answer sets the next timer.
  if (!writing_) send_update(status_);
}

void TickFollower::write(Wanted wanted) {
  wanted_ = wanted;
  if (writing_) return;
  if (wanted == Wanted::kRelease)
    send_release();
  else
    send_update(LeaderStatus::kRunning);
}

void TickFollower::send_update(LeaderStatus status) {
  auto leadership = home_.leadership();
  if (!leadership) return;
  writing_ = true;
  SteadyTime sent = home_.scheduler().now();
  using Written = Result<std::uint64_t>;
  leadership->update(key_, revision_, status,
                     back<Written>([this, owned = leadership_, status, sent](Written revision) {
                       if (owned == leadership_) updated(status, sent, revision);
                     }));
}

void TickFollower::updated(LeaderStatus status, SteadyTime sent, const Result<std::uint64_t>& revision) {
  writing_ = false;
  bool was_status = status != status_;
  if (!revision && !seeded(SeededBug::kKeepAfterFailure)) {
    warn("a key was lost: it could not be updated", revision.error());
    return handle(was_status && state_ == TickState::kSettingRunning ? TickEvent::kSetFailed : TickEvent::kLost);
  }
  revision_ = revision.value_or(revision_);
  status_ = status;
  renewed(sent);
  if (wanted_ == Wanted::kRelease) return send_release();
  if (wanted_ != Wanted::kRunning) return;
  if (!was_status) return send_update(LeaderStatus::kRunning);
  wanted_ = Wanted::kNothing;
  take_token();
}

void TickFollower::send_release() {
  auto leadership = home_.leadership();
  if (!leadership) return;
  writing_ = true;
  drop(keepalive_timer_);
  leadership->release(key_, revision_, back<Result<void>>([this, owned = leadership_](Result<void> released) {
                        if (owned != leadership_) return;
                        if (!released) {
                          warn("a key was not given back, and is left alone", released.error());
                          return handle(TickEvent::kNotReleased);
                        }
                        // What is left of the run tells nobody anything any more.
                        if (RunPtr run = std::exchange(ended_, nullptr))
                          home_.transact(
                              [run](Transaction& txn) {
                                SystemAccess access(txn);
                                forget_run(txn, run->row, run->token.stamp);
                              },
                              [](const Result<void>&, Receipt) {}, {.body = Body::kShort, .reserve = Reserve::kMayUse});
                        handle(TickEvent::kReleased);
                      }));
}

void TickFollower::forget() {
  if (auto leadership = home_.leadership()) leadership->abandon(key_);
  ++leadership_;
  writing_ = false;
  wanted_ = Wanted::kNothing;
  ended_ = nullptr;
  drop(keepalive_timer_);
  drop(belief_timer_);
}

}  // namespace perdure::debounce
