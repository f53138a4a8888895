#include "store/postgres/errors.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace perdure::postgres {
namespace {

constexpr std::string_view kTooManyConnections = "53300";

bool is_code(std::string_view text) {
  return text.size() == 5 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
}

/// Finds "FATAL:  28P01: password ..." in what libpq says, whatever the language of the first word; one for each host
/// that has answered.
std::vector<std::string> codes_in(std::string_view message) {
  std::vector<std::string> codes;
  for (std::size_t at = message.find(":  "); at != std::string_view::npos; at = message.find(":  ", at + 1)) {
    std::string_view rest = message.substr(at + 3);
    if (rest.size() > 6 && rest[5] == ':' && is_code(rest.substr(0, 5))) codes.emplace_back(rest.substr(0, 5));
  }
  return codes;
}

std::string grants(const Target& target) {
  std::string user = target.user.empty() ? "its user" : target.user;
  return "; let the owner of the database run: GRANT CREATE ON DATABASE ... TO " + user + ", or CREATE SCHEMA " +
         target.schema + " AUTHORIZATION " + user;
}

Error with_code(const Target& target, std::string_view code, const std::string& why) {
  std::string message = target.name + ": " + why;
  if (code == "25006")
    return {ErrorCode::kUnavailable,
            target.name + " is read-only, perhaps a standby; name the primary in the url: " + why};
  if (code == "42501") return {ErrorCode::kPermissionDenied, message + grants(target)};
  if (code.starts_with("28"))
    return {ErrorCode::kPermissionDenied, message + "; check user and password in the url, and pg_hba.conf"};
  if (code == "3D000") return {ErrorCode::kInvalidArgument, message + "; create it, or name another in the url"};
  if (code == kTooManyConnections)
    return {ErrorCode::kUnavailable, message + "; raise max_connections, or the limit of the role or the database"};
  if (code == "53100" || code == "53000") return {ErrorCode::kStoreFull, message + "; make room on the server's disk"};
  if (code == "XX001" || code == "XX002")
    return {ErrorCode::kCorrupt, message + "; the server's own data is damaged, restore it from a backup"};
  if (code == "42P01" || code == "3F000" || code == "42703")
    return {ErrorCode::kCorrupt, message + "; the tables of the schema '" + target.schema +
                                     "' are not those of perdure: restore them, or name another schema with "
                                     "perdure_schema in the url"};
  return {ErrorCode::kUnavailable, message};
}

}  // namespace

std::string first_line(const char* message) {
  std::string_view line = message ? message : "";
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('.')) line.remove_suffix(1);
  return line.empty() ? "it has gone away" : std::string(line);
}

Error statement_error(const Target& target, const PGresult* result) {
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return with_code(target, code ? code : "", first_line(why ? why : PQresultErrorMessage(result)));
}

Error connect_error(const Target& target, const char* message) {
  std::string_view text = message ? message : "";
  if (auto codes = codes_in(text); !codes.empty()) {
    const std::string& code = codes.front();
    return with_code(target, code, first_line(message + text.find(":  " + code + ":") + code.size() + 5));
  }
  std::string why = first_line(message);
  auto says = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (says("session is read-only") || says("in hot standby mode")) return with_code(target, "25006", why);
  if (says("no password supplied") || says("password")) return with_code(target, "28P01", why);
  if (says("SSL") || says("ssl") || says("certificate"))
    return {ErrorCode::kInvalidArgument,
            target.name + ": " + why + "; check sslmode, sslrootcert, sslcert and sslkey in the url"};
  if (says("invalid ") && (says("option") || says("value")))
    return {ErrorCode::kInvalidArgument, target.name + ": " + why};
  return {ErrorCode::kUnavailable, target.name + " cannot be reached: " + why};
}

bool is_crowded(const char* message) {
  return message && std::ranges::count(codes_in(message), kTooManyConnections) > 0;
}

bool ends_session(const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  // Without one the error is libpq's own: the connection is lost.
  return !severity || std::string_view(severity) != "ERROR";
}

bool gives_way(const PGresult* result) {
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return code && (std::string_view(code) == "40001" || std::string_view(code) == "40P01");
}

}  // namespace perdure::postgres
