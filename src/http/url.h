// Where a client connects to, and the percent-encoding of paths and queries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/error.h"

namespace perdure::http {

/// "http://HOST:PORT/PATH", "unix:///PATH/OF/SOCKET". Nothing else: no user, no fragment.
struct Url {
  enum class Scheme { kHttp, kUnix };
  Scheme scheme = Scheme::kHttp;
  std::string host;  ///< Without the brackets of an IPv6 address; empty for a socket.
  std::uint16_t port = 80;
  /// Path and query as they go into the request line, "/" at least; for a socket, the path of its file.
  std::string path;

  /// What stands in the Host header: with brackets and, if it is not 80, the port.
  std::string authority() const;
  /// Errors: kInvalidArgument, naming what is wrong.
  static Result<Url> parse(std::string_view text);
};

/// Escapes all but unreserved characters: fit for one segment of a path, and for the value of a query.
std::string percent_encode(std::string_view text);
/// Errors: kInvalidArgument for a '%' that two hexadecimal digits do not follow. '+' stays as it is.
Result<std::string> percent_decode(std::string_view text);

}  // namespace perdure::http
