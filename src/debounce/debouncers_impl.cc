#include "debounce/debouncers_impl.h"

#include "debounce/merge.h"
#include "debounce/settings.h"
#include "queue/emit.h"
#include "session/rows.h"
#include "store/store_access.h"

namespace perdure {
namespace {

/// Touches in one transaction, and bytes of their payloads.
constexpr std::size_t kCombinedMax = 256;
constexpr std::size_t kCombinedBytesMax = 1'000'000;
constexpr TransactOptions kTouchOptions = {.body = Body::kShort};

debounce::MergeBytes merge_bytes(Debouncers::Merge merge) {
  return [merge = std::move(merge)](BytesView so_far, BytesView next) {
    auto one = Value::decode(so_far), other = Value::decode(next);
    // Both were checked when they were touched.
    return merge(one ? std::move(*one) : Value(), other ? std::move(*other) : Value()).encode();
  };
}

}  // namespace

Result<Debouncers> DebouncersImpl::open(Store store, DebouncersOptions options) {
  if (auto good = session::check_short_name(options.space, "the space"); !good)
    return std::unexpected(std::move(good.error()));
  if (auto use = StoreAccess::impl(store).use(); !use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<DebouncersImpl>(store);
  if (options.fire) impl->release();
  // Handles share an owner of their own, as callbacks may keep the object for a moment longer. They keep the store open
  // as well, so that it is closed where the last of them is dropped.
  DebouncersImpl* raw = impl.get();
  std::shared_ptr<DebouncersImpl> handle(
      raw, [impl = std::move(impl), store = std::move(store)](DebouncersImpl* node) { node->abandon(); });
  return Debouncers(std::move(handle), std::move(options.space));
}

// A turn makes events, which take room: a full disk stops it as it stops all who emit.
DebouncersImpl::DebouncersImpl(Store& store)
    : StorePart(store, "the debouncers of this node"),
      clock_(scheduler_),
      loop_(*this, debounce::bell(), [this](Transaction& txn, WallTime now) { return turn(txn, now); },
            {.body = Body::kShort}) {}

DebouncersImpl::Loop::Turn DebouncersImpl::turn(Transaction& txn, WallTime now) {
  if (held_) return {};
  debounce::TurnTools tools{.fresh_id = [this] { return fresh_id(); },
                            .merge_of = [this](const debounce::Place& place) { return merge_of(place); }};
  return debounce::take_turn(txn, tools, now);
}

Uuid DebouncersImpl::fresh_id() {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(clock_.now()).time_since_epoch().count();
  return queue::uuid_v7(ms, scheduler_.random(), scheduler_.random());
}

void DebouncersImpl::release() {
  if (held_.exchange(false)) loop_.wake();
}

WallTime DebouncersImpl::now(Transaction& txn) {
  Reader snapshot = txn.snapshot();
  clock_.learn(StoreClock::read(snapshot));
  return clock_.now();
}

void DebouncersImpl::merge_by(const std::string& space, std::string_view name, Debouncers::Merge merge) {
  MutexLock lock(mutex_);
  merges_[{space, std::string(name)}] = std::move(merge);
}

debounce::MergeBytes DebouncersImpl::merge_of(const debounce::Place& place) {
  MutexLock lock(mutex_);
  auto found = merges_.find({place.space, place.name});
  return merge_bytes(found == merges_.end() ? Debouncers::Merge(debounce::merge_patch) : found->second);
}

bool DebouncersImpl::Waiting::has_room_for(std::size_t payload_bytes) const {
  return done.size() < kCombinedMax && bytes + payload_bytes <= kCombinedBytesMax;
}

void DebouncersImpl::Waiting::add(Bytes payload, TouchDone told) {
  bytes += payload.size();
  touches.payloads.push_back(std::move(payload));
  ++touches.count;
  done.push_back(std::move(told));
}

void DebouncersImpl::touch(debounce::Place place, Bytes payload, TouchDone done) {
  std::string name = place.prefix();
  {
    MutexLock lock(mutex_);
    auto [found, idle] = slots_.try_emplace(name);
    Slot& slot = found->second;
    if (!idle) {
      if (slot.waiting.empty() || !slot.waiting.back().has_room_for(payload.size())) slot.waiting.emplace_back();
      return slot.waiting.back().add(std::move(payload), std::move(done));
    }
    slot.place = place;
  }
  Waiting one;
  one.add(std::move(payload), std::move(done));
  send(name, place, std::move(one));
}

void DebouncersImpl::send(const std::string& name, const debounce::Place& place, Waiting touches) {
  transact(
      [this, place, merge = merge_of(place), given = std::move(touches.touches)](Transaction& txn) {
        SystemAccess access(txn);
        return debounce::touch(txn, place, given, merge, now(txn));
      },
      [this, name, done = std::move(touches.done)](Result<Window> window, Receipt) mutable {
        sent(name, std::move(done), std::move(window));
      },
      kTouchOptions);
}

void DebouncersImpl::sent(const std::string& name, std::vector<TouchDone> done, Result<Window> result) {
  std::optional<Waiting> next;
  debounce::Place place;
  {
    MutexLock lock(mutex_);
    auto found = slots_.find(name);
    if (found->second.waiting.empty()) {
      slots_.erase(found);
    } else {
      place = found->second.place;
      next = std::move(found->second.waiting.front());
      found->second.waiting.pop_front();
    }
  }
  if (next) send(name, place, std::move(*next));
  for (TouchDone& each : done) each(result);
}

void DebouncersImpl::abandon() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block();
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

Result<void> DebouncersImpl::may_block() {
  if (auto use = enter(); use && StoreAccess::impl(store_).must_not_block())
    return fail(ErrorCode::kInvalidArgument,
                "a blocking call was made in a callback of the store, which would wait for itself; use the form that "
                "takes a transaction, with Store::transact_async, or touch_async");
  return {};
}

}  // namespace perdure
