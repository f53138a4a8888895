// Messages that are sent in a transaction of the caller's.
#include "actor/actors_impl.h"
#include "actor/mailbox.h"
#include "base/time_math.h"
#include "runtime/latch.h"

namespace perdure {

using actor::Caller;
using actor::Message;
using actor::Waiter;

class PendingCallState {
 public:
  PendingCallState(std::weak_ptr<ActorsImpl> home, From from, ReplyRows rows)
      : home_(std::move(home)), from_(std::move(from)), rows_(rows) {}
  ~PendingCallState() {
    bool leave = waited_ || rows_ == ReplyRows::kKeep;
    if (auto home = leave ? nullptr : home_.lock()) home->callers().forget(from_.actor, Caller::of(from_));
  }
  PendingCallState(const PendingCallState&) = delete;
  PendingCallState& operator=(const PendingCallState&) = delete;

  const From& from() const { return from_; }
  std::shared_ptr<ActorsImpl> home() { return home_.lock(); }

  void wait(Duration timeout, ValueDone done) {
    auto home = home_.lock();
    auto use = home ? home->enter() : Gate::Use();
    // The message may well have been sent, and is handled then.
    if (!use) return done(fail(ErrorCode::kReplyTimeout, "the actors of this node are closed"));
    waited_ = true;
    auto waiter = std::make_shared<Waiter>(std::move(done), rows_);
    home->callers().set_timer(from_.actor, Caller::of(from_), waiter, timeout);
    home->callers().await(from_.actor, Caller::of(from_), std::move(waiter));
  }

 private:
  const std::weak_ptr<ActorsImpl> home_;
  const From from_;
  const ReplyRows rows_;
  std::atomic<bool> waited_ = false;
};

Result<Value> PendingCall::wait(Duration timeout) {
  if (auto home = state_->home())
    if (auto allowed = home->may_block(); !allowed) return std::unexpected(std::move(allowed.error()));
  auto promise = std::make_shared<Promise<Result<Value>>>();
  wait_async(timeout, [promise](Result<Value> reply) { promise->set(std::move(reply)); });
  return promise->take();
}

void PendingCall::wait_async(Duration timeout, std::move_only_function<void(Result<Value>)> done) {
  state_->wait(timeout, std::move(done));
}

const From& PendingCall::from() const {
  return state_->from();
}

PendingCall ActorsImpl::call_in(Transaction& txn, const ActorId& actor, const Value& message, ReplyRows rows,
                                std::string traceparent) {
  SystemAccess access(txn);
  if (auto good = accepts(actor); !good) access.refuse(std::move(good.error()));
  if (auto good = session::check_traceparent(traceparent); !good) access.refuse(std::move(good.error()));
  auto body = actor::encode_message(message);
  if (!body) access.refuse(std::move(body.error()));
  Message call{MessageType::kCall, now(), callers_.make_caller(), std::move(*body), std::move(traceparent)};
  if (auto pushed = actor::push(txn, actor, {&call, 1}); !pushed) access.refuse(std::move(pushed.error()));
  return pending(call.caller->from(actor), rows);
}

PendingCall ActorsImpl::pending(const From& from, ReplyRows rows) {
  return PendingCall(std::make_shared<PendingCallState>(weak_from_this(), from, rows));
}

std::optional<Result<Value>> Actors::take_reply(Transaction& txn, const From& from) {
  SystemAccess access(txn);
  if (auto good = from.actor.check(); !good) access.refuse(std::move(good.error()));
  Bytes prefix = actor::prefix_of(from.actor);
  auto state = actor::read_reply(txn, prefix, Caller::of(from));
  if (state.kind == actor::ReplyState::Kind::kWaiting) return std::nullopt;
  if (state.kind == actor::ReplyState::Kind::kGone)
    return fail(ErrorCode::kNotFound, "nothing is left of the call " + from.to_string() +
                                          ": its reply was taken, or not waited for any more");
  actor::clear_caller(txn, prefix, Caller::of(from));
  return std::move(state.reply);
}

void ActorsImpl::cast_in(Transaction& txn, const ActorId& actor, std::vector<Value> messages, Duration delay,
                         std::string traceparent) {
  SystemAccess access(txn);
  if (auto good = accepts(actor); !good) access.refuse(std::move(good.error()));
  if (auto good = session::check_traceparent(traceparent); !good) access.refuse(std::move(good.error()));
  std::vector<Message> casts;
  for (const Value& message : messages) {
    auto body = actor::encode_message(message);
    if (!body) access.refuse(std::move(body.error()));
    if (delay > Duration::zero())
      actor::put_delayed(txn, actor, *body, traceparent, plus(now(), delay));
    else
      casts.push_back({MessageType::kCast, now(), {}, std::move(*body), traceparent});
  }
  if (casts.empty()) return;
  if (auto pushed = actor::push(txn, actor, casts); !pushed) access.refuse(std::move(pushed.error()));
}

}  // namespace perdure
