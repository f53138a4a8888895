// The public classes, on top of ActorsImpl.
#include "actor/actors_impl.h"
#include "actor/admin.h"
#include "actor/mailbox.h"
#include "perdure/actor.h"
#include "runtime/latch.h"
#include "store/blocking.h"
#include "store/store_access.h"

namespace perdure {

// Actor.

Result<Value> Actor::call(Value message, const CallOptions& options) {
  return block<Value>(*impl_, [&](ValueDone done) { call_async(std::move(message), options, std::move(done)); });
}

void Actor::call_async(Value message, const CallOptions& options, ValueDone done) {
  impl_->call(id_, std::move(message), options, std::move(done));
}

PendingCall Actor::call(Transaction& txn, Value message, ReplyRows rows, std::string traceparent) {
  return impl_->call_in(txn, id_, message, rows, std::move(traceparent));
}

Result<void> Actor::cast(Value message, const CastOptions& options) {
  return block<void>(*impl_, [&](VoidDone done) { cast_async(std::move(message), options, std::move(done)); });
}

void Actor::cast_async(Value message, const CastOptions& options, VoidDone done) {
  impl_->cast(id_, std::move(message), options, std::move(done));
}

void Actor::cast(Transaction& txn, Value message, Duration delay, std::string traceparent) {
  std::vector<Value> one;
  one.push_back(std::move(message));
  impl_->cast_in(txn, id_, std::move(one), delay, std::move(traceparent));
}

Result<void> Actor::cast_many(std::vector<Value> messages) {
  return block<void>(*impl_, [&](VoidDone done) { cast_many_async(std::move(messages), std::move(done)); });
}

void Actor::cast_many_async(std::vector<Value> messages, VoidDone done) {
  impl_->cast_many(id_, std::move(messages), std::move(done));
}

void Actor::cast_many(Transaction& txn, std::vector<Value> messages, std::string traceparent) {
  if (messages.empty()) return;
  impl_->cast_in(txn, id_, std::move(messages), Duration::zero(), std::move(traceparent));
}

Result<void> Actor::info(Value message) {
  return block<void>(*impl_, [&](VoidDone done) { info_async(std::move(message), std::move(done)); });
}

void Actor::info_async(Value message, VoidDone done) {
  impl_->info(id_, std::move(message), std::move(done));
}

Result<void> Actor::stop(std::string reason) {
  return block<void>(*impl_, [&](VoidDone done) { stop_async(std::move(reason), std::move(done)); });
}

void Actor::stop_async(std::string reason, VoidDone done) {
  impl_->stop(id_, std::move(reason), std::move(done));
}

Result<void> Actor::kill() {
  return block<void>(*impl_, [&](VoidDone done) { kill_async(std::move(done)); });
}

void Actor::kill_async(VoidDone done) {
  impl_->kill(id_, std::move(done));
}

void Actor::kill(Transaction& txn) {
  SystemAccess access(txn);
  if (auto good = id_.check(); !good) access.refuse(std::move(good.error()));
  if (actor::kill_some(txn, id_, impl_->now()) == actor::Killed::kPart)
    access.refuse({ErrorCode::kTooLarge, id_.to_string() + " has too many rows to be killed in one transaction"});
}

Result<void> Actor::reset() {
  return block<void>(*impl_, [&](VoidDone done) { reset_async(std::move(done)); });
}

void Actor::reset_async(VoidDone done) {
  impl_->reset(id_, std::move(done));
}

Result<void> Actor::unlock() {
  return block<void>(*impl_, [&](VoidDone done) { unlock_async(std::move(done)); });
}

void Actor::unlock_async(VoidDone done) {
  impl_->unlock(id_, std::move(done));
}

Result<ActorInfo> Actor::inspect(Reader& reader) const {
  return actor::inspect(reader, id_);
}

Result<ActorInfo> Actor::inspect() {
  if (auto allowed = impl_->may_block(); !allowed) return std::unexpected(std::move(allowed.error()));
  return impl_->inspect(id_);
}

std::vector<DeadLetter> Actor::dead_letters(Reader& reader, std::size_t limit, Stamp after) const {
  return actor::dead_letters(reader, id_, limit, after);
}

Result<std::uint64_t> Actor::redrive(std::size_t limit) {
  return block<std::uint64_t>(*impl_, [&](auto done) { redrive_async(limit, std::move(done)); });
}

void Actor::redrive_async(std::size_t limit, std::move_only_function<void(Result<std::uint64_t>)> done) {
  impl_->redrive(id_, limit, std::move(done));
}

// Actors.

Result<Actors> Actors::open(Store store, ActorsOptions options) {
  {
    StoreImpl& impl = StoreAccess::impl(store);
    if (auto use = impl.use(); use && impl.must_not_block())
      return fail(ErrorCode::kInvalidArgument,
                  "Actors::open was called in a callback of the store, on a store that the host polls or in a "
                  "simulation, and would wait for itself; use open_async");
  }
  using Opened = std::pair<Result<Actors>, Store>;
  auto promise = std::make_shared<Promise<Opened>>();
  ActorsImpl::open(std::move(store), std::move(options), [promise](Result<Actors> actors, Store kept) {
    promise->set({std::move(actors), std::move(kept)});
  });
  return promise->take().first;
}

void Actors::open_async(Store store, ActorsOptions options, std::move_only_function<void(Result<Actors>)> done) {
  ActorsImpl::open(std::move(store), std::move(options),
                   [done = std::move(done)](Result<Actors> actors, const Store&) mutable { done(std::move(actors)); });
}

Actors Actors::in(std::string space) const {
  return {impl_, std::move(space)};
}

Result<void> Actors::serve(std::string_view kind, std::shared_ptr<Behaviour> behaviour, const KindOptions& options) {
  return impl_->serve(space_, kind, std::move(behaviour), options);
}

void Actors::stop_serving(std::string_view kind) {
  impl_->stop_serving(space_, kind);
}

Actor Actors::actor(std::string_view kind, std::string_view id) const {
  return {impl_, {space_, std::string(kind), std::string(id)}};
}

Result<void> Actors::reply(const From& to, Result<Value> reply) {
  return block<void>(*impl_, [&](VoidDone done) { reply_async(to, std::move(reply), std::move(done)); });
}

void Actors::reply_async(const From& to, Result<Value> reply, VoidDone done) {
  impl_->reply(to, std::move(reply), std::move(done));
}

void Actors::reply(Transaction& txn, const From& to, const Result<Value>& reply) {
  SystemAccess access(txn);
  actor::write_reply(txn, actor::prefix_of(to.actor), actor::Caller::of(to), reply);
}

std::vector<std::string> Actors::list(Reader& reader, std::string_view kind, const ActorPage& page) const {
  return actor::list(reader, space_, kind, page);
}

Result<std::uint64_t> Actors::collect(Duration age) {
  return block<std::uint64_t>(*impl_, [&](auto done) { collect_async(age, std::move(done)); });
}

void Actors::collect_async(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done) {
  impl_->collect(age, std::move(done));
}

PendingCall Actors::pending(const From& from, ReplyRows rows) const {
  return impl_->pending(from, rows);
}

void Actors::hold() {
  impl_->hold();
}

void Actors::release() {
  impl_->release();
}

Result<void> Actors::close(Duration grace) {
  return block<void>(*impl_, [&](VoidDone done) { close_async(grace, std::move(done)); });
}

void Actors::close_async(Duration grace, VoidDone done) {
  impl_->close(grace, std::move(done));
}

}  // namespace perdure
