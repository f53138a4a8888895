#include "http/event_json.h"

#include <array>

#include "http/units.h"

namespace perdure::http {
namespace {

template <class T>
Value time_or_null(const std::optional<T>& time) {
  return time ? Value(format_time(*time)) : Value();
}

Value text_or_null(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}

Value failures_json(const std::vector<Failure>& failures) {
  Value::List list;
  for (const Failure& each : failures)
    list.push_back(Value::Map{{"attempt", each.attempt}, {"at", format_time(each.at)}, {"error", each.error}});
  return list;
}

void check_exclusive(Fields& fields) {
  if (fields.has("delay") && fields.has("at")) fields.refuse("at", "and 'delay' cannot be given both");
}

std::optional<UniqueKey> read_unique(Fields& fields) {
  const Value* given = fields.any("unique");
  if (!given || given->is_null()) return std::nullopt;
  Fields unique(*given, "'unique'");
  UniqueKey key{unique.required_text("key"), unique.duration("for")};
  if (auto good = unique.finish(); !good) fields.refuse(std::move(good.error()));
  return key;
}

}  // namespace

Value event_json(const Event& event) {
  Value::Map out{
      {"id", to_string(event.id)},
      {"worker", event.worker},
      {"value", event.value},
      {"state", name_of(event.state)},
      {"priority", event.priority},
      {"retries", event.retries},
      {"attempts", event.attempts},
      {"losses", event.losses},
      {"enqueued_at", format_time(event.enqueued_at)},
      {"delay_until", format_time(event.delay_until)},
      {"locked_at", time_or_null(event.locked_at)},
      {"locked_until", time_or_null(event.locked_until)},
      {"owner", event.owner ? Value(event.owner->to_string()) : Value()},
      {"last_error", text_or_null(event.last_error)},
      {"failures", failures_json(event.failures)},
      {"limit_key", text_or_null(event.limit_key)},
      {"unique_key", text_or_null(event.unique_key)},
      {"traceparent", text_or_null(event.traceparent)},
      {"module", event.module},
      {"modifier", event.modifier},
  };
  if (event.retry) out.emplace("retry", retry_json(*event.retry));
  return out;
}

Value claimed_json(const Claimed& event) {
  std::string token = event.token ? event.token->to_string() : "";
  Value value = event.value;
  // The run of a debouncer carries the token that fences it.
  if (event.module == "DEBOUNCE" && value.is_map()) value["token"] = token;
  return Value::Map{
      {"id", to_string(event.id)},
      {"worker", event.worker},
      {"value", std::move(value)},
      {"token", token},
      {"attempt", event.attempts},
      {"retries", event.retries},
      {"priority", event.priority},
      {"locked_until", time_or_null(event.locked_until)},
      {"enqueued_at", format_time(event.enqueued_at)},
      {"limit_key", text_or_null(event.limit_key)},
      {"last_error", text_or_null(event.last_error)},
      {"traceparent", text_or_null(event.traceparent)},
  };
}

Value ended_json(const EndedEvent& event) {
  return Value::Map{
      {"id", to_string(event.id)},
      {"worker", event.worker},
      {"state", name_of(event.how)},
      {"result", event.result},
      {"attempts", event.attempts},
      {"finished_at", format_time(event.finished_at)},
      {"last_error", text_or_null(event.last_error)},
  };
}

Value why_json(const Why& why) {
  Value::List reasons;
  for (const Why::Reason& each : why.reasons)
    reasons.push_back(Value::Map{
        {"code", each.code}, {"text", each.text}, {"since", time_or_null(each.since)}, {"by", text_or_null(each.by)}});
  return Value::Map{{"why", why.text}, {"reasons", std::move(reasons)}};
}

Value attempt_json(const AttemptRecord& record) {
  return Value::Map{
      {"event", to_string(record.event)},
      {"attempt", record.attempt},
      {"outcome", name_of(record.outcome)},
      {"started", format_time(record.started)},
      {"ended", format_time(record.ended)},
      {"value", record.value},
      {"result", record.result},
      {"error", text_or_null(record.error)},
  };
}

Value rule_json(const Rule& rule) {
  return Value::Map{{"type", rule.type == Rule::Type::kPause ? "pause" : "block"},
                    {"reason", text_or_null(rule.reason)},
                    {"by", text_or_null(rule.by)},
                    {"since", format_time(rule.since)},
                    {"until", time_or_null(rule.until)}};
}

Value retry_json(const RetryPolicy& policy) {
  return Value::Map{{"delay", format_duration(policy.delay)},
                    {"factor", policy.factor},
                    {"max_delay", format_duration(policy.max_delay)},
                    {"jitter", format_duration(policy.jitter)},
                    {"max", policy.max},
                    {"then", policy.then == RetryPolicy::Then::kDead ? "dead" : "drop"}};
}

Value worker_json(const WorkerInfo& info) {
  Value::List rules;
  for (const Rule& rule : info.rules) rules.push_back(rule_json(rule));
  return Value::Map{
      {"worker", info.worker},
      {"state", name_of(info.state)},
      {"rules", std::move(rules)},
      {"counts", Value::Map{{"total", info.total},
                            {"ready", info.ready},
                            {"scheduled", info.scheduled},
                            {"running", info.running},
                            {"dead", info.dead}}},
      {"oldest", time_or_null(info.oldest)},
      {"completed", info.completed},
      {"failed", info.failed},
      {"dropped", info.dropped},
      {"cancelled", info.cancelled},
      {"lost", info.lost},
      {"served_by", info.served_by},
      {"retry", retry_json(info.settings.retry)},
      {"rate", info.settings.rate ? Value(format_rate(*info.settings.rate)) : Value()},
      {"limit_per_key", info.settings.limit_per_key},
      {"retention", format_duration(info.settings.retention)},
      {"losses_max", info.settings.losses_max},
  };
}

std::optional<RetryPolicy> read_retry(Fields& fields, std::string_view name, const RetryPolicy& otherwise) {
  const Value* given = fields.any(name);
  if (!given || given->is_null()) return std::nullopt;
  Fields retry(*given, "'" + std::string(name) + "'");
  RetryPolicy policy = otherwise;
  policy.delay = retry.duration("delay").value_or(policy.delay);
  policy.factor = retry.number("factor").value_or(policy.factor);
  policy.max_delay = retry.duration("max_delay").value_or(policy.max_delay);
  policy.jitter = retry.duration("jitter").value_or(policy.jitter);
  policy.max = static_cast<int>(retry.integer("max", 0, 1'000'000).value_or(policy.max));
  if (auto then = retry.text("then")) {
    if (*then != "dead" && *then != "drop") retry.refuse("then", "must be \"dead\" or \"drop\"");
    policy.then = *then == "drop" ? RetryPolicy::Then::kDrop : RetryPolicy::Then::kDead;
  }
  if (auto good = retry.finish(); !good) fields.refuse(std::move(good.error()));
  return policy;
}

Result<NewEvent> read_event(const Value& value, const std::string& what) {
  Fields fields(value, what);
  NewEvent event;
  event.worker = fields.required_text("worker");
  if (const Value* given = fields.any("value")) event.value = *given;
  check_exclusive(fields);
  event.options.delay = fields.duration("delay").value_or(Duration::zero());
  event.options.at = fields.time("at");
  event.options.id = fields.uuid("id");
  event.options.retry = read_retry(fields, "retry");
  event.options.priority =
      static_cast<int>(fields.integer("priority", kPriorityMin, kPriorityMax).value_or(kPriorityDefault));
  event.options.unique = read_unique(fields);
  event.options.limit_key = fields.text("limit_key").value_or("");
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  return event;
}

FailOptions read_fail_options(Fields& fields) {
  FailOptions options{.retry_in = fields.duration("retry_in")};
  options.give_up = !fields.boolean("retry").value_or(true);
  if (options.give_up && options.retry_in) fields.refuse("retry_in", "makes no sense with \"retry\": false");
  return options;
}

Result<EventState> read_state(std::string_view name) {
  std::string known;
  for (auto state : {EventState::kScheduled, EventState::kReady, EventState::kRunning, EventState::kPaused,
                     EventState::kBlocked, EventState::kDead}) {
    if (name_of(state) == name) return state;
    known += (known.empty() ? "" : ", ") + std::string(name_of(state));
  }
  return fail(ErrorCode::kInvalidArgument, "there is no state '" + std::string(name) + "'; there are: " + known);
}

}  // namespace perdure::http
