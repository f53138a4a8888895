// What a slot does next, and which slots there are. The steps of a batch are in slot_batch.cc.
#include "actor/slots.h"

#include <algorithm>

#include "actor/actors_impl.h"

namespace perdure::actor {
namespace {

/// Of a slot in the cache, beside what its state takes when encoded.
constexpr std::size_t kSlotBytes = 400;

void run_all(std::vector<Task>& tasks) {
  for (Task& task : tasks) task();
}

}  // namespace

void Slots::request(const ActorId& actor, const std::shared_ptr<ServedKind>& kind, Request request, Way way) {
  SlotPtr slot;
  std::optional<Error> refused;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      refused = closed_;
    } else {
      slot = find_or_make(actor, kind);
      auto& queue = way == Way::kPriority ? slot->priority : slot->requests;
      if (queue.size() >= kind->options.mailbox_max)
        refused = Error{ErrorCode::kMailboxFull, actor.to_string() + " has " + std::to_string(queue.size()) +
                                                     " messages of this process waiting; try again later"};
      else
        queue.push_back(std::move(request));
    }
  }
  if (refused)
    request.refuse(*refused);
  else
    advance(slot);
}

void Slots::replace_kind(const std::shared_ptr<ServedKind>& kind) {
  MutexLock lock(mutex_);
  for (auto& [prefix, slot] : slots_)
    if (slot->id.space == kind->space && slot->id.kind == kind->name) slot->kind = kind;
}

void Slots::stop_kind(const std::shared_ptr<ServedKind>& kind) {
  std::vector<SlotPtr> slots;
  {
    MutexLock lock(mutex_);
    kind->stopped = true;
    for (auto& [prefix, slot] : slots_)
      if (slot->kind == kind) slots.push_back(slot);
  }
  for (const SlotPtr& slot : slots) advance(slot);
}

void Slots::give_away(Slot& slot, After& after) {
  push_requests(slot, after);
  for (Request& request : slot.priority)
    after.push_back([waiter = request.waiter, kind = slot.id.kind] {
      waiter->answer(fail(ErrorCode::kInvalidArgument, "this node does not serve the kind " + kind + " any more"));
    });
  slot.priority.clear();
  not_in_mailbox(slot, after);
}

void Slots::mailbox_ready(const ActorId& actor, const std::shared_ptr<ServedKind>& kind, Task drained) {
  SlotPtr slot;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    slot = find_or_make(actor, kind);
    slot->locked = false;
    ++slot->round;
    if (!std::exchange(slot->in_mailbox, true)) slot->drained.push_back(std::exchange(drained, nullptr));
  }
  // It was at it already, and counts once.
  if (drained) drained();
  advance(slot);
}

Slots::SlotPtr Slots::find_or_make(const ActorId& actor, const std::shared_ptr<ServedKind>& kind) {
  Bytes prefix = prefix_of(actor);
  auto [found, made] = slots_.try_emplace(prefix);
  if (made) found->second = std::make_shared<Slot>(actor, std::move(prefix), kind);
  const SlotPtr& slot = found->second;
  // It may have been made by whoever came when the kind was just not served any more.
  if (slot->kind->stopped) slot->kind = kind;
  if (slot->idle) {
    idle_.erase(*slot->idle);
    slot->idle.reset();
  }
  return slot;
}

void Slots::advance(const SlotPtr& slot) {
  BatchPtr batch;
  After after;
  bool cached = false;
  {
    MutexLock lock(mutex_);
    if (slot->busy) return;
    if (!closed_) batch = next_batch(*slot, after);
    if (batch) {
      slot->busy = true;
      ++busy_;
      ++begun_;
      // What is known of a locked actor is good for messages that go past the lock; the others look in the store.
      bool locked = slot->cached && slot->cached->head && slot->cached->head->lock;
      cached =
          slot->cached && batch->mode != Batch::Mode::kMailbox && (!locked || batch->mode == Batch::Mode::kPriority);
      if (cached) batch->loaded = *slot->cached;
    } else {
      retire(slot);
    }
  }
  run_all(after);
  if (!batch) return;
  if (cached)
    handle(slot, batch);
  else
    load(slot, batch);
}

void Slots::advance_all() {
  std::vector<SlotPtr> slots;
  {
    MutexLock lock(mutex_);
    for (auto& [prefix, slot] : slots_)
      if (slot->in_mailbox) slots.push_back(slot);
  }
  for (const SlotPtr& slot : slots) advance(slot);
}

bool Slots::must_push(const Slot& slot, SteadyTime now) const {
  return slot.in_mailbox || slot.locked || now < slot.retry_at || home_.held();
}

Slots::BatchPtr Slots::next_batch(Slot& slot, After& after) {
  if (slot.kind->stopped) {
    give_away(slot, after);
    return nullptr;
  }
  SteadyTime now = home_.scheduler().now();
  // Whoever comes now stands behind those in the mailbox.
  if (!slot.requests.empty() && must_push(slot, now)) push_requests(slot, after);
  if (now < slot.pause_until) return nullptr;
  auto make = [&](Batch::Mode mode) { return std::make_shared<Batch>(slot.id, slot.prefix, slot.kind, mode); };
  auto take = [&](std::deque<Request>& from, std::vector<Request>& to) {
    std::size_t most = std::min({from.size(), slot.kind->options.batch_max, slot.batch_limit});
    for (std::size_t i = 0; i < most; ++i) {
      to.push_back(std::move(from.front()));
      from.pop_front();
    }
  };
  bool from_mailbox = slot.in_mailbox && now >= slot.retry_at && !home_.held();
  bool others = from_mailbox || !slot.requests.empty();
  // Urgent messages come first, but not always: those who wait in order are not to starve.
  slot.was_priority = !slot.priority.empty() && !(slot.was_priority && others);
  if (slot.was_priority) {
    auto batch = make(Batch::Mode::kPriority);
    take(slot.priority, batch->requests);
    return batch;
  }
  if (from_mailbox) return make(Batch::Mode::kMailbox);
  if (slot.in_mailbox || slot.requests.empty()) return nullptr;
  auto batch = make(Batch::Mode::kInline);
  take(slot.requests, batch->requests);
  return batch;
}

