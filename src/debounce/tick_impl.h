// One process's share in a tick debouncer: the keys that it follows, and what they have in common.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "debounce/tick_follower.h"
#include "debounce/tick_work.h"
#include "perdure/tick.h"
#include "runtime/mutex.h"
#include "store/store_part.h"

namespace perdure {

class TickImpl : public StorePart<TickImpl> {
 public:
  using MakeWork = std::function<std::unique_ptr<debounce::TickWork>(Scheduler&)>;
  using StopDone = std::move_only_function<void(Result<void>)>;
  static Result<Tick> open(Store store, std::shared_ptr<Leadership> leadership, TickOptions options,
                           const MakeWork& work);
  /// `store` is kept open by the handles.
  TickImpl(Store& store, std::shared_ptr<Leadership> leadership, TickOptions options, const MakeWork& work);

  // For the public class.
  Result<void> follow(const std::string& key) PERDURE_EXCLUDES(mutex_);
  void unfollow(const std::string& key, Task done) PERDURE_EXCLUDES(mutex_);
  std::vector<std::string> followed() PERDURE_EXCLUDES(mutex_);
  std::optional<TickInfo> info(const std::string& key) PERDURE_EXCLUDES(mutex_);
  void inspect(const std::string& key, std::move_only_function<void(Result<TickInfo>)> done) PERDURE_EXCLUDES(mutex_);
  void stop(Duration grace, StopDone done) PERDURE_EXCLUDES(mutex_);
  Result<void> may_block();
  /// The last handle goes.
  void abandon() PERDURE_EXCLUDES(mutex_);

  // For the followers.
  const TickOptions& options() const { return options_; }
  Duration keepalive() const { return keepalive_; }
  Duration missing_check() const { return missing_check_; }
  /// Null once it is closed.
  std::shared_ptr<Leadership> leadership() PERDURE_EXCLUDES(mutex_);
  debounce::TickWork& work() { return *work_; }
  void stopped(const std::string& key) PERDURE_EXCLUDES(mutex_);
  void warn(std::string_view what, const std::string& key, std::uint64_t restarted, const Error& why);

 private:
  using FollowerPtr = std::shared_ptr<debounce::TickFollower>;
  FollowerPtr find(const std::string& key) PERDURE_EXCLUDES(mutex_);
  void finish_if_empty() PERDURE_EXCLUDES(mutex_);
  void grace_over() PERDURE_EXCLUDES(mutex_);
  void closed(const Result<void>& result) PERDURE_EXCLUDES(mutex_);

  const TickOptions options_;
  const Duration keepalive_;
  const Duration missing_check_;
  const std::unique_ptr<debounce::TickWork> work_;

  Mutex mutex_;
  std::shared_ptr<Leadership> leadership_ PERDURE_GUARDED_BY(mutex_);
  std::map<std::string, FollowerPtr> followers_ PERDURE_GUARDED_BY(mutex_);
  /// Keys that are on their way out, and who waits for that.
  std::map<std::string, std::vector<Task>> leaving_ PERDURE_GUARDED_BY(mutex_);
  /// Of these, the ones that were followed again meanwhile.
  std::set<std::string> again_ PERDURE_GUARDED_BY(mutex_);
  bool stopping_ PERDURE_GUARDED_BY(mutex_) = false;
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<StopDone> stoppers_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
};

namespace debounce {

template <class... Args, class F>
auto TickFollower::back(F then) {
  return [weak = home_.weak_from_this(), self = shared_from_this(), then = std::move(then)](Args... args) mutable {
    auto home = weak.lock();
    if (!home) return;
    auto use = home->enter();
    if (!use) return;
    self->in_line([then = std::move(then), ... values = std::move(args)]() mutable { then(std::move(values)...); });
  };
}

}  // namespace debounce
}  // namespace perdure
