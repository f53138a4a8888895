// /v1/{space}/kinds: remote behaviours.
#include <algorithm>
#include <iterator>

#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/fields.h"
#include "http/units.h"

namespace perdure::http {
namespace {

Value kind_json(const std::string& name, const RemoteKind& kind) {
  return Value::Map{
      {"kind", name},
      {"url", kind.url},
      {"timeout", format_duration(kind.timeout)},
      {"locked_timeout", format_duration(kind.locked_timeout)},
      {"retry", Value::Map{{"max", kind.retry.max},
                           {"delay", format_duration(kind.retry.delay)},
                           {"max_delay", format_duration(kind.retry.max_delay)}}},
      {"mailbox_max", number_value(kind.mailbox_max)},
      {"schema", kind.schema},
  };
}

Result<RemoteKind> read_kind(const Value& body) {
  Fields fields(body, "the kind");
  RemoteKind kind;
  kind.url = fields.required_text("url");
  kind.timeout = fields.duration("timeout").value_or(kind.timeout);
  kind.locked_timeout = fields.duration("locked_timeout").value_or(kind.locked_timeout);
  kind.mailbox_max = static_cast<std::uint64_t>(
      fields.integer("mailbox_max", 1, 1'000'000'000).value_or(static_cast<std::int64_t>(kind.mailbox_max)));
  kind.schema = static_cast<int>(fields.integer("schema", 1, 1'000'000).value_or(kind.schema));
  (void)fields.any("kind");
  const Value* given = fields.any("retry");
  const Value none;
  Fields retry(given ? *given : none, "'retry'");
  kind.retry.max = static_cast<int>(retry.integer("max", 0, 1'000).value_or(kind.retry.max));
  kind.retry.delay = retry.duration("delay").value_or(kind.retry.delay);
  kind.retry.max_delay = retry.duration("max_delay").value_or(kind.retry.max_delay);
  if (auto good = retry.finish(); !good) fields.refuse(std::move(good.error()));
  if (auto good = fields.finish(); !good) return wrong(good);
  return kind;
}

Result<Answer> set(Daemon& daemon, Transaction& txn, const Call& call) {
  auto kind = read_kind(call.body);
  if (!kind) return wrong(kind);
  bool is_new = !daemon.kinds.get(txn, call.space(), call.param("kind"));
  daemon.kinds.set(txn, call.space(), call.param("kind"), *kind);
  return Answer{.status = is_new ? 201 : 200, .body = kind_json(call.param("kind"), *kind)};
}

Result<Answer> get(Daemon& daemon, Transaction& txn, const Call& call) {
  auto kind = daemon.kinds.get(txn, call.space(), call.param("kind"));
  if (!kind) return wrong(kind);
  return ok(kind_json(call.param("kind"), *kind));
}

Result<Answer> list(Daemon& daemon, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = daemon.kinds.list(txn, call.space(), {page->limit, page->after});
  Value::List items;
  for (const auto& [name, kind] : found) items.push_back(kind_json(name, kind));
  return list_answer(std::move(items), found.empty() ? "" : next_after(found.size(), *page, found.back().first));
}

Result<Answer> remove(Daemon& daemon, Transaction& txn, const Call& call) {
  daemon.kinds.remove(txn, call.space(), call.param("kind"));
  return no_content();
}

}  // namespace

std::vector<Route> kind_routes(Daemon& daemon) {
  auto look = [&daemon](auto handler) {
    return InTransaction{[&daemon, handler](Transaction& txn, const Call& call) { return handler(daemon, txn, call); }};
  };
  return {
      {"GET", "/v1/{space}/kinds", Load::kRead, look(list)},
      {"GET", "/v1/{space}/kinds/{kind}", Load::kRead, look(get)},
      {"PUT", "/v1/{space}/kinds/{kind}", Load::kLess, look(set)},
      {"DELETE", "/v1/{space}/kinds/{kind}", Load::kLess, look(remove)},
  };
}

std::vector<Route> all_routes(Daemon& daemon) {
  std::vector<Route> all;
  auto add = [&all](std::vector<Route> routes) { std::ranges::move(routes, std::back_inserter(all)); };
  add(event_routes(daemon.node));
  add(worker_routes(daemon));
  add(schedule_routes(daemon.node));
  add(kind_routes(daemon));
  add(actor_routes(daemon));
  add(debouncer_routes(daemon.node));
  add(sequence_routes(daemon.node));
  add(key_routes(daemon.node));
  add(transact_routes(daemon.node));
  add(transcript_routes(daemon));
  add(stream_routes(daemon));
  add(system_routes(daemon));
  return all;
}

}  // namespace perdure::http
