// /v1/{space}/events and /v1/{space}/history
#include "http/api.h"
#include "http/bind.h"
#include "http/event_json.h"
#include "http/idempotency.h"
#include "http/units.h"

namespace perdure::http {
namespace {

constexpr std::size_t kItemsMax = 1'000;

Result<Uuid> event_id(const Call& call) {
  return Uuid::parse(call.param("id"));
}

struct NewEvents {
  std::vector<NewEvent> events;
  bool many = false;
};

Result<NewEvents> read_events(const Call& call) {
  NewEvents out;
  const Value::List* list = call.body.as_list();
  out.many = list != nullptr;
  if (list && list->size() > kItemsMax)
    return fail(ErrorCode::kTooLarge, "at most 1000 events are taken at once, and these are " +
                                          std::to_string(list->size()) + "; send them in parts");
  std::string traceparent = call.traceparent();
  for (std::size_t i = 0; i < (list ? list->size() : 1); ++i) {
    auto event = list ? read_event((*list)[i], "event " + std::to_string(i + 1)) : read_event(call.body, "the event");
    if (!event) return wrong(event);
    event->options.traceparent = traceparent;
    out.events.push_back(std::move(*event));
  }
  return out;
}

Value emitted_json(const Emitted& emitted) {
  Value::Map out{{"id", to_string(emitted.id)}};
  if (emitted.duplicate) out.emplace("duplicate", true);
  return out;
}

Answer emitted_answer(const std::vector<Emitted>& emitted, bool many) {
  if (!many) return {.status = emitted[0].duplicate ? 200 : 201, .body = emitted_json(emitted[0])};
  Value::List items;
  for (const Emitted& each : emitted) items.push_back(emitted_json(each));
  return created(Value::Map{{"items", std::move(items)}});
}

/// Without a key, the events are made ready for their rows outside of the transaction, which is most of the work.
void emit(Node& node, const CallPtr& call, Done done) {
  auto events = read_events(*call);
  if (!events) return done(std::unexpected(std::move(events.error())));
  bool many = events->many;
  if (events->events.empty()) return done(emitted_answer({}, true));
  Queue queue = node.queue().in(call->space());
  queue.emit_many_async(std::move(events->events),
                        [done = std::move(done), many](Result<std::vector<Emitted>> emitted) mutable {
                          if (!emitted) return done(std::unexpected(std::move(emitted.error())));
                          done(emitted_answer(*emitted, many));
                        });
}

Result<Answer> emit_in(Node& node, Transaction& txn, const Call& call) {
  auto events = read_events(call);
  if (!events) return wrong(events);
  if (events->events.empty()) return emitted_answer({}, true);
  return emitted_answer(node.queue().in(call.space()).emit_many(txn, std::move(events->events)), events->many);
}

Result<Answer> get_event(Node& node, Transaction& txn, const Call& call) {
  auto id = event_id(call);
  if (!id) return wrong(id);
  auto event = node.queue().in(call.space()).get(txn, *id);
  if (!event) return wrong(event);
  return ok(event_json(*event));
}

Result<Answer> list_events(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  EventFilter filter{
      .worker = std::string(call.query("worker").value_or("")), .after = page->after, .limit = page->limit};
  if (filter.worker.empty())
    return fail(ErrorCode::kInvalidArgument, "name the worker whose events you mean, with ?worker=");
  if (auto name = call.query("state")) {
    auto state = read_state(*name);
    if (!state) return std::unexpected(std::move(state.error()));
    filter.state = *state;
  }
  auto found = node.queue().in(call.space()).list(txn, filter);
  if (!found) return std::unexpected(std::move(found.error()));
  Value::List items;
  for (const Event& event : found->events) items.push_back(event_json(event));
  return list_answer(std::move(items), std::move(found->next));
}

Result<Answer> cancel_event(Node& node, Transaction& txn, const Call& call) {
  auto id = event_id(call);
  if (!id) return wrong(id);
  auto force = call.query("force") == "true" ? Queue::Force::kYes : Queue::Force::kNo;
  node.queue().in(call.space()).cancel(txn, *id, force);
  return no_content();
}

Result<Answer> why_event(Node& node, Transaction& txn, const Call& call) {
  auto id = event_id(call);
  if (!id) return wrong(id);
  auto why = node.queue().in(call.space()).why(txn, *id);
  if (!why) return wrong(why);
  if (node.held()) {
    why->text = "this daemon is held, and dispatches nothing until it is released; " + why->text;
    why->reasons.insert(why->reasons.begin(), {.code = "held", .text = "this daemon is held"});
  }
  return ok(why_json(*why));
}

void history(Node& node, const CallPtr& call, Done done) {
  auto id = event_id(*call);
  if (!id) return done(std::unexpected(std::move(id.error())));
  auto wait = call->query_duration("wait");
  if (!wait) return done(std::unexpected(std::move(wait.error())));
  if (*wait) call->let_go_when_gone();
  node.queue()
      .in(call->space())
      .wait_async(
          *id, wait->value_or(Duration::zero()), [done = std::move(done), id = *id](Result<EndedEvent> ended) mutable {
            if (ended) return done(ok(ended_json(*ended)));
            if (ended.error().code == ErrorCode::kDeadline)
              return done(
                  fail(ErrorCode::kNotFound, "event " + to_string(id) + " has not ended yet; wait for it with ?wait="));
            done(std::unexpected(std::move(ended.error())));
          });
}

struct Claim {
  Uuid id;
  Token token;
};

Result<Claim> read_claim(const Call& call, Fields& fields) {
  auto id = event_id(call);
  if (!id) return wrong(id);
  auto token = fields.token("token");
  if (!token) fields.refuse("token", "is missing; it came with the claim");
  return Claim{*id, token.value_or(Token())};
}

Result<Answer> complete(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the request");
  auto claim = read_claim(call, fields);
  if (!claim) return wrong(claim);
  const Value* result = fields.any("result");
  if (auto good = fields.finish(); !good) return wrong(good);
  node.queue().in(call.space()).complete(txn, claim->id, claim->token, result ? *result : Value());
  return ok(Value::Map{{"id", to_string(claim->id)}, {"state", "completed"}});
}

Result<Answer> fail_event(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the request");
  auto claim = read_claim(call, fields);
  if (!claim) return wrong(claim);
  std::string error = fields.text("error").value_or("failed without saying why");
  FailOptions options = read_fail_options(fields);
  if (auto good = fields.finish(); !good) return wrong(good);
  node.queue().in(call.space()).fail(txn, claim->id, claim->token, std::move(error), options);
  return ok(Value::Map{{"id", to_string(claim->id)}, {"state", "failed"}});
}

Result<Answer> extend(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the request");
  auto claim = read_claim(call, fields);
  if (!claim) return wrong(claim);
  auto lock = fields.duration("lock").value_or(kLockDefault);
  if (auto good = fields.finish(); !good) return wrong(good);
  auto until = node.queue().in(call.space()).extend(txn, claim->id, claim->token, lock);
  return ok(Value::Map{{"id", to_string(claim->id)}, {"locked_until", format_time(until)}});
}

Result<Answer> release(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the request");
  auto claim = read_claim(call, fields);
  if (!claim) return wrong(claim);
  if (auto good = fields.finish(); !good) return wrong(good);
  node.queue().in(call.space()).release(txn, claim->id, claim->token);
  return ok(Value::Map{{"id", to_string(claim->id)}, {"state", "ready"}});
}

}  // namespace

std::vector<Route> event_routes(Node& node) {
  return {
      {"POST", "/v1/{space}/events", Load::kMore,
       WithOrWithoutKey{changes(node, emit_in, Reserve::kKeepOut), waits(node, emit)}},
      {"GET", "/v1/{space}/events", Load::kRead, looks(node, list_events)},
      {"GET", "/v1/{space}/events/{id}", Load::kRead, looks(node, get_event)},
      {"DELETE", "/v1/{space}/events/{id}", Load::kLess, changes(node, cancel_event)},
      {"GET", "/v1/{space}/events/{id}/why", Load::kRead, looks(node, why_event)},
      {"GET", "/v1/{space}/history/{id}", Load::kWait, waits(node, history)},
      {"POST", "/v1/{space}/events/{id}/complete", Load::kLess, changes(node, complete)},
      {"POST", "/v1/{space}/events/{id}/fail", Load::kLess, changes(node, fail_event)},
      {"POST", "/v1/{space}/events/{id}/extend", Load::kLess, changes(node, extend)},
      {"POST", "/v1/{space}/events/{id}/release", Load::kLess, changes(node, release)},
  };
}

}  // namespace perdure::http
