// A world for the command line in tests: what is typed goes in, what it prints comes out as strings.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "http/http_test_daemon.h"

namespace perdure::cli {

struct Printed {
  int exit_code;
  std::string out;
  std::string err;
};

class TestWorld {
 public:
  std::map<std::string, std::string, std::less<>> variables;
  std::string input;
  bool in_is_terminal = false, out_is_terminal = false, err_is_terminal = false;
  std::function<bool()> in_is_ready = [] { return true; };
  std::optional<std::uint64_t> in_size = {};

  Printed run(const std::vector<std::string>& args) {
    std::istringstream in(input);
    std::ostringstream out, err;
    World world = {.in = in,
                   .out = out,
                   .err = err,
                   .variables = [this](std::string_view name) -> std::optional<std::string> {
                     auto found = variables.find(name);
                     return found == variables.end() ? std::nullopt : std::optional(found->second);
                   },
                   .in_is_terminal = in_is_terminal,
                   .out_is_terminal = out_is_terminal,
                   .err_is_terminal = err_is_terminal,
                   .columns = 60,
                   .in_is_ready = in_is_ready,
                   .in_size = in_size};
    int exit_code = cli::run(args, world);
    return {exit_code, out.str(), err.str()};
  }
};

using http::HttpTestServer;
using http::Request;
using http::Response;
using Wire = HttpTestServer::Wire;

/// Answers every call with what the test says.
inline HttpTestServer::Handler always(int status, std::string body) {
  return [=](const Request&, Wire&) { return Response{status, {{"Content-Type", "application/json"}}, body}; };
}

inline std::string problem(int status, const std::string& code, const std::string& message) {
  return R"({"type":"about:blank","title":"x","status":)" + std::to_string(status) + R"(,"error":{"code":")" + code +
         R"(","message":")" + message + R"("},"outcome":"none"})";
}

}  // namespace perdure::cli
