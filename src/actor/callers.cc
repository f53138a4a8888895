#include "actor/callers.h"

#include "actor/actors_impl.h"
#include "actor/mailbox.h"
#include "base/seeded_bug.h"

namespace perdure::actor {
namespace {

/// How long a caller whose time is over waits for its rows to be cleared before it is told so.
constexpr Duration kClearTimeout = std::chrono::seconds(1);
constexpr Duration kForgetAgain = std::chrono::seconds(1);

constexpr TransactOptions kShortBody = {.body = Body::kShort};
constexpr TransactOptions kClearing = {.timeout = kClearTimeout, .body = Body::kShort, .reserve = Reserve::kMayUse};

Error too_late(const ActorId& actor) {
  return {ErrorCode::kReplyTimeout,
          actor.to_string() + " did not reply in time; it will still handle the message, if it was sent"};
}

Error closed_meanwhile(std::string_view what) {
  return {ErrorCode::kReplyTimeout,
          std::string(what) + " while the reply was waited for; the message is still handled"};
}

}  // namespace

Caller Callers::make_caller() {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(home_.now().time_since_epoch()).count();
  return {seconds, home_.identity(), ++last_number_};
}

void Callers::set_timer(const ActorId& actor, const Caller& caller, const std::shared_ptr<Waiter>& waiter,
                        Duration timeout) {
  SteadyTime now = home_.scheduler().now();
  if (timeout >= SteadyTime::max() - now) return;
  auto timer = home_.at(now + timeout, [this, actor, caller, weak = std::weak_ptr(waiter)] {
    if (auto there = weak.lock()) time_out(actor, caller, there);
  });
  waiter->timer(home_.canceller(timer));
}

void Callers::push(const ActorId& actor, std::vector<Request> requests) {
  auto messages = std::make_shared<std::vector<Message>>();
  WallTime now = home_.now();
  for (Request& request : requests)
    messages->push_back({request.type, now, request.caller, request.message.encode(), request.traceparent});
  home_.transact(
      [actor, messages](Transaction& txn) -> Result<std::vector<Watch>> {
        SystemAccess access(txn);
        if (auto done = actor::push(txn, actor, *messages); !done) return std::unexpected(std::move(done.error()));
        std::vector<Watch> watches;
        Bytes prefix = prefix_of(actor);
        for (const Message& message : *messages)
          watches.push_back(message.caller ? txn.watch(sentinel_key(prefix, *message.caller)) : Watch());
        return watches;
      },
      [this, actor, requests = std::move(requests)](Result<std::vector<Watch>> result, Receipt) mutable {
        pushed(actor, std::move(requests), std::move(result));
      },
      kShortBody);
}

void Callers::pushed(const ActorId& actor, std::vector<Request> requests, Result<std::vector<Watch>> result) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    if (!result) {
      // Perhaps it is there all the same; whoever handles it then has nobody to reply to.
      if (request.caller && result.error().outcome() == Outcome::kUnknown) forget(actor, *request.caller);
      request.waiter->answer(std::unexpected(result.error()));
    } else if (!request.caller) {
      request.waiter->answer(Value());
    } else {
      wait_on((*result)[i], actor, *request.caller, std::move(request.waiter));
    }
  }
}

void Callers::wait_on(Watch watch, const ActorId& actor, const Caller& caller, std::shared_ptr<Waiter> waiter) {
  if (!waiter->wanted()) {
    watch.cancel();
    if (!waiter->keeps()) forget(actor, caller);
    return;
  }
  std::optional<Error> closed;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    if (!closed && waiter->place == 0) waiter->place = ++last_place_;
    if (!closed) waiting_.insert_or_assign(waiter->place, waiter);
  }
  if (closed) return (void)waiter->answer(std::unexpected(closed_meanwhile(closed->message)));
  // Before it can fire: then there will be another in its place.
  waiter->watches(watch);
  watch.then(home_.guarded([this, actor, caller, waiter] { await(actor, caller, waiter); }));
}

