// How a command of perdure ends when it does not succeed: an exit code, and what a person has to know.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "http/message.h"
#include "perdure/error.h"

namespace perdure::cli {

/// The exit codes of the command line, as the table of errors gives them too.
inline constexpr int kExitOk = 0, kExitError = 1, kExitUsage = 2, kExitNotFound = 3, kExitConflict = 4,
                     kExitUnavailable = 5;

struct Failure {
  int exit_code = kExitError;
  std::string message;  ///< Printed behind "perdure: "; empty if all has been said.
  std::string hint = {};
  /// Whether the same call may well succeed a little later.
  bool retryable = false;
  /// The code of the daemon's error: "stale_token". Empty if it is not the daemon's.
  std::string code = {};
};

template <class T>
using OrFailure = std::expected<T, Failure>;

[[nodiscard]] inline std::unexpected<Failure> give_up(int exit_code, std::string message, std::string hint = "") {
  return std::unexpected(Failure{exit_code, std::move(message), std::move(hint)});
}

/// Wrongly typed: exit code 2.
[[nodiscard]] inline std::unexpected<Failure> usage(std::string message, std::string hint = "") {
  return give_up(kExitUsage, std::move(message), std::move(hint));
}

/// What an error of this process, of the connection or of a store means for the one who typed the command.
Failure failure_of(const Error& error);
/// The same for an answer that is not 2xx: its code decides if the table of errors knows it, else its status.
Failure failure_of(const http::Response& answer);
/// For {"code","message"}, the error of one item of an answer.
Failure failure_of(std::string_view code, std::string_view message, int status);

}  // namespace perdure::cli
