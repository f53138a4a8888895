// One key as one process follows it: the table of tick_table.h, with timers, writes and handlers.
//
// Everything that happens to a follower is put in a line and dealt with one after the other, on whichever thread comes
// first; so what is said to be of the line needs no lock, and nothing is ever done with a lock held. An answer knows
// which step, leadership or run it belongs to, and is dropped when that is over.
//
// At most one write of the key is under way, because each needs the revision of the one before: a status or the release
// waits for the answer to a keep-alive. Once a write has failed there are no more.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "debounce/tick_table.h"
#include "debounce/tick_work.h"
#include "perdure/leadership.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure {
class TickImpl;
}

namespace perdure::debounce {

class TickFollower : public std::enable_shared_from_this<TickFollower> {
 public:
  /// `home` is used only inside of its gate.
  TickFollower(TickImpl& home, std::string key);

  const std::string& key() const { return key_; }
  void start();
  void cancel();
  /// Gives the cancel signal of a run, if there is one.
  void cancel_run();
  TickInfo info() PERDURE_EXCLUDES(mutex_);

 private:
  enum class Wanted { kNothing, kRunning, kRelease };
  using RunPtr = std::shared_ptr<TickRunState>;

  void in_line(Task task) PERDURE_EXCLUDES(mutex_);
  /// What brings an answer back: into the line, if the home is still there.
  template <class... Args, class F>
  auto back(F then);
  Executor::TimerId after(Duration delay, Task task);
  void drop(Executor::TimerId& timer);

  // All that follows is of the line.
  void handle(TickEvent event);
  void perform(TickAction action);
  /// Remembers why, for the log, and handles it.
  void fault(const Error& why);
  void warn(std::string_view what, const Error& why);

  void watch();
  void watched(const LeadershipEvent& event);
  void check_missing();
  void acquire();
  void acquired(SteadyTime sent, const Result<std::uint64_t>& revision);
  void begin_window();
  void ask_pending();

  // The key, while it is ours.
  void renewed(SteadyTime sent);
  void keep_alive();
  void write(Wanted wanted);
  void send_update(LeaderStatus status);
  void updated(LeaderStatus status, SteadyTime sent, const Result<std::uint64_t>& revision);
  void send_release();
  /// It is ours no more.
  void forget();

  // The run.
  void take_token();
  void run();
  void returned(const Result<void>& result);
  void overrun();
  void commit(const RunPtr& run, unsigned attempt);
  void committed(const RunPtr& run, unsigned attempt, const Result<void>& result);
  void fail_run(const RunPtr& run, const Error& why);
  void end(const RunPtr& run, Result<void> result);

  void publish() PERDURE_EXCLUDES(mutex_);

  TickImpl& home_;
  const std::string key_;

  // Of the line.
  TickState state_ = TickState::kWaiting;
  bool leaving_ = false;
  /// Counts what was begun: an answer to an earlier step is late.
  std::uint64_t step_ = 0;
  /// Counts leaderships and their ends.
  std::uint64_t leadership_ = 0;
  std::uint64_t revision_ = 0;
  LeaderStatus status_ = LeaderStatus::kWaiting;
  bool writing_ = false;
  Wanted wanted_ = Wanted::kNothing;
  Executor::TimerId step_timer_ = 0;
  Executor::TimerId keepalive_timer_ = 0;
  /// When it fires, the key may have aged out.
  Executor::TimerId belief_timer_ = 0;
  Executor::TimerId run_timer_ = 0;
  /// Of the run that is to begin.
  Token token_;
  /// While its handler is running.
  RunPtr run_;
  /// The run of this leadership that has been committed.
  RunPtr ended_;
  unsigned faults_ = 0;
  std::uint64_t restarted_ = 0, runs_ = 0, failed_runs_ = 0;

  Mutex mutex_;
  std::deque<Task> line_ PERDURE_GUARDED_BY(mutex_);
  bool moving_ PERDURE_GUARDED_BY(mutex_) = false;
  TickInfo info_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::debounce
