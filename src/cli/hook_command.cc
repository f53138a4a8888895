// perdure hook: hands one hook event to the daemon, or leaves it in the spool, and never keeps its caller waiting nor
// fails it. The answer is the same whatever happens, so it is given first.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/rfc3339.h"
#include "cli/commands.h"
#include "http/hook_spools.h"
#include "perdure/uuid.h"
#include "runtime/random.h"
#include "runtime/wall_clock.h"
#include "transcript/spool.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;
using transcript::Spooled;

constexpr const char* kAnswer = "{\"continue\":true}\n";
// What the API takes in one body.
constexpr std::size_t kHookBytesMax = std::size_t{8} << 20;
// A daemon that is slow is still better than the spool, where hooks lie until somebody takes them.
constexpr Duration kConnectTimeout = 1s, kAnswerTimeout = 2s;
// In seconds, for settings.json: what Claude Code waits for a hook that does hang.
constexpr int kInstalledTimeout = 5;

std::string make_uuid() {
  Uuid uuid;
  Random random(random_seed());
  for (std::uint8_t& byte : uuid.bytes) byte = static_cast<std::uint8_t>(random());
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);
  return to_string(uuid);
}

class Hook {
 public:
  Hook(Context& context, const Arguments& arguments) : context_(context), arguments_(arguments) {}

  void run() {
    // Before it is read: by this, hooks that overtake each other are put in order.
    const WallTime came = wall_now();
    std::string text = read_all();
    if (text.empty()) return warn("there was no hook event on stdin");
    hook_ = {make_uuid(), context_.space(), std::move(text), came};
    bool told = false;
    try {
      told = tell_daemon();
    } catch (const std::exception& error) {
      // Where daemons are looked for cannot be read, say. The event is taken once, wherever it comes from.
      warn(error.what());
    }
    if (!told) spool();
  }

 private:
  /// What is too long is read to its end as well, so that whoever writes it is not cut off.
  std::string read_all() {
    std::string text;
    std::array<char, 65536> piece;
    bool cut = false;
    std::istream& in = context_.world().in;
    while (in.read(piece.data(), piece.size()) || in.gcount() > 0) {
      auto got = static_cast<std::size_t>(in.gcount()), room = kHookBytesMax - text.size();
      text.append(piece.data(), std::min(got, room));
      cut = cut || got > room;
    }
    if (cut) warn("the hook event is cut off after 8 MiB");
    return text;
  }

  bool tell_daemon() {
    auto client = find_daemon(context_.places(), kConnectTimeout);
    if (!client) {
      warn(client.error().message);
      return false;
    }
    Target target = {context_.space(), "transcripts", "hooks"};
    Call call = {.method = "POST", .target = target.text(), .body = hook_.hook};
    call.headers.add("Idempotency-Key", hook_.id);
    call.headers.add("Perdure-Hook-Time", format_rfc3339(hook_.at));
    auto answer = (*client)->send(context_.daemon().request_of(call), kAnswerTimeout);
    if (answer && answer->status >= 200 && answer->status <= 299) return true;
    warn(answer ? failure_of(*answer).message : answer.error().message);
    return false;
  }

  void spool() {
    for (const std::string& path : spool_paths()) {
      auto kept = transcript::append_to_spool(path, hook_);
      if (kept) return warn("the hook event waits in " + path);
      warn(kept.error().message);
    }
    warn("the hook event is lost");
  }

  /// Where it is tried, in this order.
  std::vector<std::string> spool_paths() const {
    if (auto path = arguments_.maybe("spool")) return {*path};
    const Places& places = context_.places();
    auto given = http::Url::parse(places.url.value_or(places.otherwise));
    // Who is meant by what is no URL? Most likely the daemon that is told nothing.
    http::Url url = given ? *given : *http::Url::parse(places.otherwise);
    std::vector<std::string> paths;
    auto near = near_daemon(url);
    std::error_code error;
    if (near && std::filesystem::is_directory(near->parent_path(), error)) {
      paths.push_back(*near);
      // The daemon of that store is meant, which may listen at any port.
      if (!places.url) url = {http::Url::Scheme::kUnix, "", 0, places.directory + "/perdure.sock"};
    }
    auto home = context_.world().variables("HOME");
    if (home && !home->empty()) paths.push_back(http::spool_at_home(*home, url));
    return paths;
  }

