// The target of a request: its path by segments, and its query.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"

namespace perdure::http {

struct Target {
  /// Decoded: "/v1/a%2Fb" is {"v1", "a/b"}.
  std::vector<std::string> segments;
  std::map<std::string, std::string, std::less<>> query;

  /// Errors: kInvalidArgument for what is not percent-encoded well, is not UTF-8 when decoded, or names one thing of
  /// the query twice.
  static Result<Target> parse(std::string_view text);
};

}  // namespace perdure::http
