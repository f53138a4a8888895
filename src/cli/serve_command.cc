#include "cli/serve_command.h"

#include <algorithm>
#include <array>

#include "cli/commands.h"

namespace perdure::cli {
namespace {

OrFailure<void> run_serve(Context&, const Arguments& arguments) {
  auto options = serve_options(arguments);
  if (!options) return std::unexpected(std::move(options.error()));
  int exit_code = serve(*options);
  if (exit_code == 0) return {};
  return std::unexpected(Failure{exit_code, ""});  // It has said why.
}

constexpr const char* kExamples = R"(Examples:
  perdure serve                                     store in ./perdure-data, on 127.0.0.1:7420
  perdure serve --store memory: --listen 127.0.0.1:0
  perdure serve --config perdure.toml               lines such as: store = "lmdb:/var/lib/perdure"
)";

}  // namespace

OrFailure<ServeOptions> serve_options(const Arguments& arguments) {
  ServeOptions options;
  if (auto store = arguments.maybe("store")) options.store = *store;
  if (auto listen = arguments.maybe("listen")) options.listen = *listen;
  if (auto socket = arguments.maybe("socket")) options.socket = *socket;
  options.held = arguments.has("held");
  options.test_clock = arguments.has("test-clock");
  options.allow_urls = arguments.all("allow-url");
  options.transcript_roots = arguments.all("transcript-root");
  options.debounce_seconds = arguments.maybe("debounce-seconds").value_or("");
  options.hook_spool = arguments.maybe("hook-spool").value_or("");
  std::string format = arguments.maybe("log-format").value_or("text");
  if (format != "text" && format != "json") return usage("--log-format is '" + format + "', but must be text or json");
  options.log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  static constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
  options.log_level = arguments.maybe("log-level").value_or(options.log_level);
  if (std::ranges::count(kLevels, options.log_level) == 0)
    return usage("--log-level is '" + options.log_level + "', but must be debug, info, warning or error");
  return options;
}

std::vector<Command> serve_commands() {
  return {
      {"serve",
       kSystem,
       "Run the daemon",
       {},
       {{"store", "URL",
         "lmdb:DIR, postgres://… or etcd://… for several machines, memory: to forget; lmdb:./perdure-data unless told",
         "PERDURE_STORE"},
        {"listen", "ADDR", "Host and port; 127.0.0.1:7420 unless told", "PERDURE_LISTEN"},
        {"socket", "PATH", "The unix socket, or none; one in the directory of the store unless told", "PERDURE_SOCKET"},
        {"held", "", "Start with all dispatch held, until 'perdure release'", "PERDURE_HELD"},
        {"test-clock", "", "Time stands still until 'perdure clock advance'", "PERDURE_TEST_CLOCK"},
        {"allow-url", "URL", "Also push events to URLs that begin like this", "PERDURE_ALLOW_URL", true},
        {"transcript-root", "DIR", "Read transcripts of sessions below this; below the home directory unless told",
         "PERDURE_TRANSCRIPT_ROOT", true},
        {"debounce-seconds", "N", "Read a transcript so long after the first hook of a burst; 2 unless told",
         "PERDURE_DEBOUNCE_SECONDS"},
        {"hook-spool", "FILE", "Where hooks wait that find no daemon; beside the store unless told",
         "PERDURE_HOOK_SPOOL"},
        {"log-format", "FORMAT", "text or json", "PERDURE_LOG_FORMAT"},
        {"log-level", "LEVEL", "debug, info, warning or error", "PERDURE_LOG_LEVEL"},
        {"config", "FILE", "A file with a line NAME = VALUE for any of these flags", "PERDURE_CONFIG"}},
       run_serve,
       kExamples}};
}

}  // namespace perdure::cli
