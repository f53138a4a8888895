#include "cli/failure.h"

#include <algorithm>

#include "perdure/value.h"

namespace perdure::cli {
namespace {

int exit_code_of_status(int status) {
  switch (status) {
    case 400:
      return kExitUsage;
    case 404:
      return kExitNotFound;
    case 409:
    case 410:
    case 412:
    case 422:
      return kExitConflict;
    case 408:
    case 429:
    case 503:
    case 504:
    case 507:
      return kExitUnavailable;
    default:
      return kExitError;
  }
}

std::string hint_of_status(int status) {
  if (status == 401) return "set PERDURE_TOKEN to a token of this daemon";
  if (status == 403) return "this token, or this address, may not do that";
  return "";
}

// Only those codes whose advice says more than the message does.
std::string hint_of(const ErrorInfo& row) {
  if (row.outcome == Outcome::kUnknown || row.retry == Retry::kLater) return std::string(row.advice);
  return "";
}

std::string text_at(const Value& body, std::string_view key) {
  const Value* found = body.find(key);
  return found != nullptr && found->is_text() ? *found->as_text() : "";
}

}  // namespace

Failure failure_of(const Error& error) {
  const ErrorInfo& row = info(error.code);
  return {row.exit_code, error.message, hint_of(row), row.retry == Retry::kLater, ""};
}

Failure failure_of(std::string_view code, std::string_view message, int status) {
  Failure failure{exit_code_of_status(status), std::string(message), hint_of_status(status), false, std::string(code)};
  auto row = std::ranges::find(error_table(), code, &ErrorInfo::name);
  if (row != error_table().end()) {
    failure.exit_code = row->exit_code;
    failure.hint = hint_of(*row);
    failure.retryable = row->retry == Retry::kLater;
  } else {
    failure.retryable = status == 429 || status == 503;
  }
  return failure;
}

Failure failure_of(const http::Response& answer) {
  auto body = Value::from_json(answer.body);
  std::string code, message;
  if (body) {
    if (const Value* error = body->find("error")) {
      code = text_at(*error, "code");
      message = text_at(*error, "message");
    }
    if (message.empty()) message = text_at(*body, "detail");
    if (message.empty()) message = text_at(*body, "title");
  }
  if (message.empty()) message = "the daemon answered with the status " + std::to_string(answer.status);
  return failure_of(code, message, answer.status);
}

}  // namespace perdure::cli
