#include "session/store_leadership.h"

#include <algorithm>

#include "runtime/latch.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(200);
/// Not at once: the key may be gone in the store while this very session has yet to hear that its release was heard.
/// Whoever were refused then would find the key gone, try again, and so turn in circles.
constexpr Duration kRaceMax = std::chrono::milliseconds(200);
constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

struct LeaderRow {
  Stamp revision;
  Stamp token;
  LeaderStatus status;
  std::string owner;
  WallTime written;
};

/// Nothing for a row that is damaged: what it says is for people, and the lease decides.
std::optional<LeaderRow> read_row(Reader& reader, const Bytes& key) {
  auto value = reader.get(key);
  if (!value || value->size() < 2 * Stamp::kSize) return std::nullopt;
  BytesView bytes(*value);
  auto rest = tuple::unpack_as<std::int64_t, std::string, std::int64_t>(bytes.substr(2 * Stamp::kSize));
  if (!rest) return std::nullopt;
  auto& [status, owner, written] = *rest;
  return LeaderRow{
      *Stamp::decode(bytes.substr(0, Stamp::kSize)), *Stamp::decode(bytes.substr(Stamp::kSize, Stamp::kSize)),
      status == 1 ? LeaderStatus::kRunning : LeaderStatus::kWaiting, std::move(owner), WallTime(Duration(written))};
}

Error not_owned(const std::string& key) {
  return {ErrorCode::kStaleToken, "the key '" + key + "' is not owned by this instance with that revision any more"};
}

std::string hex(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) text[i] = "0123456789abcdef"[number & 15];
  return text;
}

}  // namespace

Leadership::~Leadership() = default;

void Leadership::abandon(const std::string&) {}

void Leadership::fence(Transaction&, const std::string&) {}

std::string_view name_of(LeaderStatus status) {
  return status == LeaderStatus::kRunning ? "running" : "waiting";
}

std::optional<LeaderStatus> parse_leader_status(std::string_view name) {
  for (LeaderStatus status : {LeaderStatus::kWaiting, LeaderStatus::kRunning})
    if (name == name_of(status)) return status;
  return std::nullopt;
}

// Opening.

void store_leadership_async(Store& store, StoreLeadershipOptions options,
                            std::move_only_function<void(Result<std::shared_ptr<Leadership>>)> done) {
  if (auto good = session::check_short_name(options.name, "the name of the leadership"); !good)
    return done(std::unexpected(std::move(good.error())));
  Scheduler& scheduler = StoreAccess::impl(store).scheduler();
  if (options.instance_id.empty()) options.instance_id = hex(scheduler.random()) + hex(scheduler.random());
  SessionOptions session = options.session;
  SessionKeeper::open(
      store, std::move(session),
      [borrowed = StoreAccess::borrow(store), options = std::move(options),
       done = std::move(done)](Result<std::shared_ptr<SessionKeeper>> keeper) mutable {
        if (!keeper) return done(std::unexpected(std::move(keeper.error())));
        auto impl = std::make_shared<StoreLeadership>(borrowed, std::move(options), std::move(*keeper));
        StoreLeadership* raw = impl.get();
        done(std::shared_ptr<Leadership>(raw, [impl = std::move(impl)](Leadership*) { impl->close(); }));
      });
}

Result<std::shared_ptr<Leadership>> store_leadership(Store& store, StoreLeadershipOptions options) {
  if (StoreAccess::impl(store).must_not_block())
    return fail(ErrorCode::kInvalidArgument,
                "store_leadership was called in a callback of the store, on a store that the host polls or in a "
                "simulation, and would wait for itself; use store_leadership_async");
  auto promise = std::make_shared<Promise<Result<std::shared_ptr<Leadership>>>>();
  store_leadership_async(store, std::move(options),
                         [promise](Result<std::shared_ptr<Leadership>> opened) { promise->set(std::move(opened)); });
  return promise->take();
}

StoreLeadership::StoreLeadership(Store& store, StoreLeadershipOptions options, std::shared_ptr<SessionKeeper> keeper)
    : StorePart(store, "the leaderships of this process"), options_(std::move(options)), keeper_(std::move(keeper)) {}

