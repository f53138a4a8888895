#include "debounce/tick_impl.h"

#include "runtime/latch.h"
#include "session/rows.h"
#include "store/blocking.h"
#include "store/report.h"

namespace perdure {

using debounce::TickFollower;

namespace {

constexpr unsigned kConcurrencyMax = 10'000;

std::string in_seconds(Duration duration) {
  return std::to_string(std::chrono::duration<double>(duration).count()) + " s";
}

Result<void> check_options(const TickOptions& options, Duration max_age) {
  auto wrong = [](std::string what) { return fail(ErrorCode::kInvalidArgument, std::move(what)); };
  if (auto good = session::check_short_name(options.name, "the name of the tick"); !good) return good;
  if (options.window <= Duration::zero()) return wrong("window must be more than nothing");
  Duration keepalive = options.keepalive.value_or(max_age / 2);
  if (keepalive <= Duration::zero()) return wrong("keepalive must be more than nothing");
  if (keepalive >= max_age)
    return wrong("keepalive is " + in_seconds(keepalive) + ", and must be less than the max_age of the leadership, " +
                 in_seconds(max_age) + ", or the key of a healthy leader would age out");
  if (options.missing_check.value_or(max_age) <= Duration::zero())
    return wrong("missing_check must be more than nothing");
  if (options.run_timeout <= Duration::zero()) return wrong("run_timeout must be more than nothing");
  if (options.restart_min <= Duration::zero() || options.restart_max < options.restart_min)
    return wrong("restart_min must be more than nothing, and restart_max not less than that");
  if (options.concurrency < 1 || options.concurrency > kConcurrencyMax)
    return wrong("concurrency must be from 1 to 10000");
  return {};
}

}  // namespace

// Opening.

Result<Tick> TickImpl::open(Store store, std::shared_ptr<Leadership> leadership, TickOptions options,
                            const MakeWork& work) {
  if (!leadership) return fail(ErrorCode::kInvalidArgument, "there is no leadership; open one first");
  if (auto good = check_options(options, leadership->max_age()); !good) return std::unexpected(std::move(good.error()));
  auto use = StoreAccess::impl(store).use();
  if (!use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<TickImpl>(store, leadership, std::move(options), work);
  std::uint64_t before_close = StoreAccess::impl(store).before_close([weak = impl->weak_from_this()] {
    auto self = weak.lock();
    if (!self || StoreAccess::impl(self->store_).muted()) return;
    self->work_->close([] {});
    self->closed({});
  });
  if (before_close == 0) return std::unexpected(impl->closed_error());
  {
    MutexLock lock(impl->mutex_);
    impl->before_close_ = before_close;
  }
  // Handles share an owner of their own, as callbacks may keep the object for a moment longer. They keep the leadership
  // and the store as well, which go in this order.
  TickImpl* raw = impl.get();
  struct Owned {
    Store store;
    std::shared_ptr<Leadership> leadership;
    std::shared_ptr<TickImpl> impl;
  };
  std::shared_ptr<TickImpl> handle(
      raw, [owned = std::make_unique<Owned>(Owned{std::move(store), std::move(leadership), std::move(impl)})](
               TickImpl* node) mutable {
        node->abandon();
        owned->impl.reset();
        owned->leadership.reset();
      });
  return Tick(std::move(handle));
}

TickImpl::TickImpl(Store& store, std::shared_ptr<Leadership> leadership, TickOptions options, const MakeWork& work)
    : StorePart(store, "the keys of this tick"),
      options_(std::move(options)),
      keepalive_(options_.keepalive.value_or(leadership->max_age() / 2)),
      missing_check_(options_.missing_check.value_or(leadership->max_age() * 3 / 2)),
      work_(work(scheduler_)),
      leadership_(std::move(leadership)) {}

std::shared_ptr<Leadership> TickImpl::leadership() {
  MutexLock lock(mutex_);
  return leadership_;
}

void TickImpl::warn(std::string_view what, const std::string& key, std::uint64_t restarted, const Error& why) {
  std::string count = std::to_string(restarted), text = to_string(why);
  log(StoreAccess::impl(store_).options(), LogLevel::kWarning, "tick", what,
      {{"tick", options_.name}, {"key", key}, {"restarted_count", count}, {"why", text}});
}

// Following.

Result<void> TickImpl::follow(const std::string& key) {
  auto use = enter();
  auto elects = leadership();
  if (!use || !elects) return std::unexpected(closed_error());
  if (auto good = elects->check_key(key); !good) return good;
  FollowerPtr follower;
  {
    MutexLock lock(mutex_);
    if (stopping_) return std::unexpected(closed_error());
    if (leaving_.contains(key)) {
      again_.insert(key);
      return {};
    }
    FollowerPtr& place = followers_[key];
    if (place) return {};
    place = follower = std::make_shared<TickFollower>(*this, key);
  }
  follower->start();
  return {};
}

void TickImpl::unfollow(const std::string& key, Task done) {
  auto use = enter();
  FollowerPtr follower;
  if (use) {
    MutexLock lock(mutex_);
    auto found = followers_.find(key);
    if (found != followers_.end()) {
      follower = found->second;
      again_.erase(key);
      if (done) leaving_[key].push_back(std::move(done));
      leaving_[key];
    }
  }
  if (follower)
    follower->cancel();
  else if (done)
    done();
}

void TickImpl::stopped(const std::string& key) {
  std::vector<Task> waiting;
  bool again;
  {
    MutexLock lock(mutex_);
    followers_.erase(key);
    if (auto found = leaving_.find(key); found != leaving_.end()) {
      waiting = std::move(found->second);
      leaving_.erase(found);
    }
    again = again_.erase(key) > 0;
  }
  for (Task& done : waiting) done();
  // Refused only if it is stopping, and then there is no need for it.
  if (again) (void)follow(key);
  finish_if_empty();
}

TickImpl::FollowerPtr TickImpl::find(const std::string& key) {
  MutexLock lock(mutex_);
  auto found = followers_.find(key);
  return found == followers_.end() ? nullptr : found->second;
}

std::vector<std::string> TickImpl::followed() {
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (auto& [key, follower] : followers_) keys.push_back(key);
  return keys;
}

std::optional<TickInfo> TickImpl::info(const std::string& key) {
  auto follower = find(key);
  if (!follower) return std::nullopt;
  return follower->info();
}

void TickImpl::inspect(const std::string& key, std::move_only_function<void(Result<TickInfo>)> done) {
  auto use = enter();
  auto elects = leadership();
  if (!use || !elects) return done(std::unexpected(closed_error()));
  auto known = info(key);
  if (!known) return done(fail(ErrorCode::kNotFound, "the key '" + key + "' is not followed here"));
  elects->look(key,
               [known = std::move(*known), done = std::move(done)](Result<std::optional<LeadershipView>> seen) mutable {
                 if (!seen) return done(std::unexpected(std::move(seen.error())));
                 known.leader = std::move(*seen);
                 done(std::move(known));
               });
}

// Stopping.

void TickImpl::stop(Duration grace, StopDone done) {
  auto use = enter();
  std::vector<FollowerPtr> all;
  bool over, first;
  {
    MutexLock lock(mutex_);
    over = closed_ || !use;
    first = !std::exchange(stopping_, true);
    again_.clear();
    if (!over) stoppers_.push_back(std::move(done));
    for (auto& [key, follower] : followers_) all.push_back(follower);
  }
  if (over) return done({});
  if (SteadyTime now = scheduler_.now(); grace < SteadyTime::max() - now) at(now + grace, [this] { grace_over(); });
  if (!first) return;
  for (auto& follower : all) follower->cancel();
  finish_if_empty();
}

void TickImpl::finish_if_empty() {
  {
    MutexLock lock(mutex_);
    if (!stopping_ || !followers_.empty()) return;
  }
  // Perhaps on one of the threads that are waited for, so not in this call.
  work_->close(guarded([this] { closed({}); }));
}

void TickImpl::grace_over() {
  std::vector<FollowerPtr> left;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    for (auto& [key, follower] : followers_) left.push_back(follower);
  }
  for (auto& follower : left) follower->cancel_run();
  work_->close([] {});
  work_->leave_behind();
  closed(fail(ErrorCode::kDeadline,
              "a handler was still running when the grace was over; it has been told, and its key ages out"));
}

void TickImpl::closed(const Result<void>& result) {
  std::vector<StopDone> stoppers;
  std::map<std::string, FollowerPtr> followers;
  std::map<std::string, std::vector<Task>> leaving;
  std::shared_ptr<Leadership> elects;
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    stopping_ = true;
    stoppers.swap(stoppers_);
    followers.swap(followers_);
    leaving.swap(leaving_);
    elects.swap(leadership_);
  }
  // From now on nobody comes back.
  gate_.close();
  for (auto& [key, follower] : followers) {
    if (!elects) break;
    elects->unwatch(key);
    elects->abandon(key);
  }
  for (auto& [key, waiting] : leaving)
    for (Task& done : waiting) done();
  for (StopDone& done : stoppers) done(result);
}

Result<void> TickImpl::may_block() {
  if (StoreAccess::impl(store_).must_not_block() || HandlerPool::runs_here())
    return fail(ErrorCode::kInvalidArgument,
                "a blocking call was made in a callback of the store or a handler, and would wait for itself; use the "
                "asynchronous form");
  return {};
}

void TickImpl::abandon() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = may_block().has_value();
  if (may_wait) {
    auto ended = std::make_shared<Latch>();
    stop(Duration::max(), [ended](const Result<void>&) { ended->set(); });
    ended->wait();
    work_->join();
  } else if (!StoreAccess::impl(store_).muted()) {
    work_->close([] {});
    closed({});
  }
  std::uint64_t before_close;
  {
    MutexLock lock(mutex_);
    before_close = before_close_;
    leadership_.reset();
  }
  // Whoever calls this still has a handle of the store.
  StoreAccess::impl(store_).forget_before_close(before_close);
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

}  // namespace perdure
