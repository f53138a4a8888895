// /v1/{space}/debouncers
#include "http/api.h"
#include "http/bind.h"
#include "http/event_json.h"
#include "http/units.h"

namespace perdure::http {
namespace {

Value duration_or_null(const std::optional<Duration>& duration) {
  return duration ? Value(format_duration(*duration)) : Value();
}

Value debouncer_json(const DebouncerInfo& info) {
  const DebounceSettings& settings = info.settings;
  Value::Map out{
      {"name", info.name},
      {"edge", name_of(settings.edge)},
      {"payload", name_of(settings.payload)},
      {"max_count", settings.max_count},
      {"worker", settings.worker.empty() ? info.name : settings.worker},
      {"retry", retry_json(settings.back_off)},
      {"paused", Value()},
  };
  if (settings.window)
    out.emplace("window", format_duration(*settings.window));
  else
    out.insert({{"quiet", format_duration(settings.quiet)}, {"max_wait", duration_or_null(settings.max_wait)}});
  if (info.paused)
    out["paused"] = Value::Map{
        {"by", info.paused->by}, {"reason", info.paused->reason}, {"since", format_time(info.paused->since)}};
  return out;
}

/// {"fires_at", "first", "latest", "count"}
Value::Map window_json(const Window& window) {
  return {{"fires_at", format_time(window.fires_at)},
          {"first", format_time(window.first)},
          {"latest", format_time(window.latest)},
          {"count", number_value(window.count)}};
}

Value key_json(const DebounceKey& key) {
  Value::Map out;
  if (key.window)
    out = window_json(*key.window);
  else
    out = {{"fires_at", Value()}, {"first", Value()}, {"latest", Value()}, {"count", 0}};
  out.insert({{"key", key.key},
              {"status", name_of(key.status)},
              {"owner", key.owner ? Value(key.owner->to_string()) : Value()},
              {"token", key.token ? Value(key.token->to_string()) : Value()},
              {"since", key.since ? Value(format_time(*key.since)) : Value()},
              {"event", key.event ? Value(to_string(*key.event)) : Value()},
              {"pending", key.window.has_value()}});
  return out;
}

template <class E>
std::optional<E> read_name(Fields& fields, std::string_view name, std::initializer_list<E> all) {
  auto text = fields.text(name);
  if (!text) return std::nullopt;
  std::string known;
  for (E each : all) {
    if (name_of(each) == *text) return each;
    known += (known.empty() ? "" : ", ") + std::string(name_of(each));
  }
  fields.refuse(name, "must be one of: " + known);
  return std::nullopt;
}

Result<DebounceSettings> read_settings(const Value& body) {
  Fields fields(body, "the debouncer");
  DebounceSettings settings;
  settings.quiet = fields.duration("quiet").value_or(settings.quiet);
  settings.max_wait = fields.duration("max_wait");
  settings.window = fields.duration("window");
  if (settings.window && (fields.has("quiet") || fields.has("max_wait")))
    fields.refuse("window", "is given in the place of 'quiet' and 'max_wait', not with them");
  settings.max_count = static_cast<std::uint64_t>(fields.integer("max_count").value_or(0));
  settings.edge = read_name(fields, "edge", {Edge::kTrailing, Edge::kLeading, Edge::kBoth}).value_or(settings.edge);
  settings.payload = read_name(fields, "payload", {Payload::kLast, Payload::kFirst, Payload::kAll, Payload::kMerge})
                         .value_or(settings.payload);
  settings.worker = fields.text("worker").value_or("");
  settings.back_off = read_retry(fields, "retry", settings.back_off).value_or(settings.back_off);
  for (const char* shown : {"name", "paused"}) (void)fields.any(shown);
  if (auto good = fields.finish(); !good) return wrong(good);
  return settings;
}

Result<Answer> get(Node& node, Transaction& txn, const Call& call) {
  auto info = node.debouncers().in(call.space()).get(txn, call.param("name"));
  if (!info) return wrong(info);
  return ok(debouncer_json(*info));
}

Result<Answer> set(Node& node, Transaction& txn, const Call& call) {
  auto settings = read_settings(call.body);
  if (!settings) return wrong(settings);
  Debouncers debouncers = node.debouncers().in(call.space());
  bool is_new = !debouncers.get(txn, call.param("name"));
  debouncers.set(txn, call.param("name"), std::move(*settings));
  auto answer = get(node, txn, call);
  if (answer && is_new) answer->status = 201;
  return answer;
}

Result<Answer> list(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = node.debouncers().in(call.space()).list(txn, {.limit = page->limit, .after = page->after});
  if (!found) return wrong(found);
  Value::List items;
  for (const DebouncerInfo& info : *found) items.push_back(debouncer_json(info));
  return list_answer(std::move(items), found->empty() ? "" : next_after(found->size(), *page, found->back().name));
}

Result<Answer> remove(Node& node, const Call& call) {
  auto removed = node.debouncers().in(call.space()).remove(call.param("name"));
  if (!removed) return wrong(removed);
  return no_content();
}

Answer touched(const Window& window) {
  return {.status = 202, .body = window_json(window)};
}

/// Without an idempotency key, touches of one key that come at once are one transaction.
void touch(Node& node, const CallPtr& call, Done done) {
  node.debouncers()
      .in(call->space())
      .touch_async(call->param("name"), call->param("key"), call->body,
                   [done = std::move(done)](Result<Window> window) mutable {
                     if (!window) return done(wrong(window));
                     done(touched(*window));
                   });
}

Result<Answer> touch_in(Node& node, Transaction& txn, const Call& call) {
  return touched(node.debouncers().in(call.space()).touch(txn, call.param("name"), call.param("key"), call.body));
}

Result<Answer> get_key(Node& node, Transaction& txn, const Call& call) {
  auto key = node.debouncers().in(call.space()).key(txn, call.param("name"), call.param("key"));
  if (!key) return wrong(key);
  return ok(key_json(*key));
}

Result<Answer> list_keys(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = node.debouncers().in(call.space()).keys(txn, call.param("name"), {page->limit, page->after});
  if (!found) return wrong(found);
  Value::List items;
  for (const DebounceKey& key : *found) items.push_back(key_json(key));
  return list_answer(std::move(items), found->empty() ? "" : next_after(found->size(), *page, found->back().key));
}

Result<Answer> cancel(Node& node, Transaction& txn, const Call& call) {
  node.debouncers().in(call.space()).cancel(txn, call.param("name"), call.param("key"));
  return no_content();
}

Result<Answer> pause(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the pause");
  PauseOptions why{fields.text("by").value_or("api"), fields.text("reason").value_or("")};
  if (auto good = fields.finish(); !good) return wrong(good);
  node.debouncers().in(call.space()).pause(txn, call.param("name"), why);
  return get(node, txn, call);
}

Result<Answer> unpause(Node& node, Transaction& txn, const Call& call) {
  if (auto good = no_fields(call.body); !good) return wrong(good);
  node.debouncers().in(call.space()).unpause(txn, call.param("name"));
  return get(node, txn, call);
}

}  // namespace

std::vector<Route> debouncer_routes(Node& node) {
  const std::string one = "/v1/{space}/debouncers/{name}";
  return {
      {"GET", "/v1/{space}/debouncers", Load::kRead, looks(node, list)},
      {"GET", one, Load::kRead, looks(node, get)},
      {"PUT", one, Load::kLess, changes(node, set)},
      {"DELETE", one, Load::kLess, blocks(node, remove)},
      {"POST", one + "/pause", Load::kLess, changes(node, pause)},
      {"POST", one + "/unpause", Load::kLess, changes(node, unpause)},
      {"GET", one + "/keys", Load::kRead, looks(node, list_keys)},
      {"GET", one + "/keys/{key}", Load::kRead, looks(node, get_key)},
      {"POST", one + "/keys/{key}", Load::kMore,
       WithOrWithoutKey{changes(node, touch_in, Reserve::kKeepOut), waits(node, touch)}},
      {"DELETE", one + "/keys/{key}", Load::kLess, changes(node, cancel)},
  };
}

}  // namespace perdure::http
