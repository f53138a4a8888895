#include "http/call.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "http/units.h"

namespace perdure::http {

const std::string& Call::param(std::string_view name) const {
  auto found = std::ranges::find(params, name, &std::pair<std::string_view, std::string>::first);
  check(found != params.end(), "a handler asks for a part of the path that its route does not have");
  return found->second;
}

const std::string& Call::space_or_none() const {
  static const std::string kNone;
  return !params.empty() && params[0].first == "space" ? params[0].second : kNone;
}

std::optional<std::string_view> Call::query(std::string_view name) const {
  auto found = target_.query.find(name);
  if (found == target_.query.end()) return std::nullopt;
  return found->second;
}

Result<Call::Page> Call::page() const {
  Page page;
  page.after = query("after").value_or("");
  auto limit = query("limit");
  if (!limit) return page;
  auto [end, error] = std::from_chars(limit->data(), limit->data() + limit->size(), page.limit);
  if (error != std::errc() || end != limit->data() + limit->size() || page.limit == 0 || page.limit > 1'000)
    return fail(ErrorCode::kInvalidArgument,
                "'limit' must be a whole number from 1 to 1000, and not '" + std::string(*limit) + "'");
  return page;
}

Result<std::optional<Duration>> Call::query_duration(std::string_view name) const {
  auto text = query(name);
  if (!text) return std::nullopt;
  auto duration = parse_duration(*text, "'" + std::string(name) + "' of the query");
  if (!duration) return std::unexpected(std::move(duration.error()));
  return *duration;
}

std::string Call::traceparent() const {
  // version "-" trace id "-" parent id "-" flags, all in lower-case hexadecimal digits.
  constexpr std::string_view kForm = "00-00000000000000000000000000000000-0000000000000000-00";
  const std::string* given = header("traceparent");
  if (!given || given->size() != kForm.size()) return {};
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    char c = (*given)[i];
    bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (kForm[i] == '-' ? c != '-' : !digit) return {};
  }
  return *given;
}

Answer list_answer(Value::List items, std::string next) {
  return ok(Value::Map{{"items", std::move(items)}, {"next", next.empty() ? Value() : Value(std::move(next))}});
}

}  // namespace perdure::http
