#include "perdure/tick.h"

#include "debounce/tick_impl.h"
#include "debounce/tick_table.h"
#include "store/blocking.h"

namespace perdure {

std::string_view name_of(TickState state) {
  switch (state) {
    case TickState::kWaiting:
      return "waiting";
    case TickState::kAttempting:
      return "attempting";
    case TickState::kLeaderWaiting:
      return "leader_waiting";
    case TickState::kCheckingPending:
      return "checking_pending";
    case TickState::kSettingRunning:
      return "setting_running";
    case TickState::kRunning:
      return "running";
    case TickState::kDeleting:
      return "deleting";
    case TickState::kDraining:
      return "draining";
    case TickState::kRestarting:
      return "restarting";
    case TickState::kStopped:
      return "stopped";
  }
  return "unknown";
}

Result<Tick> Tick::open(Store store, std::shared_ptr<Leadership> leadership, TickOptions options,
                        TickHandlers handlers) {
  if (!handlers.pending || !handlers.run)
    return fail(ErrorCode::kInvalidArgument, "the handlers pending and run are both needed");
  auto work = [&handlers, options](Scheduler& scheduler) {
    return debounce::pool_work(scheduler, std::move(handlers), options);
  };
  return TickImpl::open(std::move(store), std::move(leadership), options, work);
}

Result<void> Tick::follow(const std::string& key) {
  return impl_->follow(key);
}

void Tick::unfollow(const std::string& key, std::move_only_function<void()> done) {
  impl_->unfollow(key, std::move(done));
}

std::vector<std::string> Tick::followed() const {
  return impl_->followed();
}

std::optional<TickInfo> Tick::info(const std::string& key) const {
  return impl_->info(key);
}

Result<TickInfo> Tick::inspect(const std::string& key) const {
  return block<TickInfo>(*impl_, [&](auto done) { impl_->inspect(key, std::move(done)); });
}

void Tick::inspect_async(const std::string& key, std::move_only_function<void(Result<TickInfo>)> done) const {
  impl_->inspect(key, std::move(done));
}

Result<void> Tick::stop(Duration grace) {
  return block<void>(*impl_, [&](auto done) { impl_->stop(grace, std::move(done)); });
}

void Tick::stop_async(Duration grace, std::move_only_function<void(Result<void>)> done) {
  impl_->stop(grace, std::move(done));
}

}  // namespace perdure
