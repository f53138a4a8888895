// /v1/{space}/actors
#include "actor/commit.h"
#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/fields.h"
#include "http/idempotency.h"
#include "http/idempotent_call.h"
#include "http/units.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

constexpr std::size_t kMessagesMax = 1'000;
/// So many can be listed; those behind them once some are redriven.

Actor actor_of(Node& node, const Call& call) {
  return node.actors().in(call.space()).actor(call.param("kind"), call.param("id"));
}

std::string stamp_text(const Stamp& stamp) {
  return format_version(stamp.version);
}

/// The id of a dead letter is its stamp: the version, and the order in it.
std::string dead_id(const Stamp& stamp) {
  return stamp_text(stamp) + format_version({stamp.order}).substr(8);
}

Result<Stamp> parse_dead_id(std::string_view text) {
  if (text.empty()) return Stamp{};
  auto version = parse_version(text.substr(0, 16));
  auto order = parse_version("00000000" + std::string(text.size() == 24 ? text.substr(16) : ""));
  if (!version || !order) return fail(ErrorCode::kInvalidArgument, "'after' is no cursor; use one that was answered");
  return Stamp{*version, static_cast<std::uint32_t>(order->number)};
}

Value lock_json(Reader& reader, const ActorId& id, const LockInfo& lock) {
  SystemAccess access(reader);
  auto since = reader.get(actor::held_lock_key(lock.owner, id));
  bool known = since && since->size() == sizeof(std::int64_t);
  return Value::Map{{"owner", lock.owner.to_string()},
                    {"token", lock.token.to_string()},
                    {"since", known ? Value(format_time(WallTime(Duration(decode_counter(since))))) : Value()}};
}

Value actor_json(Reader& reader, const ActorId& id, const ActorInfo& info) {
  Value locked = info.locked ? lock_json(reader, id, *info.locked) : Value();
  return Value::Map{
      {"state", info.state ? *info.state : Value()},
      {"version", stamp_text(info.version)},
      {"schema", info.schema},
      {"mailbox", Value::Map{{"length", number_value(info.mailbox_length)},
                             {"oldest", info.oldest ? Value(format_time(*info.oldest)) : Value()}}},
      {"locked", std::move(locked)},
      {"dead", number_value(info.dead)},
      {"waiting", number_value(info.waiting)},
  };
}

/// "5s", or "none" for as long as it takes.
Result<Duration> call_timeout(const Call& call) {
  if (call.query("timeout") == "none") return Duration::max();
  auto given = call.query_duration("timeout");
  if (!given) return wrong(given);
  return given->value_or(CallOptions().timeout);
}

auto replied(Done done) {
  return [done = std::move(done)](Result<Value> reply) mutable {
    if (!reply) return done(wrong(reply));
    done(ok(Value::Map{{"reply", std::move(*reply)}}));
  };
}

auto accepted(Done done) {
  return [done = std::move(done)](Result<void> result) mutable {
    if (!result) return done(wrong(result));
    done(Answer{.status = 202, .body = Value::Map()});
  };
}

auto finished(Done done) {
  return [done = std::move(done)](Result<void> result) mutable {
    if (!result) return done(wrong(result));
    done(ok(Value::Map()));
  };
}

/// Through the mailbox, with a caller in the store. A behaviour elsewhere may take its time: a kill tells whoever waits
/// for it at once, and each of its attempts is counted.
void call_by_mailbox(Node& node, Actor actor, const CallPtr& call, Duration timeout, Done done) {
  auto push = [actor, call](Transaction& txn) mutable {
    return actor.call(txn, call->body, ReplyRows::kClear, call->traceparent());
  };
  auto pushed = [timeout, done = std::move(done)](Result<PendingCall> pending) mutable {
    if (!pending) return done(wrong(pending));
    pending->wait_async(timeout, replied(std::move(done)));
  };
  node.store().transact_async(std::move(push), std::move(pushed), {.body = perdure::Body::kShort});
}

void call_actor(Daemon& daemon, const CallPtr& call, Done done) {
  Node& node = daemon.node;
  auto timeout = call_timeout(*call);
  if (!timeout) return done(wrong(timeout));
  auto key = IdempotencyKey::of(*call);
  if (!key) return done(wrong(key));
  // To look for that costs something, and short waits end by themselves.
  if (*timeout > CallOptions().timeout) call->let_go_when_gone();
  if (*key) return call_once(node, actor_of(node, *call), call, **key, *timeout, std::move(done));
  Actor actor = actor_of(node, *call);
  if (daemon.kinds.serves(call->space(), call->param("kind")))
    return call_by_mailbox(node, std::move(actor), call, *timeout, std::move(done));
  actor.call_async(call->body, {.timeout = *timeout, .traceparent = call->traceparent()}, replied(std::move(done)));
}

void priority_call(Node& node, const CallPtr& call, Done done) {
  auto timeout = call_timeout(*call);
  if (!timeout) return done(wrong(timeout));
  if (*timeout > CallOptions().timeout) call->let_go_when_gone();
  actor_of(node, *call)
      .call_async(call->body, {.timeout = *timeout, .way = Way::kPriority, .traceparent = call->traceparent()},
                  replied(std::move(done)));
}

void priority_cast(Node& node, const CallPtr& call, Done done) {
  actor_of(node, *call)
      .cast_async(call->body, {.way = Way::kPriority, .traceparent = call->traceparent()}, accepted(std::move(done)));
}

void info(Node& node, const CallPtr& call, Done done) {
  actor_of(node, *call).info_async(call->body, accepted(std::move(done)));
}

