// /v1/{space}/keys: the application's own data, beside its work.
#include "http/api.h"
#include "http/bind.h"
#include "http/keys.h"
#include "http/problem.h"
#include "http/units.h"

namespace perdure::http {
namespace {

/// "\"0123...\"" without its quotes.
std::string_view unquoted(std::string_view tag) {
  if (tag.size() >= 2 && tag.starts_with('"') && tag.ends_with('"')) return tag.substr(1, tag.size() - 2);
  return tag;
}

Answer precondition_failed(std::string_view what) {
  Response refused = problem(412, "wrong_state", what);
  return {.status = 412, .body = *Value::from_json(refused.body), .headers = refused.headers};
}

/// The answer if If-Match or If-None-Match do not hold; nothing if they do.
Result<std::optional<Answer>> check_conditions(const Call& call, const std::optional<StoredKey>& found) {
  if (const std::string* given = call.header("If-Match")) {
    if (!found) return precondition_failed("the key does not exist, and If-Match asks for one that does");
    if (*given != "*") {
      auto version = parse_version(unquoted(*given));
      if (!version) return wrong(version);
      if (*version != found->version) return precondition_failed("the key has changed since; read it again");
    }
  }
  if (const std::string* given = call.header("If-None-Match")) {
    if (*given != "*") return fail(ErrorCode::kInvalidArgument, "If-None-Match must be * when something is written");
    if (found) return precondition_failed("the key exists already, and If-None-Match asks that it does not");
  }
  return std::nullopt;
}

Result<Answer> get(Node&, Transaction& txn, const Call& call) {
  if (auto good = check_app_key(call.param("key")); !good) return wrong(good);
  auto found = get_key(txn, call.space(), call.param("key"));
  if (!found) return wrong(found);
  if (!*found) return fail(ErrorCode::kNotFound, "there is no key '" + call.param("key") + "'");
  return Answer{
      .body = std::move((*found)->value), .show_version = Answer::ShowVersion::kETag, .version = (*found)->version};
}

Result<Answer> put(Node&, Transaction& txn, const Call& call) {
  if (auto good = check_app_key(call.param("key")); !good) return wrong(good);
  auto found = get_key(txn, call.space(), call.param("key"));
  if (!found) return wrong(found);
  auto refused = check_conditions(call, *found);
  if (!refused) return wrong(refused);
  if (*refused) return std::move(**refused);
  if (auto good = set_key(txn, call.space(), call.param("key"), call.body); !good) return wrong(good);
  return Answer{.status = *found ? 200 : 201, .body = call.body, .show_version = Answer::ShowVersion::kETag};
}

Result<Answer> remove(Node&, Transaction& txn, const Call& call) {
  if (auto good = check_app_key(call.param("key")); !good) return wrong(good);
  auto found = get_key(txn, call.space(), call.param("key"));
  if (!found) return wrong(found);
  auto refused = check_conditions(call, *found);
  if (!refused) return wrong(refused);
  if (*refused) return std::move(**refused);
  clear_key(txn, call.space(), call.param("key"));
  return no_content();
}

Result<Answer> list(Node&, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = list_keys(txn, call.space(), std::string(call.query("prefix").value_or("")), page->after, page->limit);
  if (!found) return wrong(found);
  Value::List items;
  for (StoredKey& each : found->keys)
    items.push_back(
        Value::Map{{"key", each.key}, {"value", std::move(each.value)}, {"version", format_version(each.version)}});
  return list_answer(std::move(items), std::move(found->next));
}

}  // namespace

std::vector<Route> key_routes(Node& node) {
  const std::string one = "/v1/{space}/keys/{key}";
  return {
      {"GET", "/v1/{space}/keys", Load::kRead, looks(node, list)},
      {"GET", one, Load::kRead, looks(node, get)},
      {"PUT", one, Load::kMore, changes(node, put, Reserve::kKeepOut)},
      {"DELETE", one, Load::kLess, changes(node, remove)},
  };
}

}  // namespace perdure::http
