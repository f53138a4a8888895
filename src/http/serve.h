// `perdure serve`: the daemon.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "node/node.h"

namespace perdure {

enum class LogFormat { kText, kJson };

/// What its flags, the environment and the configuration file say.
struct ServeOptions {
  std::string store = "lmdb:./perdure-data";
  std::string listen = "127.0.0.1:7420";
  /// The path of the unix socket; empty for one in the directory of the store, "none" for no socket.
  std::string socket = {};
  bool held = false;
  bool test_clock = false;
  /// Targets beside loopback that events may be pushed to.
  std::vector<std::string> allow_urls = {};
  /// Below which transcripts are read; the home directory if there are none.
  std::vector<std::string> transcript_roots = {};
  /// How long hooks of a session are gathered before its transcript is read; empty for the default.
  std::string debounce_seconds = {};
  /// Where hooks leave what came while no daemon listened; empty for what spools_of of http/hook_spools.h says.
  std::string hook_spool = {};
  LogFormat log_format = LogFormat::kText;
  /// "debug", "info", "warning" or "error".
  std::string log_level = "info";
  /// For programs that bring kinds and workers of their own in C++: called with the open node, before it is served.
  std::function<Result<void>(Node&)> prepare = {};
};

/// Runs the daemon until it is told to stop; answers the exit code of the process.
int serve(const ServeOptions& options);

}  // namespace perdure