void Slots::push_requests(Slot& slot, After& after) {
  if (slot.requests.empty()) return;
  // In parts that fit into a transaction, one after the other.
  constexpr std::size_t kPartMessages = 256;
  const std::size_t part_bytes = std::min<std::size_t>(2'000'000, home_.transaction_bytes_max() / 5);
  while (!slot.requests.empty()) {
    std::vector<Request> part;
    for (std::size_t bytes = 0; !slot.requests.empty() && part.size() < kPartMessages && bytes < part_bytes;) {
      bytes += slot.requests.front().message.encoded_size();
      part.push_back(std::move(slot.requests.front()));
      slot.requests.pop_front();
    }
    after.push_back(
        [this, id = slot.id, part = std::move(part)]() mutable { home_.callers().push(id, std::move(part)); });
  }
}

void Slots::not_in_mailbox(Slot& slot, After& after) {
  slot.in_mailbox = false;
  for (Task& task : slot.drained) after.push_back(std::move(task));
  slot.drained.clear();
}

void Slots::retire(const SlotPtr& slot) {
  if (slot->busy || slot->idle || !slot->requests.empty() || !slot->priority.empty()) return;
  if (slot->in_mailbox) return;
  // A timer may have held it while it was forgotten, and another stands in its place now.
  auto found = slots_.find(slot->prefix);
  if (found == slots_.end() || found->second != slot) return;
  if (!slot->cached || home_.options().cache_bytes == 0) {
    cached_bytes_ -= std::exchange(slot->cached_bytes, 0);
    slots_.erase(found);
    return;
  }
  std::size_t bytes = kSlotBytes + 2 * slot->prefix.size() + 2 * slot->cached->state.value.encoded_size();
  cached_bytes_ += bytes - std::exchange(slot->cached_bytes, bytes);
  slot->idle = idle_.insert(idle_.end(), slot);
  shrink();
}

void Slots::shrink() {
  while (cached_bytes_ > home_.options().cache_bytes && !idle_.empty()) {
    SlotPtr oldest = std::move(idle_.front());
    idle_.pop_front();
    cached_bytes_ -= oldest->cached_bytes;
    slots_.erase(oldest->prefix);
  }
}

void Slots::advance_at(const SlotPtr& slot, SteadyTime when) {
  home_.at(when, [this, slot] { advance(slot); });
}

void Slots::finish(const SlotPtr& slot, const BatchPtr& batch, After after) {
  SteadyTime again = SteadyTime::min();
  {
    MutexLock lock(mutex_);
    slot->busy = false;
    --busy_;
    auto& queue = batch->mode == Batch::Mode::kPriority ? slot->priority : slot->requests;
    // Those that were not come to are next, in front of those that came since.
    for (std::size_t i = batch->requests.size(); i-- > batch->handled;) {
      Request& request = batch->requests[i];
      if (!request.over) queue.push_front(std::move(request));
    }
    if (slot->in_mailbox && slot->retry_at > home_.scheduler().now()) again = slot->retry_at;
    if (slot->pause_until > home_.scheduler().now()) again = std::max(again, slot->pause_until);
    if (closed_) {
      for (auto* waiting : {&slot->requests, &slot->priority}) {
        for (Request& request : *waiting)
          after.push_back([waiter = request.waiter, why = *closed_] { waiter->answer(std::unexpected(why)); });
        waiting->clear();
      }
    }
  }
  run_all(after);
  if (again > SteadyTime::min()) advance_at(slot, again);
  advance(slot);
  check_idle();
}

void Slots::cancel_locked() {
  std::vector<std::shared_ptr<LockedJob>> jobs;
  {
    MutexLock lock(mutex_);
    jobs = locked_;
  }
  for (auto& job : jobs) job->cancel.cancel();
}

void Slots::close(const Error& why) {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    MutexLock lock(mutex_);
    closed_ = why;
    for (auto& [prefix, slot] : slots_) {
      if (slot->busy) continue;
      for (auto* queue : {&slot->requests, &slot->priority})
        for (Request& request : *queue) waiters.push_back(request.waiter);
    }
    std::erase_if(slots_, [](const auto& entry) { return !entry.second->busy; });
    idle_.clear();
  }
  for (auto& waiter : waiters) waiter->answer(std::unexpected(why));
}

void Slots::when_idle(Task idle) {
  {
    MutexLock lock(mutex_);
    when_idle_.push_back(std::move(idle));
  }
  check_idle();
}

void Slots::check_idle() {
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    if (!closed_ || when_idle_.empty() || !locked_.empty()) return;
    if (std::ranges::any_of(slots_, [](const auto& entry) { return entry.second->busy; })) return;
    tasks.swap(when_idle_);
  }
  run_all(tasks);
}

TimedPart::Activity Slots::activity() {
  MutexLock lock(mutex_);
  return {busy_ > 0 || !locked_.empty(), begun_};
}

std::size_t Slots::size() {
  MutexLock lock(mutex_);
  return slots_.size();
}

}  // namespace perdure::actor
