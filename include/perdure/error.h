// Errors.
//
// Every operation of perdure ends in one of three ways: it took effect, it failed without effect, or its outcome is
// unknown. An Error says which of the last two it is, what went wrong in words for a person, and, by its code, what the
// caller should do about it. Two failures share a code unless some caller would react differently to them; the table of
// codes is in src/base/error.cc and docs/reference/errors.md is generated from it.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "perdure/export.h"

namespace perdure {

enum class ErrorCode {
  kInvalidArgument,
  kPermissionDenied,
  kNotFound,
  kConflict,
  kStaleToken,
  kWrongState,
  kTooLarge,
  kLimitExceeded,
  kMailboxFull,
  kHandlerFailed,
  kActorGone,
  kUnavailable,
  kDeadline,
  kReplyTimeout,
  kCommitUnknown,
  kStoreFull,
  kStoreFailed,
  kCorrupt,
  kUnsupportedFormat,
  kClosed,
};

/// What a failed operation left behind.
enum class Outcome {
  kNone,     ///< Nothing changed.
  kUnknown,  ///< It may or may not have taken effect: repeat it with the same idempotency key, or look.
};

/// Whether the very same call may succeed later without the caller changing anything.
enum class Retry { kNever, kLater };

/// One row of the error table.
struct ErrorInfo {
  ErrorCode code;
  std::string_view name;  ///< As it stands in the HTTP answer and the log: "store_full".
  int http_status;
  int exit_code;
  Retry retry;
  Outcome outcome;
  std::string_view advice;  ///< What the caller should do, one sentence.
};

/// The row of `code`, and the whole table in the order of the enum.
PERDURE_EXPORT const ErrorInfo& info(ErrorCode code);
PERDURE_EXPORT std::span<const ErrorInfo> error_table();

struct Error {
  ErrorCode code;
  std::string message;  ///< What is wrong, with what, and what to do; a whole sentence without a final stop.

  std::string_view name() const { return info(code).name; }
  Outcome outcome() const { return info(code).outcome; }
  bool retryable() const { return info(code).retry == Retry::kLater; }
};

/// "store_full: the disk of /var/lib/perdure has 3 MiB left"
PERDURE_EXPORT std::string to_string(const Error& error);

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(ErrorCode::kNotFound, "...")` from any function that returns a Result.
[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace perdure
