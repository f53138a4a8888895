#include "http/router.h"

#include "base/assert.h"

namespace perdure::http {
namespace {

bool is_param(std::string_view part) {
  return part.starts_with("{");
}

std::vector<std::string> split_pattern(std::string_view pattern) {
  check(pattern.starts_with("/"), "a route begins with '/'");
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    std::size_t end = pattern.find('/', at + 1);
    parts.emplace_back(pattern.substr(at + 1, end == std::string_view::npos ? end : end - at - 1));
    at = end;
  }
  return parts;
}

/// How well a pattern fits: -1 not at all, otherwise the more the further left it says what must stand there.
int fit(const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return -1;
  int score = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    score *= 2;
    if (is_param(pattern[i]) ? segments[i].empty() : pattern[i] != segments[i]) return -1;
    if (!is_param(pattern[i])) ++score;
  }
  return score;
}

}  // namespace

Router::Router(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (const Route& route : routes_) patterns_.push_back(split_pattern(route.pattern));
}

Router::Match Router::find(std::string_view method, const std::vector<std::string>& segments) const {
  // A path is found first, and then its method: "/v1/_/spaces" is not a space of the name "_".
  int best = -1;
  for (const auto& pattern : patterns_) best = std::max(best, fit(pattern, segments));
  Match match;
  if (best < 0) return match;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (fit(patterns_[i], segments) != best) continue;
    bool same = routes_[i].method == method || (method == "HEAD" && routes_[i].method == "GET");
    if (!same) {
      match.allowed += (match.allowed.empty() ? "" : ", ") + routes_[i].method;
      continue;
    }
    match.route = &routes_[i];
    for (std::size_t part = 0; part < segments.size(); ++part) {
      std::string_view pattern = patterns_[i][part];
      if (is_param(pattern)) match.params.emplace_back(pattern.substr(1, pattern.size() - 2), segments[part]);
    }
    return match;
  }
  return match;
}

}  // namespace perdure::http
