#include "tick_bucket.h"

#include <utility>

namespace perdure::sim::debouncing {

using std::chrono::milliseconds;
using What = LeadershipEvent::What;

/// One node's share.
class BucketLeadership final : public Leadership, public std::enable_shared_from_this<BucketLeadership> {
 public:
  BucketLeadership(Bucket& bucket, SimNode& node) : bucket_(bucket), node_(node) {}

  const std::string& instance_id() const override { return node_.name(); }
  Duration max_age() const override { return bucket_.options_.max_age; }
  Renewal renewal() const override { return Renewal::kByOwner; }
  Result<void> check_key(std::string_view) const override { return {}; }

  void acquire(const std::string& key, Done<std::uint64_t> done) override {
    ask<std::uint64_t>(
        [this, key]() -> Result<std::uint64_t> {
          if (bucket_.find(key)) return fail(ErrorCode::kConflict, "another owns it");
          return bucket_.write(key, instance_id(), LeaderStatus::kWaiting);
        },
        std::move(done));
  }
  void update(const std::string& key, std::uint64_t revision, LeaderStatus status, Done<std::uint64_t> done) override {
    ask<std::uint64_t>(
        [this, key, revision, status]() -> Result<std::uint64_t> {
          if (auto stale = refusal(key, revision); !stale) return std::unexpected(stale.error());
          return bucket_.write(key, instance_id(), status);
        },
        std::move(done));
  }
  void release(const std::string& key, std::uint64_t revision, Done<void> done) override {
    ask<void>(
        [this, key, revision]() -> Result<void> {
          if (auto stale = refusal(key, revision); !stale) return stale;
          bucket_.purge(key, ++bucket_.last_revision_);
          return {};
        },
        std::move(done));
  }
  void look(const std::string& key, Done<std::optional<LeadershipView>> done) override {
    ask<std::optional<LeadershipView>>(
        [this, key]() -> Result<std::optional<LeadershipView>> {
          const Bucket::Entry* entry = bucket_.find(key);
          if (!entry) return std::nullopt;
          return LeadershipView{entry->owner, entry->revision, entry->status, {}};
        },
        std::move(done));
  }
  void watch(const std::string& key, Watcher watcher) override {
    watchers_[key] = std::move(watcher);
    const Bucket::Entry* entry = bucket_.find(key);
    hear(key,
         entry ? LeadershipEvent{What::kChanged, entry->revision, entry->owner} : LeadershipEvent{What::kGone, 0, {}});
  }
  void unwatch(const std::string& key) override { watchers_.erase(key); }

  void hear(const std::string& key, const LeadershipEvent& event) {
    if (!watchers_.contains(key) || !node_.alive()) return;
    auto way = bucket_.way(node_.random());
    // One that was lost leaves a gap in the numbers, which shows by the next heartbeat.
    LeadershipEvent heard = way ? event : LeadershipEvent{What::kUnsure, 0, {}};
    after(way.value_or(milliseconds(500)), [this, key, heard] {
      auto found = watchers_.find(key);
      if (found == watchers_.end()) return;
      Watcher watcher = found->second;
      watcher(heard);
    });
  }

 private:
  Result<void> refusal(const std::string& key, std::uint64_t revision) const {
    const Bucket::Entry* entry = bucket_.find(key);
    if (entry && entry->revision == revision) return {};
    return fail(ErrorCode::kStaleToken, "its revision is another");
  }

  /// On the node, if both are still there.
  template <class F>
  void after(Duration delay, F what) {
    NodeScheduler& scheduler = node_.scheduler();
    scheduler.at(scheduler.now() + delay, [weak = weak_from_this(), what = std::move(what)]() mutable {
      if (auto self = weak.lock(); self && self->node_.alive()) what();
    });
  }

  template <class T>
  void ask(std::function<Result<T>()> serve, Done<T> done) {
    auto answer = std::make_shared<Done<T>>(std::move(done));
    auto give = [answer](Result<T> result) {
      if (Done<T> once = std::exchange(*answer, nullptr)) once(std::move(result));
    };
    // Shorter or longer than what is left of a key when it is kept alive.
    after(max_age() / draw(node_.random(), 1, 8), [this, answer, give] {
      if (*answer) bucket_.lost_at_ = bucket_.world_.now();
      give(fail(ErrorCode::kUnavailable, "no answer in time"));
    });
    auto there = bucket_.way(node_.random()), back = bucket_.way(node_.random());
    if (!there) return;
    bucket_.world_.at(bucket_.world_.now() + *there, [weak = weak_from_this(), serve = std::move(serve), give, back] {
      auto self = weak.lock();
      // A request that is on its way arrives also if its sender is dead, but for those of lives that are long gone.
      if (!self) return;
      Result<T> result = serve();
      if (back && self->node_.alive()) self->after(*back, [give, result = std::move(result)] { give(result); });
    });
  }

  Bucket& bucket_;
  SimNode& node_;
  std::map<std::string, Watcher> watchers_;
};

std::shared_ptr<Leadership> Bucket::open(SimNode& node) {
  auto client = std::make_shared<BucketLeadership>(*this, node);
  std::erase_if(clients_, [](const auto& each) { return each.expired(); });
  clients_.push_back(client);
  return client;
}

const Bucket::Entry* Bucket::find(const std::string& key) const {
  auto found = entries_.find(key);
  if (found == entries_.end() || found->second.written + options_.max_age <= world_.now()) return nullptr;
  return &found->second;
}

std::uint64_t Bucket::write(const std::string& key, const std::string& owner, LeaderStatus status) {
  std::uint64_t revision = ++last_revision_;
  entries_[key] = {owner, status, revision, world_.now()};
  tell(key, {What::kChanged, revision, owner});
  // Those who watch it see a little later that it has aged out, or never.
  if (revision % 2 == 0)
    world_.at(world_.now() + options_.max_age + milliseconds(50), [this, key, revision] {
      auto found = entries_.find(key);
      if (found != entries_.end() && found->second.revision == revision) purge(key, 0);
    });
  return revision;
}

void Bucket::purge(const std::string& key, std::uint64_t revision) {
  entries_.erase(key);
  tell(key, {What::kGone, revision, {}});
}

void Bucket::tell(const std::string& key, const LeadershipEvent& event) {
  for (auto& each : clients_)
    if (auto client = each.lock()) client->hear(key, event);
}

std::optional<Duration> Bucket::way(Random& random) {
  if (chance(random, options_.losses)) {
    lost_at_ = world_.now();
    return std::nullopt;
  }
  // Most are quick.
  Duration most = chance(random, 200) ? options_.slow : Duration(milliseconds(2));
  return Duration(static_cast<std::int64_t>(draw(random, 1, static_cast<std::uint64_t>(most.count()))));
}

}  // namespace perdure::sim::debouncing
