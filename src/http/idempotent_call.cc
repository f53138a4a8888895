#include "http/idempotent_call.h"

#include "http/bind.h"
#include "runtime/latch.h"

namespace perdure::http {
namespace {

class CallOnce : public std::enable_shared_from_this<CallOnce> {
 public:
  CallOnce(Node& node, Actor actor, CallPtr call, IdempotencyKey key, Duration timeout, Done done)
      : node_(node),
        actor_(std::move(actor)),
        call_(std::move(call)),
        key_(std::move(key)),
        timeout_(timeout),
        deadline_(deadline_after(timeout)),
        done_(std::move(done)) {}

  void begin() {
    node_.store().transact_async([self = shared_from_this()](Transaction& txn) { return self->push(txn); },
                                 [self = shared_from_this()](Result<Begun> begun) { self->begun(std::move(begun)); },
                                 {.body = perdure::Body::kShort});
  }

 private:
  /// An answer that was noted, or who waits.
  struct Begun {
    std::optional<Answer> answer = {};
    std::optional<PendingCall> pending = {};
    std::optional<From> from = {};
  };

  Result<Begun> push(Transaction& txn) {
    WallTime now = node_.now();
    auto kept = find_kept(txn, key_, now);
    if (!kept) return wrong(kept);
    if (*kept && (*kept)->form != Kept::Form::kPending) return Begun{.answer = answer_of(std::move(**kept), key_.key)};
    if (*kept) {
      auto from = From::parse((*kept)->pending);
      if (!from) return wrong(from);
      return Begun{.from = *from};
    }
    PendingCall pending = actor_.call(txn, call_->body, ReplyRows::kKeep, call_->traceparent());
    Kept waiting{.form = Kept::Form::kPending, .pending = pending.from().to_string()};
    keep(txn, key_, waiting, now);
    return Begun{.pending = std::move(pending)};
  }

  void begun(Result<Begun> begun) {
    if (!begun) return done_(wrong(begun));
    if (begun->answer) return done_(std::move(*begun->answer));
    PendingCall pending = begun->pending ? std::move(*begun->pending) : node_.actors().pending(*begun->from);
    Duration left = timeout_ == Duration::max() ? timeout_ : std::max(deadline_ - steady_now(), Duration::zero());
    From from = pending.from();
    pending.wait_async(left,
                       [self = shared_from_this(), from](const Result<Value>& reply) { self->replied(from, reply); });
  }

  void replied(const From& from, const Result<Value>& reply) {
    if (!reply && reply.error().code == ErrorCode::kClosed) return done_(std::unexpected(reply.error()));
    node_.store().transact_async([self = shared_from_this(), from](Transaction& txn) { return self->note(txn, from); },
                                 [self = shared_from_this()](Result<Noted> noted) {
                                   self->done_(noted ? std::move(noted->answer) : wrong(noted));
                                 },
                                 {.body = perdure::Body::kShort, .reserve = Reserve::kMayUse});
  }

  /// What to answer, once it has committed: an error also.
  struct Noted {
    Result<Answer> answer;
  };

  /// Takes the reply for the answer. Somebody else may have done so, who asked for the same.
  Result<Noted> note(Transaction& txn, const From& from) {
    WallTime now = node_.now();
    auto kept = find_kept(txn, key_, now);
    if (!kept) return wrong(kept);
    if (*kept && (*kept)->form != Kept::Form::kPending) return Noted{answer_of(std::move(**kept), key_.key)};
    // The key may be another call's by now, if this one failed and was repeated.
    bool ours = *kept && (*kept)->pending == from.to_string();
    auto reply = node_.actors().take_reply(txn, from);
    if (reply && !*reply && reply->error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kCommitUnknown,
                  "nothing is known of this call any more: its actor was killed, or its "
                  "reply was taken by another request with the same Idempotency-Key");
    if (!reply)
      return fail(ErrorCode::kReplyTimeout,
                  "the message was taken, and has not been handled in time; ask again with the same Idempotency-Key");
    if (!*reply) {
      // It had no effect, so there is nothing to keep: a repeat is a new call.
      if (ours) forget(txn, key_);
      return Noted{std::unexpected(std::move(reply->error()))};
    }
    Answer answer = ok(Value::Map{{"reply", std::move(**reply)}});
    if (ours) keep(txn, key_, {.answer = answer}, now);
    return Noted{std::move(answer)};
  }

  Node& node_;
  Actor actor_;
  const CallPtr call_;
  const IdempotencyKey key_;
  const Duration timeout_;
  const SteadyTime deadline_;
  Done done_;
};

}  // namespace

void call_once(Node& node, const Actor& actor, const CallPtr& call, IdempotencyKey key, Duration timeout, Done done) {
  std::make_shared<CallOnce>(node, actor, call, std::move(key), timeout, std::move(done))->begin();
}

}  // namespace perdure::http
