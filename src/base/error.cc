#include "perdure/error.h"

#include <array>

#include "base/assert.h"

namespace perdure {
namespace {

using enum ErrorCode;

// clang-format off
constexpr std::array kTable = {
    ErrorInfo{kInvalidArgument,   "invalid_argument",   400, 2, Retry::kNever, Outcome::kNone,    "Correct the call; the message names the argument."},
    ErrorInfo{kPermissionDenied,  "permission_denied",  403, 1, Retry::kNever, Outcome::kNone,    "Give the process the right that the message names."},
    ErrorInfo{kNotFound,          "not_found",          404, 3, Retry::kNever, Outcome::kNone,    "Check the name; the thing does not exist."},
    ErrorInfo{kConflict,          "conflict",           409, 4, Retry::kLater, Outcome::kNone,    "Run the transaction again; something that it read has changed."},
    ErrorInfo{kStaleToken,        "stale_token",        409, 4, Retry::kNever, Outcome::kNone,    "Stop what you were doing under it: the lease or claim is lost; acquire it anew."},
    ErrorInfo{kWrongState,        "wrong_state",        409, 4, Retry::kNever, Outcome::kNone,    "Look at what it is doing; the call does not fit that, and the message says what would."},
    ErrorInfo{kTooLarge,          "too_large",          413, 1, Retry::kNever, Outcome::kNone,    "Split the data; the message names the limit."},
    ErrorInfo{kLimitExceeded,     "limit_exceeded",     429, 5, Retry::kLater, Outcome::kNone,    "Slow down and try again; a queue is full."},
    ErrorInfo{kMailboxFull,       "mailbox_full",       429, 5, Retry::kLater, Outcome::kNone,    "Slow down and try again; the actor has more messages than it may."},
    ErrorInfo{kHandlerFailed,     "handler_failed",     502, 1, Retry::kNever, Outcome::kNone,    "Mend the function that you passed; it threw what the message says."},
    ErrorInfo{kActorGone,         "actor_gone",         410, 4, Retry::kLater, Outcome::kNone,    "Call again if you mean its successor; the actor was killed or stopped before it came to the message."},
    ErrorInfo{kUnavailable,       "unavailable",        503, 5, Retry::kLater, Outcome::kNone,    "Try again later; the store cannot be reached or is blocked."},
    ErrorInfo{kDeadline,          "deadline",           504, 5, Retry::kLater, Outcome::kNone,    "Try again, or allow more time."},
    ErrorInfo{kReplyTimeout,      "reply_timeout",      504, 5, Retry::kNever, Outcome::kUnknown, "Look at what has become of it; the message was taken, and is still handled."},
    ErrorInfo{kCommitUnknown,     "commit_unknown",     503, 5, Retry::kNever, Outcome::kUnknown, "Repeat it with the same idempotency key, or read what is there; it may have taken effect."},
    ErrorInfo{kStoreFull,         "store_full",         507, 5, Retry::kLater, Outcome::kNone,    "Make room; reads go on, and writes do once there is space."},
    ErrorInfo{kStoreFailed,       "store_failed",       500, 5, Retry::kNever, Outcome::kNone,    "Restart the process once what the message names is mended; nothing more is written by this one."},
    ErrorInfo{kCorrupt,           "corrupt",            500, 1, Retry::kNever, Outcome::kNone,    "Run verify, then restore from a backup; what is stored is damaged."},
    ErrorInfo{kUnsupportedFormat, "unsupported_format", 500, 1, Retry::kNever, Outcome::kNone,    "Use the version of perdure that the message names."},
    ErrorInfo{kClosed,            "closed",             503, 5, Retry::kNever, Outcome::kNone,    "Open it again; it was closed by this process."},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  return kTable.back().code == kClosed;
}
static_assert(in_order(), "the error table has one row per code, in the order of the enum");

}  // namespace

const ErrorInfo& info(ErrorCode code) {
  auto index = static_cast<std::size_t>(code);
  check(index < kTable.size(), "an error code outside of the table");
  return kTable[index];
}

std::span<const ErrorInfo> error_table() {
  return kTable;
}

std::string to_string(const Error& error) {
  return std::string(error.name()) + ": " + error.message;
}

}  // namespace perdure
