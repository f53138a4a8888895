// Events and workers as JSON, both ways.
#pragma once

#include "http/fields.h"
#include "perdure/queue.h"

namespace perdure::http {

/// Times and texts that are not there are null.
Value event_json(const Event& event);
/// The same with the token of its claim, for whoever has just claimed it.
Value claimed_json(const Claimed& event);
Value ended_json(const EndedEvent& event);
Value why_json(const Why& why);
Value attempt_json(const AttemptRecord& record);
Value rule_json(const Rule& rule);
Value retry_json(const RetryPolicy& policy);
Value worker_json(const WorkerInfo& info);

/// {"delay", "factor", "max_delay", "jitter", "max", "then"}; what is not given is as in `otherwise`.
std::optional<RetryPolicy> read_retry(Fields& fields, std::string_view name, const RetryPolicy& otherwise = {});
/// {"worker", "value", ...}, as POST /v1/{space}/events takes it.
Result<NewEvent> read_event(const Value& value, const std::string& what);
/// "retry": false, or "retry_in".
FailOptions read_fail_options(Fields& fields);
/// How long a claim by hand lasts if nobody says otherwise.
inline constexpr Duration kLockDefault = std::chrono::seconds(30);
/// "ready"
Result<EventState> read_state(std::string_view name);

}  // namespace perdure::http
