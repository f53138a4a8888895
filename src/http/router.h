// Which route a request takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/call.h"

namespace perdure::http {

class Router {
 public:
  explicit Router(std::vector<Route> routes);
  const std::vector<Route>& routes() const { return routes_; }

  struct Match {
    const Route* route = nullptr;
    std::vector<std::pair<std::string_view, std::string>> params;
    /// If there is no route: the methods that the path has, "GET, PUT"; empty if there is no such path.
    std::string allowed;
  };
  /// A segment that is written in a pattern goes before one that may be anything.
  Match find(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  std::vector<Route> routes_;
  /// The segments of each pattern; "{name}" may be anything but empty.
  std::vector<std::vector<std::string>> patterns_;
};

}  // namespace perdure::http