  /// Beside its socket, or in the directory of its store; nothing if neither is known.
  std::optional<std::filesystem::path> near_daemon(const http::Url& url) const {
    if (url.scheme == http::Url::Scheme::kUnix) return http::spool_beside(url.path);
    const Places& places = context_.places();
    auto path = std::filesystem::path(places.directory) / transcript::kSpoolName;
    // A directory of the place where the session happens to be says nothing of the daemon that a URL names.
    if (places.url && path.is_relative()) return std::nullopt;
    return path;
  }

  void warn(const std::string& message) {
    if (arguments_.has("verbose")) context_.say("perdure: " + message);
  }

  Context& context_;
  const Arguments& arguments_;
  Spooled hook_;
};

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

OrFailure<std::string> own_path() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return give_up(kExitError, "cannot tell where this program is: " + error.message());
  return path.string();
}

/// The command as a session will run it: from whatever directory and with whatever environment it has.
OrFailure<std::string> installed_command(Context& context, const Arguments& arguments) {
  auto program = own_path();
  if (!program) return program;
  std::error_code error;
  auto absolute = [&](const std::string& path) { return std::filesystem::absolute(path, error).lexically_normal(); };
  const Places& places = context.places();
  // A store on a server has no directory, and its daemon no socket unless it is told.
  auto store = context.world().variables("PERDURE_STORE");
  bool has_socket = !store || store->empty() || store->starts_with("lmdb:");
  std::string socket = "unix://" + absolute(places.directory + "/perdure.sock").string();
  std::string url = places.url.value_or(has_socket ? socket : places.otherwise);
  if (auto parsed = http::Url::parse(url); !parsed) return usage(parsed.error().message);
  if (!find_daemon({.url = url}, kConnectTimeout))
    context.say("nothing answers at " + url + " now; if your daemon is elsewhere, say where by --url");
  std::string command = shell_quoted(*program) + " hook --url " + shell_quoted(url);
  if (context.space() != "default") command += " --space " + shell_quoted(context.space());
  if (auto spool = arguments.maybe("spool")) command += " --spool " + shell_quoted(absolute(*spool).string());
  return command;
}

OrFailure<void> install(Context& context, const Arguments& arguments) {
  auto command = installed_command(context, arguments);
  if (!command) return std::unexpected(std::move(command.error()));
  std::string hook = R"("hooks": [{"type": "command", "command": )" + Value(*command).to_json() + R"(, "timeout": )" +
                     std::to_string(kInstalledTimeout) + "}]";
  std::string events;
  for (std::string_view event : {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification",
                                 "Stop", "SubagentStop", "SessionEnd"}) {
    std::string matcher = event.ends_with("ToolUse") ? R"("matcher": "*", )" : "";
    events += (events.empty() ? "" : ",\n") + ("    \"" + std::string(event)) + "\": [{" + matcher + hook + "}]";
  }
  context.print("{\n  \"hooks\": {\n" + events + "\n  }\n}");
  context.say("paste this into ~/.claude/settings.json, or into .claude/settings.json of one project");
  return {};
}

OrFailure<void> hook(Context& context, const Arguments& arguments) {
  if (arguments.has("install")) return install(context, arguments);
  // A name server that does not answer must not use up the time that is left to spool the event.
  ::setenv("RES_OPTIONS", "timeout:1 attempts:1", 0);
  World& world = context.world();
  world.answer_early(world.out, kAnswer, kHookedWaits);
  try {
    Hook(context, arguments).run();
  } catch (const std::exception&) {
    // Out of memory, say. Whoever called has work of its own to do.
  }
  return {};
}

constexpr const char* kExamples = R"(Examples:
  perdure hook --install                    print the settings that make Claude Code call it
  perdure hook --verbose < event.json       say what becomes of an event
)";

}  // namespace

std::vector<Command> hook_commands() {
  return {{"hook",
           kTranscripts,
           "Hand one hook event of a coding session, on stdin, to the daemon",
           {},
           {{"install", "", "Print the settings by which Claude Code calls it"},
            {"spool", "FILE",
             "Where events wait that no daemon takes; hooks.spool in the directory of the daemon's socket unless told",
             "PERDURE_HOOK_SPOOL"},
            {"verbose", "", "Say on stderr what went wrong; the exit code is 0 all the same"}},
           hook,
           kExamples,
           false,
           kAnswer}};
}

}  // namespace perdure::cli
