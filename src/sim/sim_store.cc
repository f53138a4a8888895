#include "sim/sim_store.h"

#include <algorithm>
#include <utility>

#include "sim/sim_engine.h"

namespace perdure::sim {
namespace {

/// How long a late commit is on its way at most: long enough that its sender has asked what became of it.
constexpr Duration kLateMax = std::chrono::milliseconds(30);

}  // namespace

SimStore::SimStore(NodeScheduler& world, const StoreTraits& traits, ActiveFaults& faults, Trace& trace,
                   std::uint64_t seed)
    : world_(world), traits_(traits), faults_(faults), trace_(trace), random_(stream(seed, "store")) {
  rows_->keep_from(durable_epoch_);
}

std::uint64_t SimStore::join(SimEngine& engine) {
  engines_.emplace(++last_id_, &engine);
  return last_id_;
}

SimEngine* SimStore::find(std::uint64_t id) const {
  auto found = engines_.find(id);
  return found == engines_.end() ? nullptr : found->second;
}

void SimStore::sever(std::uint64_t id) {
  auto found = engines_.find(id);
  if (found == engines_.end()) return;
  SimEngine* severed = found->second;
  engines_.erase(found);
  for (Waiter& waiter : waiters_)
    if (waiter.id == id)
      severed->lane().post(
          [then = std::move(waiter.then)]() mutable { then(fail(ErrorCode::kStoreFailed, "this node has died")); });
  std::erase_if(waiters_, [id](const Waiter& waiter) { return waiter.id == id; });
  if (!traits_.knows_deaths) return;
  for (auto& [other, engine] : engines_)
    world_.at(world_.now() + draw_delay(random_, traits_.bell_max), [this, other] {
      if (SimEngine* told = find(other)) told->lane().post([told] { told->hear_of_death(); });
    });
}

std::uint64_t SimStore::install(memory::MemoryCommit& commit, std::uint64_t by, std::vector<std::uint64_t> keys,
                                Bells bells) {
  Version before = rows_->last_version();
  std::uint64_t epoch = rows_->install(commit);
  trace_.mark(rows_->last_version().number, world_.now());
  unsynced_.push_back({epoch, before});
  if (traits_.remote) {
    synced(epoch);
  } else {
    Duration sync =
        draw_delay(random_, traits_.sync_max) * faults_.degree(FaultClass::kSlowDisk, kEveryNode).value_or(1);
    world_.at(world_.now() + sync, [this, epoch, era = era_] {
      if (era == era_) synced(epoch);
    });
  }
  ring(by, rows_->last_version(), keys, bells);
  if (after_next_commit_)
    world_.at(world_.now() + draw_delay(random_, traits_.sync_max), std::exchange(after_next_commit_, {}));
  return epoch;
}

void SimStore::let_one_arrive(std::uint64_t reader) {
  for (auto& [id, engine] : engines_)
    if (id != reader && engine->travels()) return engine->arrive();
}

void SimStore::synced(std::uint64_t epoch) {
  if (epoch <= durable_epoch_) return;
  durable_epoch_ = epoch;
  while (!unsynced_.empty() && unsynced_.front().epoch <= epoch) unsynced_.pop_front();
  rows_->keep_from(epoch);
  tell_waiters();
}

void SimStore::when_durable(std::uint64_t epoch, std::uint64_t id, std::move_only_function<void(Result<void>)> then) {
  waiters_.push_back({epoch, id, std::move(then)});
  tell_waiters();
}

void SimStore::tell_waiters() {
  std::erase_if(waiters_, [this](Waiter& waiter) {
    if (!is_durable(waiter.epoch)) return false;
    find(waiter.id)->lane().post([then = std::move(waiter.then)]() mutable { then({}); });
    return true;
  });
}

void SimStore::ring(std::uint64_t by, Version version, const std::vector<std::uint64_t>& keys, Bells bells) {
  for (auto& [id, engine] : engines_) {
    if (id == by) continue;
    engine->expect_bell(version);
    if (bells == Bells::kForgotten || !reachable(engine->index())) continue;
    if (faults_.strikes(FaultClass::kLostBell, engine->index())) continue;
    Duration delay = draw_delay(random_, traits_.bell_max);
    if (auto late_ms = faults_.degree(FaultClass::kLateBell, engine->index())) {
      faults_.count(FaultClass::kLateBell);
      delay += draw_delay(random_, std::chrono::milliseconds(*late_ms));
    }
    world_.at(world_.now() + delay, [this, id, version, keys] {
      if (SimEngine* told = find(id)) told->lane().post([told, version, keys] { told->hear(version, keys); });
    });
  }
}

void SimStore::send_late(std::unique_ptr<memory::MemoryCommit> commit, std::uint64_t by,
                         std::vector<std::uint64_t> keys) {
  Version base = rows_->last_version();
  auto arrive = [this, commit = std::move(commit), by, keys = std::move(keys), base, era = era_]() mutable {
    // Versions come from a counter that the commit compares: whoever committed first has won.
    bool fits = era == era_ && rows_->last_version() == base && find(by);
    note(fits ? "a late commit arrives" : "a late commit arrives, and is refused");
    if (fits) install(*commit, by, std::move(keys), Bells::kRung);
  };
  world_.at(world_.now() + draw_delay(random_, kLateMax), std::move(arrive));
}

void SimStore::power_cut() {
  std::uint64_t lost = random_() % (unsynced_.size() + 1);
  note("power cut: of " + std::to_string(unsynced_.size()) + " commits that were not synced, " + std::to_string(lost) +
       " are lost");
  ++era_;
  if (lost > 0) {
    const Unsynced& first_lost = unsynced_[unsynced_.size() - lost];
    rows_->cut_back(first_lost.epoch - 1, first_lost.version_before);
  }
  settle();
}

void SimStore::settle() {
  ++era_;
  synced(rows_->epoch());
}

}  // namespace perdure::sim