void StoreLeadership::close() {
  std::map<std::string, Watched> watched;
  {
    MutexLock lock(mutex_);
    watched.swap(watched_);
  }
  for (auto& [key, each] : watched) drop(each);
  keeper_->abandon();
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block();
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

Result<void> StoreLeadership::check_key(std::string_view key) const {
  constexpr std::size_t kKeyMax = 120;
  if (key.size() > kKeyMax)
    return fail(ErrorCode::kInvalidArgument, "the key has " + std::to_string(key.size()) + " bytes; at most " +
                                                 std::to_string(kKeyMax) + " are allowed");
  return session::check_name(key, "the key");
}

Bytes StoreLeadership::row_key(const std::string& key) const {
  return tuple::pack_onto(kSystemKeys, "leader", options_.name, key);
}

Stamped StoreLeadership::row(const Lease& lease, LeaderStatus status) {
  auto token = lease.token().stamp.encode();
  std::int64_t now = scheduler_.wall_now().time_since_epoch().count();
  Bytes said = tuple::pack(std::int64_t{status == LeaderStatus::kRunning}, options_.instance_id, now);
  return {{}, Bytes(token.data(), token.size()).append(said)};
}

// Owning.

void StoreLeadership::acquire(const std::string& key, Done<std::uint64_t> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  auto session = keeper_->current();
  auto inside = session ? session->enter() : Gate::Use();
  if (!inside) return done(fail(ErrorCode::kUnavailable, "this process has no session in the store just now"));
  session->leases().acquire(lease_name(key), kRaceMax,
                            [weak = weak_from_this(), key, done = std::move(done)](Result<Lease> lease) mutable {
                              auto self = weak.lock();
                              auto again = self ? self->enter() : Gate::Use();
                              if (!again) return;
                              if (lease) return self->taken(key, *lease, std::move(done));
                              if (lease.error().code == ErrorCode::kDeadline) lease.error().code = ErrorCode::kConflict;
                              // A session that was lost is replaced, so it is worth another try.
                              if (lease.error().code == ErrorCode::kStaleToken)
                                lease.error().code = ErrorCode::kUnavailable;
                              done(std::unexpected(std::move(lease.error())));
                            });
}

void StoreLeadership::taken(const std::string& key, Lease lease, Done<std::uint64_t> done) {
  transact(
      [this, key, lease](Transaction& txn) {
        lease.fence(txn);
        SystemAccess access(txn);
        txn.set_stamped(row_key(key), row(lease, LeaderStatus::kWaiting));
      },
      [this, key, lease, done = std::move(done)](Result<void> written, Receipt receipt) mutable {
        if (!written) {
          lease.release_async([](const Result<void>&) {});
          if (written.error().code == ErrorCode::kStaleToken) written.error().code = ErrorCode::kUnavailable;
          return done(std::unexpected(std::move(written.error())));
        }
        {
          MutexLock lock(mutex_);
          held_.insert_or_assign(key, Held{lease, receipt.version.number, LeaderStatus::kWaiting});
        }
        done(receipt.version.number);
        // After the answer, for it may be lost already.
        lease.cancel_signal().then([weak = weak_from_this(), key, token = lease.token()] {
          auto self = weak.lock();
          if (!self) return;
          if (auto inside = self->enter(); inside && self->let_go(key, token))
            self->tell(key, {LeadershipEvent::What::kLost, 0, {}});
        });
      },
      kOptions);
}

std::optional<StoreLeadership::Held> StoreLeadership::held(const std::string& key) {
  MutexLock lock(mutex_);
  auto found = held_.find(key);
  if (found == held_.end()) return std::nullopt;
  return found->second;
}

bool StoreLeadership::let_go(const std::string& key, const Token& token) {
  MutexLock lock(mutex_);
  auto found = held_.find(key);
  if (found == held_.end() || found->second.lease.token() != token) return false;
  held_.erase(found);
  return true;
}

void StoreLeadership::update(const std::string& key, std::uint64_t revision, LeaderStatus status,
                             Done<std::uint64_t> done) {
  auto owned = held(key);
  if (!owned || owned->revision != revision || !owned->lease.held()) return done(std::unexpected(not_owned(key)));
  if (owned->status == status) return done(revision);
  transact(
      [this, key, lease = owned->lease, status](Transaction& txn) {
        lease.fence(txn);
        SystemAccess access(txn);
        txn.set_stamped(row_key(key), row(lease, status));
      },
      [this, key, token = owned->lease.token(), status, done = std::move(done)](Result<void> written,
                                                                                Receipt receipt) mutable {
        if (!written) return done(std::unexpected(std::move(written.error())));
        {
          MutexLock lock(mutex_);
          auto found = held_.find(key);
          if (found != held_.end() && found->second.lease.token() == token) {
            found->second.revision = receipt.version.number;
            found->second.status = status;
          }
        }
        done(receipt.version.number);
      },
      kOptions);
}

void StoreLeadership::release(const std::string& key, std::uint64_t revision, Done<void> done) {
  auto owned = held(key);
  if (!owned || owned->revision != revision) return done(std::unexpected(not_owned(key)));
  transact(
      [this, key, lease = owned->lease](Transaction& txn) {
        lease.fence(txn);
        SystemAccess access(txn);
        txn.clear(row_key(key));
      },
      [this, key, lease = owned->lease, done = std::move(done)](Result<void> cleared, Receipt) mutable {
        let_go(key, lease.token());
        // The row alone counts for nothing: what matters is the lease, and the session goes on trying to free it. One
        // that was taken away is given back as well, or the session would go on counting it as held.
        if (cleared || cleared.error().code != ErrorCode::kStaleToken) return lease.release_async(std::move(done));
        lease.release_async([](const Result<void>&) {});
        done(std::move(cleared));
      },
      kOptions);
}

void StoreLeadership::abandon(const std::string& key) {
  auto use = enter();
  auto owned = held(key);
  if (use && owned && let_go(key, owned->lease.token())) owned->lease.release_async([](const Result<void>&) {});
}

void StoreLeadership::fence(Transaction& txn, const std::string& key) {
  auto owned = held(key);
  if (!owned) SystemAccess(txn).refuse(not_owned(key));
  owned->lease.fence(txn);
}

// Looking.

struct StoreLeadership::Seen {
  std::optional<SessionId> holder = {};
  LeadershipView view = {};
  std::vector<Watch> watches = {};

  static Seen read(Reader& reader, const std::string& lease, const Bytes& row_key, WallTime now) {
    Seen found;
    auto row = session::read_lease(reader, lease);
    auto open = row ? session::read_open(reader, row->session) : std::nullopt;
    if (!open) return found;
    found.holder = row->session;
    auto said = read_row(reader, row_key);
    if (said && said->token == row->token)
      // The clock of its owner may be ahead of this one.
      found.view = {std::move(said->owner), said->revision.version.number, said->status,
                    std::max(Duration::zero(), now - said->written)};
    else
      found.view = {open->name, row->token.version.number, LeaderStatus::kWaiting, {}};
    return found;
  }
};

void StoreLeadership::look(const std::string& key, Done<std::optional<LeadershipView>> done) {
  transact(
      [lease = lease_name(key), row = row_key(key), now = scheduler_.wall_now()](Transaction& txn) {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        return Seen::read(snapshot, lease, row, now);
      },
      [done = std::move(done)](Result<Seen> found, Receipt) mutable {
        if (!found) return done(std::unexpected(std::move(found.error())));
        if (!found->holder) return done(std::nullopt);
        done(std::move(found->view));
      },
      {});
}

void StoreLeadership::watch(const std::string& key, Watcher watcher) {
  Watched before;
  std::uint64_t number;
  {
    MutexLock lock(mutex_);
    number = ++last_number_;
    std::swap(before, watched_[key]);
    watched_[key].watcher = std::move(watcher);
    watched_[key].number = number;
  }
  drop(before);
  see(key, number);
}

void StoreLeadership::unwatch(const std::string& key) {
  Watched before;
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found == watched_.end()) return;
    std::swap(before, found->second);
    watched_.erase(found);
  }
  drop(before);
}