void Callers::answer(Waiter& waiter, Result<Value> reply) {
  {
    MutexLock lock(mutex_);
    waiting_.erase(waiter.place);
  }
  waiter.answer(std::move(reply));
}

void Callers::close(const Error& why) {
  std::map<std::uint64_t, std::shared_ptr<Waiter>> waiting;
  {
    MutexLock lock(mutex_);
    closed_ = why;
    waiting.swap(waiting_);
  }
  for (const auto& [place, waiter] : waiting) waiter->answer(std::unexpected(closed_meanwhile(why.message)));
}

void Callers::await(const ActorId& actor, const Caller& caller, std::shared_ptr<Waiter> waiter) {
  struct Seen {
    ReplyState state;
    Watch watch;
  };
  home_.transact(
      [actor, caller](Transaction& txn) {
        SystemAccess access(txn);
        Bytes prefix = prefix_of(actor);
        Reader snapshot = txn.snapshot();
        Watch watch = txn.watch(sentinel_key(prefix, caller));
        return Seen{read_reply(snapshot, prefix, caller), watch};
      },
      [this, actor, caller, waiter](Result<Seen> seen, Receipt) mutable {
        if (!seen) {
          // The reply is there or will be; the store is not, just now.
          if (seen.error().code == ErrorCode::kClosed)
            return answer(*waiter, std::unexpected(closed_meanwhile("this node was closed")));
          home_.at(home_.scheduler().now() + std::chrono::milliseconds(50),
                   [this, actor, caller, waiter] { await(actor, caller, waiter); });
          return;
        }
        if (seen->state.kind == ReplyState::Kind::kWaiting)
          return wait_on(seen->watch, actor, caller, std::move(waiter));
        seen->watch.cancel();
        if (seen->state.kind == ReplyState::Kind::kGone) return answer(*waiter, std::unexpected(too_late(actor)));
        if (!waiter->keeps()) forget(actor, caller);
        answer(*waiter, std::move(*seen->state.reply));
      },
      {});
}

void Callers::forget(const ActorId& actor, const Caller& caller) {
  home_.transact(
      [actor, caller](Transaction& txn) {
        SystemAccess access(txn);
        clear_caller(txn, prefix_of(actor), caller);
      },
      [this, actor, caller](const Result<void>& cleared, Receipt) {
        // Rows are collected by their age only once this session is over, which may take long.
        if (!cleared && cleared.error().code != ErrorCode::kClosed)
          home_.at(home_.scheduler().now() + kForgetAgain, [this, actor, caller] { forget(actor, caller); });
      },
      {.timeout = std::chrono::seconds(30), .body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Callers::time_out(const ActorId& actor, const Caller& caller, const std::shared_ptr<Waiter>& waiter) {
  if (!waiter->give_up()) return;
  home_.transact(
      [actor, caller, clear = !waiter->keeps()](Transaction& txn) {
        SystemAccess access(txn);
        Bytes prefix = prefix_of(actor);
        ReplyState state = read_reply(txn, prefix, caller);
        if (clear && state.kind != ReplyState::Kind::kGone) clear_caller(txn, prefix, caller);
        return state;
      },
      [this, actor, caller, waiter](Result<ReplyState> state, Receipt) {
        if (!state && !waiter->keeps()) forget(actor, caller);
        // It may have come at the last moment.
        if (state && state->kind == ReplyState::Kind::kReplied)
          answer(*waiter, std::move(*state->reply));
        else
          answer(*waiter, std::unexpected(too_late(actor)));
      },
      kClearing);
}

void Callers::push_apart(const std::vector<Batch::Sent>& casts) {
  for (const Batch::Sent& cast : casts) {
    home_.transact(
        [cast, now = home_.now()](Transaction& txn) {
          SystemAccess access(txn);
          Message message{MessageType::kCast, now, {}, cast.body, cast.traceparent};
          return actor::push(txn, cast.to, {&message, 1}, Bound::kIgnored);
        },
        [](const Result<void>&, Receipt) {}, kShortBody);
  }
}

}  // namespace perdure::actor
