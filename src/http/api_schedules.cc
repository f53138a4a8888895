// /v1/{space}/schedules
#include "http/api.h"
#include "http/bind.h"
#include "http/fields.h"
#include "http/units.h"

namespace perdure::http {
namespace {

Value pause_json(const std::optional<SchedulePause>& paused) {
  if (!paused) return {};
  return Value::Map{{"by", paused->by}, {"reason", paused->reason}, {"since", format_time(paused->since)}};
}

Value schedule_json(const ScheduleInfo& info) {
  Value::Map out{
      {"name", info.name},
      {"worker", info.spec.worker},
      {"value", info.spec.value},
      {"missed", name_of(info.spec.missed)},
      {"jitter", format_duration(info.spec.jitter)},
      {"created", format_time(info.created)},
      {"last", info.last ? Value(format_time(*info.last)) : Value()},
      {"next", info.next ? Value(format_time(*info.next)) : Value()},
      {"missed_count", info.missed_count},
      {"paused", pause_json(info.paused)},
  };
  if (!info.spec.every.empty()) out.emplace("every", info.spec.every);
  if (!info.spec.cron.empty()) out.emplace("cron", info.spec.cron);
  if (!info.spec.cron.empty()) out.emplace("timezone", info.spec.timezone);
  return out;
}

std::optional<Missed> read_missed(Fields& fields) {
  auto text = fields.text("missed");
  if (!text) return std::nullopt;
  for (Missed each : {Missed::kOne, Missed::kAll, Missed::kSkip})
    if (name_of(each) == *text) return each;
  fields.refuse("missed", "must be \"one\", \"all\" or \"skip\"");
  return std::nullopt;
}

Result<ScheduleSpec> read_spec(const Value& body) {
  Fields fields(body, "the schedule");
  ScheduleSpec spec;
  spec.every = fields.text("every").value_or("");
  spec.cron = fields.text("cron").value_or("");
  spec.timezone = fields.text("timezone").value_or(spec.timezone);
  spec.worker = fields.required_text("worker");
  if (const Value* value = fields.any("value")) spec.value = *value;
  spec.missed = read_missed(fields).value_or(spec.missed);
  spec.jitter = fields.duration("jitter").value_or(spec.jitter);
  // What GET adds is no setting; a schedule can be put back as it was read.
  for (const char* shown : {"name", "created", "last", "next", "missed_count", "paused"}) (void)fields.any(shown);
  if (auto good = fields.finish(); !good) return wrong(good);
  return spec;
}

Result<Answer> set(Node& node, Transaction& txn, const Call& call) {
  auto spec = read_spec(call.body);
  if (!spec) return wrong(spec);
  Schedules schedules = node.schedules().in(call.space());
  bool is_new = !schedules.get(txn, call.param("name"));
  auto info = schedules.set(txn, call.param("name"), std::move(*spec));
  return Answer{.status = is_new ? 201 : 200, .body = schedule_json(info)};
}

Result<Answer> get(Node& node, Transaction& txn, const Call& call) {
  auto info = node.schedules().in(call.space()).get(txn, call.param("name"));
  if (!info) return wrong(info);
  return ok(schedule_json(*info));
}

Result<Answer> list(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = node.schedules().in(call.space()).list(txn, {.limit = page->limit, .after = page->after});
  if (!found) return wrong(found);
  Value::List items;
  for (const ScheduleInfo& info : *found) items.push_back(schedule_json(info));
  return list_answer(std::move(items), found->empty() ? "" : next_after(found->size(), *page, found->back().name));
}

Result<Answer> remove(Node& node, Transaction& txn, const Call& call) {
  node.schedules().in(call.space()).remove(txn, call.param("name"));
  return no_content();
}

Result<Answer> pause(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the pause");
  PauseOptions why{fields.text("by").value_or("api"), fields.text("reason").value_or("")};
  if (auto good = fields.finish(); !good) return wrong(good);
  node.schedules().in(call.space()).pause(txn, call.param("name"), why);
  return get(node, txn, call);
}

Result<Answer> unpause(Node& node, Transaction& txn, const Call& call) {
  if (auto good = no_fields(call.body); !good) return wrong(good);
  node.schedules().in(call.space()).unpause(txn, call.param("name"));
  return get(node, txn, call);
}

Result<Answer> run(Node& node, Transaction& txn, const Call& call) {
  if (auto good = no_fields(call.body); !good) return wrong(good);
  auto emitted = node.schedules().in(call.space()).run(txn, call.param("name"));
  return ok(Value::Map{{"id", to_string(emitted.id)}});
}

}  // namespace

std::vector<Route> schedule_routes(Node& node) {
  const std::string one = "/v1/{space}/schedules/{name}";
  // What reads time zone files is not short.
  return {
      {"GET", "/v1/{space}/schedules", Load::kRead, looks(node, list)},
      {"GET", one, Load::kRead, looks(node, get)},
      {"PUT", one, Load::kLess, looks(node, set)},
      {"DELETE", one, Load::kLess, changes(node, remove)},
      {"POST", one + "/pause", Load::kLess, changes(node, pause)},
      {"POST", one + "/unpause", Load::kLess, looks(node, unpause)},
      {"POST", one + "/run", Load::kMore, looks(node, run)},
  };
}

}  // namespace perdure::http
