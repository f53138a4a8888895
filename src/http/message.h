// HTTP messages, as the server, the client and the API see them: plain data, with nothing of the library that reads and
// writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::http {

struct Header {
  std::string name;
  std::string value;
};

/// In the order in which they came. Names are compared without regard to case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> list) : list_(list) {}
  void add(std::string name, std::string value) { list_.push_back({std::move(name), std::move(value)}); }
  /// The first of that name; null if there is none.
  const std::string* find(std::string_view name) const;
  const std::vector<Header>& all() const { return list_; }

 private:
  std::vector<Header> list_;
};

struct Request {
  std::string method;
  /// Path and query, as in the request line.
  std::string target;
  Headers headers = {};
  std::string body = {};
};

struct Response {
  int status = 200;
  Headers headers = {};
  std::string body = {};
};

/// Letters of ASCII alone count as equal in both cases.
bool equal_but_for_case(std::string_view a, std::string_view b);

}  // namespace perdure::http
