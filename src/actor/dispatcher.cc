#include "actor/dispatcher.h"

#include <algorithm>

#include "actor/actors_impl.h"
#include "actor/commit.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

constexpr std::size_t kPage = 128;
/// Mailboxes of one kind that a node is at, at once.
constexpr std::size_t kActiveMax = 512;
/// How long what is others' is left to them.
constexpr Duration kPatience = std::chrono::milliseconds(300);
constexpr Duration kRetry = std::chrono::milliseconds(200);

}  // namespace

void Dispatcher::announce() {
  auto session = home_.session_id();
  if (!session) return;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    self_ = session;
  }
  home_.transact(
      [kind = kind_, id = *session](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, id)) return;
        Bytes row = tuple::pack_onto(server_prefix(kind->space, kind->name), id.stamp);
        Bytes held = session::held_key(id, kHeldServer, kind->space, kind->name);
        // It may have been served before, with other options.
        if (!kind->options.consume) {
          txn.clear(row);
          txn.clear(held);
        } else {
          txn.set(row, {});
          txn.set(held, {});
        }
        txn.add(servers_bell_key(kind->space, kind->name), 1);
      },
      [self = shared_from_this()](Result<void> done, Receipt) {
        if (!done && done.error().code != ErrorCode::kClosed)
          self->home_.at(self->home_.scheduler().now() + kRetry, [self] { self->announce(); });
        if (self->kind_->options.consume) self->ring();
      },
      {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Dispatcher::stop() {
  std::vector<Watch> watches;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    watches.swap(watches_);
  }
  for (Watch& watch : watches) watch.cancel();
}

void Dispatcher::ring() {
  {
    MutexLock lock(mutex_);
    again_ = true;
    if (scanning_ || waiting_) return;
  }
  scan();
}

Dispatcher::Page Dispatcher::read_page(Transaction& txn, const Bytes& after) const {
  SystemAccess access(txn);
  Page page;
  if (after.empty()) {
    page.bell = txn.watch(bell_key(kind_->space, kind_->name));
    page.servers_bell = txn.watch(servers_bell_key(kind_->space, kind_->name));
  }
  Reader snapshot = txn.snapshot();
  Bytes prefix = ready_prefix(kind_->space, kind_->name);
  KeyRange range = tuple::extensions(prefix);
  if (!after.empty()) range.begin = next_key(after);
  auto rows = snapshot.get_range(range, {.limit = kPage});
  page.last = rows.size() < kPage;
  for (const Row& row : rows)
    if (auto id = tuple::unpack_after<std::string>(prefix, row.key))
      page.found.push_back({{kind_->space, kind_->name, std::move(std::get<0>(*id))}, row.version});
  Bytes servers = server_prefix(kind_->space, kind_->name);
  for (const Row& row : snapshot.get_range(tuple::extensions(servers)))
    if (auto id = tuple::unpack_after<Stamp>(servers, row.key)) page.servers.push_back({std::get<0>(*id)});
  return page;
}

void Dispatcher::scan() {
  Bytes after;
  {
    MutexLock lock(mutex_);
    if (stopped_ || scanning_) return;
    scanning_ = true;
    waiting_ = false;
    after = cursor_;
    if (after.empty()) again_ = false;
  }
  home_.transact(
      [self = shared_from_this(), after](Transaction& txn) { return self->read_page(txn, after); },
      [self = shared_from_this(), after](Result<Page> page, Receipt) { self->scanned(std::move(page), after.empty()); },
      {});
}

bool Dispatcher::is_ours(const ActorId& actor) const {
  if (!self_) return true;
  Bytes key = prefix_of(actor);
  const SessionId self = *self_;
  auto weight = [&](SessionId id) {
    auto stamp = id.stamp.encode();
    return hash64(key, hash64(BytesView(stamp.data(), stamp.size())));
  };
  std::uint64_t ours = weight(self);
  return std::ranges::none_of(servers_, [&](SessionId id) { return id != self && weight(id) > ours; });
}

void Dispatcher::scanned(Result<Page> page, bool from_start) {
  if (!page) {
    {
      MutexLock lock(mutex_);
      scanning_ = false;
    }
    if (page.error().code == ErrorCode::kClosed) return;
    home_.at(home_.scheduler().now() + kRetry, [self = shared_from_this()] { self->scan(); });
    return;
  }
  std::vector<Found> ours;
  std::vector<Watch> old;
  bool go_on = false;
  Version skipped;
  {
    MutexLock lock(mutex_);
    servers_ = std::move(page->servers);
    for (Found& found : page->found) {
      cursor_ = ready_key(found.actor);
      if (is_ours(found.actor) || found.marked <= overdue_) {
        ours.push_back(std::move(found));
        ++active_;
      } else {
        skipped_ = std::max(skipped_, found.marked);
      }
    }
    if (from_start && !stopped_) {
      old.swap(watches_);
      watches_ = {page->bell, page->servers_bell};
    }
    scanning_ = false;
    if (page->last) {
      cursor_.clear();
      overdue_ = {};
      skipped = std::exchange(skipped_, {});
    }
    waiting_ = active_ >= kActiveMax;
    go_on = !waiting_ && (!page->last || again_);
  }
  for (Watch& watch : old) watch.cancel();
  if (from_start)
    for (Watch* watch : {&page->bell, &page->servers_bell})
      watch->then(home_.guarded([self = shared_from_this()] { self->ring(); }));
  for (const Found& found : ours)
    home_.slots().mailbox_ready(found.actor, kind_, [self = shared_from_this()] { self->drained(); });
  if (skipped > Version{}) look_again_later(skipped);
  if (go_on) scan();
}

void Dispatcher::drained() {
  {
    MutexLock lock(mutex_);
    --active_;
    if (!waiting_ || active_ > kActiveMax / 2) return;
  }
  scan();
}

void Dispatcher::look_again_later(Version newest) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(timer_, true)) return;
  }
  home_.at(home_.scheduler().now() + kPatience, [self = shared_from_this(), newest] {
    {
      MutexLock lock(self->mutex_);
      self->timer_ = false;
      self->overdue_ = newest;
    }
    self->ring();
  });
}

void sweep_server(Transaction& txn, SessionId dead, BytesView rest) {
  auto parts = tuple::unpack_as<std::string, std::string>(rest);
  if (!parts) return;
  auto& [space, kind] = *parts;
  txn.clear(tuple::pack_onto(server_prefix(space, kind), dead.stamp));
  txn.add(servers_bell_key(space, kind), 1);
  // It may be a message that killed it: what is in mailboxes now is handled with care.
  txn.set_stamped(fallen_key(), Stamped{});
}

void sweep_lock(Transaction& txn, SessionId dead, BytesView rest, WallTime now) {
  if (seeded(SeededBug::kKeepLocksOfTheDead)) return;
  auto parts = tuple::unpack_as<std::string, std::string, std::string>(rest);
  if (!parts) return;
  ActorId actor{std::get<0>(*parts), std::get<1>(*parts), std::get<2>(*parts)};
  Bytes prefix = prefix_of(actor);
  auto head = read_head(txn, prefix);
  if (!head || !head->lock || head->lock->session != dead) return;
  break_lock(txn, actor, prefix, *head,
             {ErrorCode::kStaleToken, "the node that held the lock of " + actor.to_string() + " for this call is gone"},
             now);
}

}  // namespace perdure::actor
