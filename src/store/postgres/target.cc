#include "store/postgres/target.h"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

namespace perdure::postgres {
namespace {

constexpr std::string_view kSchemaParameter = "perdure_schema=";
constexpr std::size_t kNameBytesMax = 63;  // NAMEDATALEN - 1: longer ones are cut, and two could become one.

bool is_schema_name(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && name.size() <= kNameBytesMax && letter(name[0]) && !name.starts_with("pg_") &&
         name != "information_schema" &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// Removes the parameter from the query of `url` and returns its value.
std::optional<std::string> take_schema(std::string& url) {
  std::size_t query = url.find('?');
  if (query == std::string::npos) return std::nullopt;
  std::optional<std::string> schema;
  std::string kept;
  for (std::size_t at = query + 1; at <= url.size();) {
    std::size_t end = std::min(url.find('&', at), url.size());
    std::string_view parameter = std::string_view(url).substr(at, end - at);
    if (parameter.starts_with(kSchemaParameter)) {
      schema = parameter.substr(kSchemaParameter.size());
    } else if (!parameter.empty()) {
      kept += (kept.empty() ? "?" : "&") + std::string(parameter);
    }
    at = end + 1;
  }
  url = url.substr(0, query) + kept;
  return schema;
}

/// Of a password that has a '/' or an '@', a part is taken for a port or a host; they must not be shown then.
bool is_place(const std::string& host, const std::string& port) {
  return host.find('@') == std::string::npos && port.find_first_not_of("0123456789,") == std::string::npos;
}

std::string option(const PQconninfoOption* options, std::string_view keyword, const char* otherwise) {
  for (; options->keyword; ++options)
    if (keyword == options->keyword) return options->val && *options->val ? options->val : otherwise;
  return otherwise;
}

}  // namespace

Result<Target> parse_target(const std::string& url) {
  if (!url.starts_with("postgres://") && !url.starts_with("postgresql://"))
    return fail(ErrorCode::kInvalidArgument, "the url of PostgreSQL must begin with postgres://");
  Target target{.conninfo = url, .schema = "perdure", .user = {}, .name = {}};
  if (auto schema = take_schema(target.conninfo)) target.schema = *schema;
  if (!is_schema_name(target.schema))
    return fail(ErrorCode::kInvalidArgument,
                "perdure_schema in the url must be a name of lower-case letters, digits "
                "and '_', at most 63 of them, not beginning with pg_ or a digit");
  char* problem = nullptr;
  std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(target.conninfo.c_str(), &problem), PQconninfoFree);
  std::unique_ptr<char, void (*)(void*)> owned(problem, PQfreemem);
  if (!parsed) {
    // libpq may quote the url, and with it the password; which part it is about must do.
    std::string_view why = problem ? std::string_view(problem) : std::string_view();
    why = why.substr(0, why.find('"'));
    while (why.ends_with(':') || why.ends_with(' ') || why.ends_with('\n')) why.remove_suffix(1);
    return fail(ErrorCode::kInvalidArgument, "the url of PostgreSQL cannot be read: " + std::string(why));
  }
  target.user = option(parsed.get(), "user", "");
  std::string host = option(parsed.get(), "host", option(parsed.get(), "hostaddr", "its socket").c_str());
  std::string port = option(parsed.get(), "port", "5432");
  if (!is_place(host, port))
    return fail(ErrorCode::kInvalidArgument,
                "the url of PostgreSQL has no number for its port, or an '@' in its host; in a password write / as %2f "
                "and @ as %40");
  target.name = "PostgreSQL at " + host + ":" + port + "/" + option(parsed.get(), "dbname", target.user.c_str());
  return target;
}

}  // namespace perdure::postgres
