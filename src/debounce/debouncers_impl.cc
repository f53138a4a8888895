#include "debounce/debouncers_impl.h"

#include "debounce/merge.h"
#include "debounce/settings.h"
#include "queue/emit.h"
#include "runtime/guarded_handler.h"
#include "session/rows.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure {
namespace {

/// Touches in one transaction, and bytes of their payloads: together no more than an empty window can take.
constexpr std::size_t kCombinedMax = 256;
constexpr std::size_t kCombinedBytesMax = debounce::kPayloadBytesFull - kCombinedMax * debounce::kPayloadOverhead;
/// Transactions of one key that may wait.
constexpr std::size_t kWaitingMax = 64;
constexpr TransactOptions kTouchOptions = {.body = Body::kShort};

debounce::MergeBytes merge_bytes(Debouncers::Merge merge) {
  return [merge = std::move(merge)](BytesView so_far, BytesView next) -> Result<Bytes> {
    auto one = Value::decode(so_far), other = Value::decode(next);
    if (!one || !other) return std::unexpected(one ? std::move(other.error()) : std::move(one.error()));
    auto merged = guarded_handler([&]() -> Result<Value> { return merge(std::move(*one), std::move(*other)); });
    if (!merged) return std::unexpected(std::move(merged.error()));
    if (auto good = debounce::check_payload(*merged); !good) return std::unexpected(std::move(good.error()));
    return merged->encode();
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
      clock_(store_),
      loop_(
          *this, debounce::bell(), [this](Transaction& txn, WallTime now) { return turn(txn, now); },
          {.body = Body::kShort}, [this](const Error& error) { turn_failed(error); }) {}

DebouncersImpl::Loop::Turn DebouncersImpl::turn(Transaction& txn, WallTime now) {
  if (held_) return {};
  Bytes current;
  std::vector<debounce::Place> damaged;
  debounce::TurnOptions options{
      .fresh_id = [this] { return fresh_id(); }, .most = 0, .skipped = {}, .current = &current, .damaged = &damaged};
  {
    MutexLock lock(mutex_);
    options.most = most_;
    options.skipped = skipped_;
  }
  // Also if it is left in the middle.
  struct Keep {
    DebouncersImpl& self;
    Bytes& row;
    ~Keep() {
      MutexLock lock(self.mutex_);
      self.current_ = row;
    }
  } keep{*this, current};
  Loop::Turn turn = debounce::take_turn(txn, options, now);
  if (options.most < kRowsAtOnce || !damaged.empty())
    turn.committed = [this, damaged = std::move(damaged)] { turn_committed(damaged); };
  return turn;
}

void DebouncersImpl::turn_committed(const std::vector<debounce::Place>& damaged) {
  {
    MutexLock lock(mutex_);
    most_ = std::min(most_ * 2, kRowsAtOnce);
  }
  for (const debounce::Place& place : damaged)
    log(StoreAccess::impl(store_).options(), LogLevel::kError, "debounce",
        "a window cannot be read, and does not fire; the next touch opens another",
        {{"space", place.space}, {"debouncer", place.name}, {"key", place.key}});
}

void DebouncersImpl::turn_failed(const Error& error) {
  // Others may have the store, or it is full: that passes.
  if (error.retryable() || error.outcome() != Outcome::kNone || error.code == ErrorCode::kStoreFull) return;
  {
    MutexLock lock(mutex_);
    bool alone = std::exchange(most_, 1) == 1;
    if (!alone || current_.empty()) return;
    skipped_.insert(current_);
  }
  log(StoreAccess::impl(store_).options(), LogLevel::kError, "debounce",
      "a window or the end of a run cannot be seen to, and is left: " + to_string(error), {});
}

Uuid DebouncersImpl::fresh_id() {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(clock_.now()).time_since_epoch().count();
  return queue::uuid_v7(ms, scheduler_.random(), scheduler_.random());
}

std::optional<WallTime> DebouncersImpl::next_due(Reader& reader) {
  if (held_) return std::nullopt;
  Bytes table = debounce::timetable();
  auto rows = reader.get_range(tuple::extensions(table), {.limit = 1});
  if (rows.empty()) return std::nullopt;
  tuple::Reader key(BytesView(rows[0].key).substr(table.size()));
  DueTime time{std::chrono::milliseconds(key.next_int())};
  constexpr auto kFar = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return time >= kFar ? WallTime::max() : WallTime(time);
}

bool DebouncersImpl::has_work(Reader& reader, WallTime now) {
  if (held_) return false;
  if (next_due(reader).value_or(WallTime::max()) <= now) return true;
  for (const Bytes& table : {queue::told_prefix(debounce::kModule), debounce::unpaused_prefix()})
    if (!reader.get_range(tuple::extensions(table), {.limit = 1}).empty()) return true;
  return false;
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
  payloads.push_back(std::move(payload));
  done.push_back(std::move(told));
}

void DebouncersImpl::touch(debounce::Place place, Bytes payload, TouchDone done) {
  std::string name = place.prefix();
  bool too_many = false;
  {
    MutexLock lock(mutex_);
    auto [found, idle] = slots_.try_emplace(name);
    Slot& slot = found->second;
    if (!idle) {
      if (slot.waiting.empty() || !slot.waiting.back().has_room_for(payload.size())) slot.waiting.emplace_back();
      too_many = slot.waiting.size() > kWaitingMax;
      if (!too_many) return slot.waiting.back().add(std::move(payload), std::move(done));
      slot.waiting.pop_back();
    } else {
      slot.place = place;
    }
  }
  if (too_many)
    return done(fail(ErrorCode::kLimitExceeded, "too many touches of the key wait to be committed; slow down"));
  Waiting one;
  one.add(std::move(payload), std::move(done));
  send(name, place, std::move(one));
}

void DebouncersImpl::send(const std::string& name, const debounce::Place& place, Waiting touches) {
  transact(
      [this, place, merge = merge_of(place), payloads = std::move(touches.payloads)](Transaction& txn) {
        SystemAccess access(txn);
        return debounce::touch(txn, place, payloads, merge, now(txn));
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

}  // namespace perdure