/// It is answered when it is durable, not when it was handled.
Result<Answer> cast(Node& node, Transaction& txn, const Call& call) {
  auto delay = call.query_duration("delay");
  if (!delay) return wrong(delay);
  actor_of(node, call).cast(txn, call.body, delay->value_or(Duration::zero()), call.traceparent());
  return Answer{.status = 202, .body = Value::Map()};
}

Result<Answer> cast_many(Node& node, Transaction& txn, const Call& call) {
  const Value::List* messages = call.body.as_list();
  if (!messages) return fail(ErrorCode::kInvalidArgument, "the body must be an array of messages");
  if (messages->size() > kMessagesMax)
    return fail(ErrorCode::kTooLarge, "at most 1000 messages are cast at once; send them in parts");
  if (!messages->empty()) actor_of(node, call).cast_many(txn, *messages, call.traceparent());
  return Answer{.status = 202, .body = Value::Map()};
}

Result<Answer> get(Node& node, Transaction& txn, const Call& call) {
  Actor actor = actor_of(node, call);
  auto info = actor.inspect(txn);
  if (!info) return wrong(info);
  return ok(actor_json(txn, actor.id(), *info));
}

Result<Answer> get_state(Node& node, Transaction& txn, const Call& call) {
  auto info = actor_of(node, call).inspect(txn);
  if (!info) return wrong(info);
  if (!info->state)
    return fail(ErrorCode::kNotFound, "the actor has no state yet; its first message is still to be handled");
  Answer answer = ok(std::move(*info->state));
  answer.headers.add("ETag", "\"" + stamp_text(info->version) + "\"");
  return answer;
}

Result<Answer> list(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto ids =
      node.actors()
          .in(call.space())
          .list(txn, call.param("kind"), {std::string(call.query("prefix").value_or("")), page->after, page->limit});
  Value::List items;
  for (const std::string& id : ids) items.push_back(Value::Map{{"id", id}});
  return list_answer(std::move(items), ids.empty() ? "" : next_after(ids.size(), *page, ids.back()));
}

void stop(Node& node, const CallPtr& call, Done done) {
  Fields fields(call->body, "the request");
  std::string reason = fields.text("reason").value_or("stopped");
  if (auto good = fields.finish(); !good) return done(wrong(good));
  actor_of(node, *call).stop_async(std::move(reason), finished(std::move(done)));
}

void unlock(Node& node, const CallPtr& call, Done done) {
  if (auto good = no_fields(call->body); !good) return done(wrong(good));
  actor_of(node, *call).unlock_async(finished(std::move(done)));
}

void kill(Node& node, const CallPtr& call, Done done) {
  actor_of(node, *call).kill_async([done = std::move(done)](Result<void> result) mutable {
    if (!result) return done(wrong(result));
    done(no_content());
  });
}

Result<Answer> list_dead(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto after = parse_dead_id(page->after);
  if (!after) return wrong(after);
  Actor actor = actor_of(node, call);
  Value::List items;
  std::string next;
  for (const DeadLetter& each : actor.dead_letters(txn, page->limit, *after)) {
    *after = each.id;
    items.push_back(Value::Map{{"id", dead_id(each.id)},
                               {"type", each.type == MessageType::kCall ? "call" : "cast"},
                               {"message", each.message},
                               {"error", each.error},
                               {"attempts", each.attempts},
                               {"at", format_time(each.at)}});
  }
  if (!items.empty() && !actor.dead_letters(txn, 1, *after).empty()) next = dead_id(*after);
  return list_answer(std::move(items), std::move(next));
}

void redrive(Node& node, const CallPtr& call, Done done) {
  Fields fields(call->body, "the request");
  (void)fields.boolean("all");
  auto limit = fields.integer("limit", 1, 1'000).value_or(1'000);
  if (auto good = fields.finish(); !good) return done(wrong(good));
  actor_of(node, *call)
      .redrive_async(static_cast<std::size_t>(limit), [done = std::move(done)](Result<std::uint64_t> count) mutable {
        if (!count) return done(wrong(count));
        done(ok(Value::Map{{"redriven", number_value(*count)}}));
      });
}

}  // namespace

std::vector<Route> actor_routes(Daemon& daemon) {
  Node& node = daemon.node;
  const std::string one = "/v1/{space}/actors/{kind}/{id}";
  return {
      {"GET", "/v1/{space}/actors/{kind}", Load::kRead, looks(node, list)},
      {"GET", one, Load::kRead, looks(node, get)},
      {"DELETE", one, Load::kLess, waits(node, kill)},
      {"GET", one + "/state", Load::kRead, looks(node, get_state)},
      {"POST", one + "/call", Load::kWait,
       Asynchronous{[&daemon](const CallPtr& call, Done done) { call_actor(daemon, call, std::move(done)); },
                    Asynchronous::Key::kItsOwn}},
      {"POST", one + "/cast", Load::kMore, changes(node, cast, Reserve::kKeepOut)},
      {"POST", one + "/cast_many", Load::kMore, changes(node, cast_many, Reserve::kKeepOut)},
      {"POST", one + "/priority_call", Load::kWait, waits(node, priority_call)},
      {"POST", one + "/priority_cast", Load::kMore, waits(node, priority_cast)},
      {"POST", one + "/info", Load::kMore, waits(node, info)},
      {"POST", one + "/stop", Load::kLess, waits(node, stop)},
      {"POST", one + "/unlock", Load::kLess, waits(node, unlock)},
      {"GET", one + "/dead", Load::kRead, looks(node, list_dead)},
      {"POST", one + "/dead/redrive", Load::kLess, waits(node, redrive)},
  };
}

}  // namespace perdure::http
