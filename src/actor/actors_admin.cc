// What operators ask of a node, as transactions.
#include <algorithm>

#include "actor/actors_impl.h"
#include "actor/admin.h"
#include "actor/commit.h"
#include "actor/mailbox.h"

namespace perdure {

using actor::Killed;

namespace {

constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

auto answering(VoidDone done) {
  return [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); };
}

constexpr Duration kYear = std::chrono::hours(24 * 365);

/// Calls that one transaction fails.
constexpr std::size_t kCallsAtOnce = 2'000;

}  // namespace

void ActorsImpl::stop(const ActorId& actor, std::string reason, VoidDone done) {
  if (auto good = actor.check(); !good) return done(std::move(good));
  transact(
      [this, actor, reason](Transaction& txn) {
        SystemAccess access(txn);
        Bytes prefix = actor::prefix_of(actor);
        auto head = actor::read_head(txn, prefix);
        if (head && head->lock)
          actor::break_lock(txn, actor, prefix, *head,
                            {ErrorCode::kActorGone, actor.to_string() + " was stopped while it was locked: " + reason},
                            now());
        return actor::fail_calls(txn, actor, reason, kCallsAtOnce);
      },
      [this, actor, reason, done = std::move(done)](Result<bool> all, Receipt) mutable {
        if (!all) return done(std::unexpected(std::move(all.error())));
        if (*all) return done({});
        stop(actor, std::move(reason), std::move(done));
      },
      kOptions);
}

void ActorsImpl::kill(const ActorId& actor, VoidDone done) {
  if (auto good = actor.check(); !good) return done(std::move(good));
  transact(
      [this, actor](Transaction& txn) {
        SystemAccess access(txn);
        return actor::kill_some(txn, actor, now());
      },
      [this, actor, done = std::move(done)](Result<Killed> killed, Receipt) mutable {
        if (!killed) return done(std::unexpected(std::move(killed.error())));
        if (*killed == Killed::kWhole) return done({});
        kill(actor, std::move(done));
      },
      kOptions);
}

void ActorsImpl::unlock(const ActorId& actor, VoidDone done) {
  transact(
      [this, actor](Transaction& txn) -> Result<void> {
        SystemAccess access(txn);
        Bytes prefix = actor::prefix_of(actor);
        auto head = actor::read_head(txn, prefix);
        if (!head || !head->lock) return fail(ErrorCode::kNotFound, actor.to_string() + " is not locked");
        actor::break_lock(
            txn, actor, prefix, *head,
            {ErrorCode::kStaleToken, "the lock of " + actor.to_string() + " was taken away by an operator"}, now());
        return {};
      },
      answering(std::move(done)), kOptions);
}

void ActorsImpl::redrive(const ActorId& actor, std::size_t limit,
                         std::move_only_function<void(Result<std::uint64_t>)> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  transact([actor, limit, now = now()](Transaction& txn) { return actor::redrive(txn, actor, limit, now); },
           [done = std::move(done)](Result<std::uint64_t> count, Receipt) mutable { done(std::move(count)); },
           kOptions);
}

void ActorsImpl::reply(const From& to, Result<Value> reply, VoidDone done) {
  transact(
      [to, reply = std::move(reply)](Transaction& txn) {
        SystemAccess access(txn);
        actor::write_reply(txn, actor::prefix_of(to.actor), actor::Caller::of(to), reply);
      },
      answering(std::move(done)), kOptions);
}

void ActorsImpl::collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  housekeeping_.collect(std::clamp<Duration>(age, -kYear, kYear), std::move(done));
}

Result<ActorInfo> ActorsImpl::inspect(const ActorId& actor) {
  return store_.read([&](Reader& reader) { return actor::inspect(reader, actor); });
}

}  // namespace perdure