void StoreLeadership::drop(Watched& watched) {
  for (Watch& each : watched.watches) each.cancel();
  if (watched.follows) watched.follows->stop_following(*watched.holder);
}

void StoreLeadership::see(const std::string& key, std::uint64_t number) {
  transact(
      [this, key](Transaction& txn) {
        SystemAccess access(txn);
        Seen found = Seen::read(txn, lease_name(key), row_key(key), scheduler_.wall_now());
        found.watches.push_back(txn.watch(session::lease_key(lease_name(key))));
        if (found.holder) found.watches.push_back(txn.watch(session::open_key(*found.holder)));
        return found;
      },
      [this, key, number](Result<Seen> found, Receipt) { seen(key, number, std::move(found)); }, {});
}

void StoreLeadership::seen(const std::string& key, std::uint64_t number, Result<Seen> found) {
  if (!found) {
    if (found.error().code == ErrorCode::kClosed) return;
    at(scheduler_.now() + kRetry, [this, key, number] {
      {
        MutexLock lock(mutex_);
        auto watched = watched_.find(key);
        if (watched == watched_.end() || watched->second.number != number) return;
      }
      see(key, number);
    });
    return;
  }
  auto session = found->holder && *found->holder != keeper_->id() ? keeper_->current() : nullptr;
  Watched before;
  bool late;
  {
    MutexLock lock(mutex_);
    auto watched = watched_.find(key);
    late = watched == watched_.end() || watched->second.number != number;
    if (!late) {
      std::swap(before.watches, watched->second.watches);
      std::swap(before.follows, watched->second.follows);
      std::swap(before.holder, watched->second.holder);
      watched->second.watches = found->watches;
      watched->second.follows = session;
      watched->second.holder = found->holder;
    }
  }
  if (late) before.watches = found->watches;
  if (!late && session) session->keep_following(*found->holder);
  drop(before);
  if (late) return;
  for (Watch& each : found->watches) each.then(guarded([this, key, number] { see(key, number); }));
  using What = LeadershipEvent::What;
  tell(key, found->holder ? LeadershipEvent{What::kChanged, found->view.revision, found->view.owner}
                          : LeadershipEvent{What::kGone, 0, {}});
}

void StoreLeadership::tell(const std::string& key, const LeadershipEvent& event) {
  Watcher watcher;
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found != watched_.end()) watcher = found->second.watcher;
  }
  if (watcher) watcher(event);
}

}  // namespace perdure
