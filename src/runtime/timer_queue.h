#pragma once

#include <deque>
#include <map>
#include <optional>

#include "runtime/scheduler.h"

namespace perdure {

/// Tasks that wait for their time. Not thread-safe.
class TimerQueue {
 public:
  using TimerId = Executor::TimerId;

  TimerId add(SteadyTime when, Task task) {
    TimerId id = ++last_;
    tasks_.emplace(Key{when, id}, std::move(task));
    due_.emplace(id, when);
    return id;
  }

  /// The task, so that it can die outside of the caller's lock; nothing if it is not here any more.
  std::optional<Task> remove(TimerId timer) {
    auto due = due_.find(timer);
    if (due == due_.end()) return std::nullopt;
    auto node = tasks_.extract({due->second, timer});
    due_.erase(due);
    return std::move(node.mapped());
  }

  std::optional<SteadyTime> next() const {
    return tasks_.empty() ? std::nullopt : std::optional(tasks_.begin()->first.first);
  }

  /// Moves those that are due at `now` to the end of `ready`, in the order of their times.
  void take_due(SteadyTime now, std::deque<Task>& ready) {
    while (!tasks_.empty() && tasks_.begin()->first.first <= now) {
      auto first = tasks_.begin();
      ready.push_back(std::move(first->second));
      due_.erase(first->first.second);
      tasks_.erase(first);
    }
  }

 private:
  using Key = std::pair<SteadyTime, TimerId>;

  std::map<Key, Task> tasks_;
  /// When each is due: what `remove` needs to find it in tasks_.
  std::map<TimerId, SteadyTime> due_;
  TimerId last_ = 0;
};

}  // namespace perdure
