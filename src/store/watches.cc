#include "store/watches.h"

#include <limits>

namespace perdure {
namespace {

constexpr Version kUnknownVersion{std::numeric_limits<std::uint64_t>::max()};

}  // namespace

void WatchState::changed(Version version) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kPending) {
      noted_ = std::max(noted_, version);
      return;
    }
    if (state_ != State::kArmed) return;
  }
  finish(State::kFired);
}

void WatchState::arm(Version own) {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kPending) return;
    state_ = State::kArmed;
    if (noted_ <= own) return;
  }
  finish(State::kFired);
}

void WatchState::cancel() {
  finish(State::kCancelled);
}

void WatchState::then(Task callback) {
  MutexLock lock(mutex_);
  if (state_ == State::kFired) {
    registry_->post(std::move(callback));
  } else if (state_ != State::kCancelled) {
    callback_ = std::move(callback);
  }
}

void WatchState::finish(State state) {
  auto self = shared_from_this();  // The registry's copy goes below.
  Task callback;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kFired || state_ == State::kCancelled) return;
    state_ = state;
    callback = std::move(callback_);
    callback_ = nullptr;
  }
  registry_->remove(*this);
  if (state == State::kFired && callback) registry_->post(std::move(callback));
  fired_.set();
}

Result<std::shared_ptr<WatchState>> WatchRegistry::add(BytesView key) {
  std::uint64_t hash = watch_hash(key);
  auto watch = std::make_shared<WatchState>(shared_from_this(), hash);
  MutexLock lock(mutex_);
  if (watches_.size() >= watches_max_)
    return fail(ErrorCode::kLimitExceeded, "the store has " + std::to_string(watches_max_) +
                                               " watches open, which is its limit; cancel some or raise watches_max");
  watches_.emplace(hash, watch);
  return watch;
}

void WatchRegistry::notify(std::span<const Change> changes) {
  std::vector<std::pair<std::shared_ptr<WatchState>, Version>> hit;
  {
    MutexLock lock(mutex_);
    if (watches_.empty()) return;
    for (const Change& change : changes) {
      auto [first, last] = watches_.equal_range(change.key_hash);
      for (; first != last; ++first) hit.emplace_back(first->second, change.version);
    }
  }
  for (auto& [watch, version] : hit) watch->changed(version);
}

void WatchRegistry::keys_changed(std::span<const std::uint64_t> key_hashes) {
  std::vector<Change> changes;
  changes.reserve(key_hashes.size());
  for (std::uint64_t hash : key_hashes) changes.push_back({hash, kUnknownVersion});
  notify(changes);
}

void WatchRegistry::anything_changed() {
  for (auto& watch : all()) watch->changed(kUnknownVersion);
}

void WatchRegistry::cancel_all() {
  for (auto& watch : all()) watch->cancel();
  MutexLock lock(mutex_);
  executor_ = nullptr;
}

void WatchRegistry::post(Task callback) {
  MutexLock lock(mutex_);
  if (executor_) executor_->post(std::move(callback));
}

std::vector<std::shared_ptr<WatchState>> WatchRegistry::all() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<WatchState>> watches;
  watches.reserve(watches_.size());
  for (auto& [hash, watch] : watches_) watches.push_back(watch);
  return watches;
}

void WatchRegistry::remove(const WatchState& watch) {
  std::shared_ptr<WatchState> removed;  // Dies outside of the lock.
  MutexLock lock(mutex_);
  auto [first, last] = watches_.equal_range(watch.key_hash_);
  for (; first != last; ++first) {
    if (first->second.get() != &watch) continue;
    removed = std::move(first->second);
    watches_.erase(first);
    return;
  }
}

bool WatchState::forked() const {
  return registry_->fork_mark_->forked();
}

bool Watch::wait(Duration timeout) {
  return !state_ || state_->forked() || state_->wait(timeout);
}

void Watch::then(std::move_only_function<void()> callback) {
  if (state_ && !state_->forked()) state_->then(std::move(callback));
}

void Watch::cancel() {
  if (state_ && !state_->forked()) state_->cancel();
}

}  // namespace perdure
