#include "http/problem.h"

#include "http/response_text.h"
#include "perdure/value.h"

namespace perdure::http {
namespace {

Response make(int status, std::string_view code, std::string_view message, Outcome outcome) {
  Value body = Value::Map{
      {"type", "about:blank"},
      {"title", reason_of(status)},
      {"status", status},
      {"detail", message},
      {"error", Value::Map{{"code", code}, {"message", message}}},
      {"outcome", outcome == Outcome::kNone ? "none" : "unknown"},
  };
  Response response{
      status, {{"Content-Type", "application/problem+json"}, {"Cache-Control", "no-store"}}, body.to_json()};
  if (status == 429 || status == 503) response.headers.add("Retry-After", "1");
  return response;
}

}  // namespace

Response problem(const Error& error) {
  const ErrorInfo& row = info(error.code);
  // Clients know one word for "it took too long"; whether it may still happen is in the outcome.
  std::string_view code = error.code == ErrorCode::kReplyTimeout ? "deadline" : row.name;
  return make(row.http_status, code, error.message, row.outcome);
}

Response problem(int status, std::string_view code, std::string_view message) {
  return make(status, code, message, Outcome::kNone);
}

}  // namespace perdure::http
