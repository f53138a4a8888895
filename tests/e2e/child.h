// Real processes for tests: started with posix_spawn, spoken to over pipes, killed by their own pid.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perdure::e2e {

using Milliseconds = std::chrono::milliseconds;

/// Long enough for any single answer on a busy machine; a test that waits longer has failed.
inline constexpr Milliseconds kPatience{30'000};

/// Nanoseconds on the clock that all processes of the machine share.
std::int64_t steady_ns();

/// A program that is running. What it says on its standard output is read line by line: lines that begin with '!' are
/// events, told without being asked; all others are answers. Destroying it kills and reaps it.
class Child {
 public:
  struct Options {
    std::map<std::string, std::string> environment = {};  ///< On top of this process's own.
  };
  /// How it ended: the exit code, or the negative number of the signal.
  using Ending = int;

  explicit Child(const std::vector<std::string>& arguments) : Child(arguments, Options{}) {}
  Child(const std::vector<std::string>& arguments, const Options& options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  /// Sends one line.
  void say(const std::string& line);
  /// The next answer; nothing when its output ended or `patience` ran out.
  std::optional<std::string> answer(Milliseconds patience = kPatience);
  /// Both. "(no answer)" if there is none, so that an expectation on it reads well.
  std::string ask(const std::string& line, Milliseconds patience = kPatience);
  /// The next event, without its '!'.
  std::optional<std::string> event(Milliseconds patience = kPatience);
  /// Reads what is there, and until the output ends or `patience` has passed; what came stays for event() and answer().
  void gather(Milliseconds patience);
  std::deque<std::string> take_events();
  /// Its input ends: a worker comes to its end in good order.
  void end_input();

  void signal(int number);
  /// Kills it and waits for that.
  void kill();
  std::optional<Ending> wait(Milliseconds patience = kPatience);
  bool wait_until_stopped(Milliseconds patience = kPatience);

 private:
  std::optional<std::string> take(std::deque<std::string>& from, Milliseconds patience);
  /// Reads more of its output; false when it ended or nothing came in time.
  bool read_more(Milliseconds patience);

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::optional<Ending> ending_;
  std::string partial_;
  std::deque<std::string> answers_;
  std::deque<std::string> events_;
};

}  // namespace perdure::e2e
