// What a command sees of the world: where it reads and writes, what was asked of all commands, and the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "cli/command.h"
#include "cli/daemon.h"
#include "cli/parse.h"
#include "cli/table.h"

namespace perdure::cli {

/// Of the 50 ms that a hook may take: the others are for starting the process and ending it.
inline constexpr Duration kHookedWaits = std::chrono::milliseconds(30);

/// Given to a run of the command line, so that tests can be the world.
struct World {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Variables variables = [](std::string_view) { return std::nullopt; };
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  /// Of the terminal that `out` is.
  std::size_t columns = 80;
  /// Whether a read of `in` would find something at once.
  std::function<bool()> in_is_ready = [] { return true; };
  /// Of `in`, in bytes, if it has one.
  std::optional<std::uint64_t> in_size = {};
  /// Prints `answer` at once, and does not keep the caller waiting for longer than `within`.
  std::function<void(std::ostream& out, std::string_view answer, Duration within)> answer_early =
      [](std::ostream& to, std::string_view answer, Duration) { to << answer; };
};

class Context {
 public:
  Context(World& world, const Arguments& arguments);

  World& world() { return world_; }
  bool json() const { return json_; }
  const std::string& space() const { return space_; }
  Daemon& daemon() { return daemon_; }
  const Places& places() const { return places_; }
  OrFailure<Answer> ask(const Call& call) { return daemon_.ask(call); }
  OrFailure<Answer> get(const Target& target) {
    return ask({.method = "GET", .target = target.text(), .repeat = Repeat::kSafe});
  }

  /// A message, to stderr.
  void say(std::string_view message);
  /// Data, to stdout: a line.
  void print(std::string_view line);
  /// An object: JSON in one line, or lines of names and values.
  void print_object(const Value& object);
  TableLook look() const;
  /// The rows of a list that are there already.
  void print_rows(std::span<const Value> rows, std::vector<Column> columns);
  /// Pages through a list, up to the flag --limit, and prints it.
  OrFailure<void> print_list(const Target& target, const Arguments& arguments, std::vector<Column> columns);

  /// Asks on a terminal; elsewhere --yes must have been given. Errors: exit code 2, and 1 for a no.
  OrFailure<void> confirm(const std::string& question);
  /// A JSON argument: as it is, or all of stdin for "-". Errors: exit code 2.
  OrFailure<std::string> json_text(const std::string& argument, std::string_view what);

 private:
  World& world_;
  bool json_;
  bool yes_;
  std::string space_;
  Places places_;
  Daemon daemon_;
};

/// The flag that print_list() reads.
Flag limit_flag();

}  // namespace perdure::cli
