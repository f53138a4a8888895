#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/scheduler.h"
#include "sim/timeline.h"

namespace perdure::sim {

/// The scheduler of one simulated process: its own tasks, timers, lanes and chance, on a timeline that it shares with
/// the others. It can be paused, its wall clock can jump, and when its process dies it runs what is left apart from the
/// world.
class NodeScheduler final : public Scheduler {
 public:
  /// The timeline must outlive it.
  NodeScheduler(Timeline& timeline, std::string name, std::uint64_t seed);
  ~NodeScheduler() override;
  NodeScheduler(const NodeScheduler&) = delete;
  NodeScheduler& operator=(const NodeScheduler&) = delete;

  void post(Task task) override;
  TimerId at(SteadyTime when, Task task) override;
  bool cancel(TimerId timer) override;
  SteadyTime now() override { return timeline_.now() + ahead_; }
  /// Begins at a fixed date; moves with virtual time, and may be made to jump.
  WallTime wall_now() override { return WallTime(now().time_since_epoch()) + wall_offset_; }
  std::uint64_t random() override { return random_(); }
  bool runs_here() const override { return draining_ || timeline_.running_ == this; }
  std::unique_ptr<Executor> lane(std::string name) override;

  const std::string& name() const { return name_; }
  /// From now on tasks on lanes of that name begin late, by up to `most`: what a handler does takes no virtual time, so
  /// this stands for handlers that do.
  void slow_down(std::string lanes, Duration most) { slow_.insert_or_assign(std::move(lanes), most); }
  /// None of its tasks runs before `when`; its timers come late.
  void pause_until(SteadyTime when) { paused_until_ = std::max(paused_until_, when); }
  void wake() { paused_until_ = timeline_.now(); }
  /// Moves the wall clock alone, in either direction.
  void jump_wall_clock(Duration by) { wall_offset_ += by; }

  /// Takes the node out of the world: runs its tasks alone, on a clock of its own that runs ahead, until `quiet` says
  /// so. False if that took more than `steps_max` tasks, or if nothing was left to run before. Never inside a task.
  bool drain(const std::function<bool()>& quiet, std::uint64_t steps_max);
  /// Drops all tasks and timers, and those that their ends hand over.
  void drop_everything();

 private:
  friend class Timeline;
  class Lane;
  struct Ready {
    std::uint64_t number;
    Task task;
  };
  using Queue = std::deque<Ready>;
  using TimerKey = std::pair<SteadyTime, TimerId>;
  struct Timer {
    Queue* queue;
    Task task;
  };

  void post_to(Queue& queue, Task task);
  void post_on_lane(Queue& queue, const std::string& lane, Task task);
  TimerId at_on(Queue& queue, SteadyTime when, Task task);
  void promote_due_timers(SteadyTime now);
  /// How many tasks could run next: all of the pool's, and the first of each lane.
  std::uint64_t ready_at(SteadyTime now);
  /// When that may change without anybody's doing.
  SteadyTime next_at() const;
  Ready take(std::uint64_t pick);
  void forget(Queue& queue);

  Timeline& timeline_;
  const std::string name_;
  Random random_;
  Duration wall_offset_;
  SteadyTime paused_until_;
  bool draining_ = false;
  /// How far its own clock has run ahead of the timeline, once it is taken out.
  Duration ahead_ = {};
  /// In no order, since any thread may take any task.
  Queue pool_;
  std::vector<std::unique_ptr<Queue>> lanes_;
  std::map<std::string, Duration> slow_;
  std::map<TimerKey, Timer> timers_;
  std::unordered_map<TimerId, SteadyTime> due_;
  std::uint64_t last_number_ = 0;
};

}  // namespace perdure::sim
