#include <unistd.h>

#include <charconv>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/work/worker.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

OrFailure<Duration> duration_flag(const Arguments& arguments, const std::string& name, Duration otherwise,
                                  Duration least) {
  auto text = arguments.maybe(name);
  if (!text) return otherwise;
  auto duration = parse_duration(*text);
  if (!duration) return usage("--" + name + " is '" + *text + "', which is not a duration such as 5m");
  if (*duration < least) return usage("--" + name + " is '" + *text + "', which is too short");
  return *duration;
}

// As execvp would look for it, so that a misspelt name is told before an event is claimed for it.
bool is_program(const std::string& name, const Variables& variables) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  std::string path = variables("PATH").value_or("/bin:/usr/bin");
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string folder = end == at ? "." : path.substr(at, end - at);
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

OrFailure<WorkOptions> options_of(Context& context, const Arguments& arguments) {
  WorkOptions options;
  options.worker = arguments.one("WORKER");
  options.argv = arguments.all("CMD");
  options.verbose = arguments.has("verbose");
  options.drain = arguments.has("drain");
  if (auto text = arguments.maybe("concurrency")) {
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), options.concurrency);
    if (error != std::errc() || end != text->data() + text->size() || options.concurrency < 1 ||
        options.concurrency > 1000)
      return usage("--concurrency is '" + *text + "', but must be a number from 1 to 1000");
  }
  auto timeout = duration_flag(arguments, "timeout", options.timeout, 1ms);
  if (!timeout) return std::unexpected(std::move(timeout.error()));
  auto kill_after = duration_flag(arguments, "kill-after", options.kill_after, 0ms);
  if (!kill_after) return std::unexpected(std::move(kill_after.error()));
  auto lock = duration_flag(arguments, "lock", options.lock, 100ms);
  if (!lock) return std::unexpected(std::move(lock.error()));
  options.timeout = *timeout;
  options.kill_after = *kill_after;
  options.lock = *lock;
  if (!is_program(options.argv[0], context.world().variables))
    return usage("there is no program '" + options.argv[0] + "'", "name its path, as in ./" + options.argv[0]);
  return options;
}

OrFailure<void> work(Context& context, const Arguments& arguments) {
  auto options = options_of(context, arguments);
  if (!options) return std::unexpected(std::move(options.error()));
  return Worker(context, std::move(*options)).run();
}

constexpr const char* kExamples =
    R"(The program gets the value of an event as JSON on stdin, and PERDURE_EVENT_ID, PERDURE_ATTEMPT,
PERDURE_WORKER, PERDURE_SPACE and TRACEPARENT in its environment. Exit code 0 completes the event,
with what was printed as its result; any other fails it, with the end of stderr as its error.
What the program leaves running is killed when it ends.

Examples:
  perdure work mail -- ./send-mail.sh
  perdure work resize --concurrency 4 --timeout 5m -- python3 resize.py --width 800
)";

}  // namespace

std::vector<Command> work_commands() {
  return {{"work",
           kEvents,
           "Run a program for each event of a worker",
           {{"WORKER", "The worker to serve"}, {"CMD", "The program and its arguments, never a shell", Count::kRest}},
           {{"concurrency", "N", "How many run at once; 1 unless told"},
            {"timeout", "DURATION", "After this, a program gets SIGTERM and has failed; no limit unless told"},
            {"kill-after", "DURATION", "How long after SIGTERM it gets SIGKILL; 5s unless told"},
            {"lock", "DURATION", "How long a claim lasts if this process dies; 30s unless told"},
            {"drain", "", "End once there is no event to claim"},
            {"verbose", "", "Also say what was completed"}},
           work,
           kExamples}};
}

}  // namespace perdure::cli
