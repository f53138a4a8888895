// The loop of `perdure work`: claims events, runs a program for each, and settles them.
//
// One thread waits in one poll for all of it: the long poll of the claim, the call that settles, the pipes of the
// programs, and signals, SIGCHLD among them.
#pragma once

#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/work/child.h"
#include "cli/work/settlements.h"
#include "http/polled_connection.h"

namespace perdure::cli {

struct WorkOptions {
  std::string worker;
  std::vector<std::string> argv;
  std::size_t concurrency = 1;
  /// After this, a program gets SIGTERM, and `kill_after` later SIGKILL.
  Duration timeout = Duration::max();
  Duration kill_after = std::chrono::seconds(5);
  /// How long a claim lasts; it is extended at half of that while the program runs.
  Duration lock = std::chrono::seconds(30);
  /// Say also what went well.
  bool verbose = false;
  /// Stop once there is nothing to claim.
  bool drain = false;
};

class Worker {
 public:
  Worker(Context& context, WorkOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Until a signal says to stop, and what runs has ended. Errors: what the daemon refuses for good.
  OrFailure<void> run();

 private:
  /// Why a program was told to end.
  enum class Stop { kNot, kTimeout, kLost, kShutdown };

  struct Run {
    std::string id, token, mark;
    std::unique_ptr<Child> child;
    SteadyTime extend_at, stop_at, kill_at;
    Stop stop = Stop::kNot;
  };

  /// A connection that is opened anew, later and later, while nothing answers.
  struct Line {
    std::unique_ptr<http::PolledConnection> connection;
    SteadyTime not_before = {};
    Duration back_off = {};
    SteadyTime deadline = SteadyTime::max();
    bool busy() const { return connection != nullptr && connection->busy(); }
  };

  enum class Phase { kWorking, kFinishing, kAborting };

  // What is waited for.
  void wait();
  SteadyTime next_moment() const;
  void read_signals();
  void on_stop_signal();

  // Talking to the daemon.
  bool open(Line& line);
  void start(Line& line, const Call& call);
  std::optional<http::Response> advance(Line& line);
  void postpone(Line& line, const std::string& why);
  void answered(Line& line);
  void claim();
  void read_claim(const http::Response& response);
  void settle();
  void read_settled(const http::Response& response);
  void stop_claiming();

  // The programs.
  void start_run(const Value& item);
  std::vector<std::string> environment_of(const Value& item, const std::string& mark) const;
  void reap();
  void end_run(Run& run, int status);
  void check_times();
  void tell_to_stop(Run& run, Stop why);
  void kill_leftovers();

  bool finished() const;
  void say(const std::string& text) { context_.say("perdure: " + text); }

  Context& context_;
  WorkOptions options_;
  Phase phase_ = Phase::kWorking;
  int signals_ = -1;
  sigset_t mask_before_ = {};
  Line claims_, settles_;
  bool daemon_is_lost_ = false;
  Settlements settlements_;
  std::optional<SettleBatch> under_way_;
  std::map<pid_t, Run> runs_;
  std::uint64_t run_count_ = 0;
  std::uint64_t completed_ = 0, failed_ = 0;
  /// When an orderly end is given up, once the last program has ended and the daemon does not answer.
  SteadyTime give_up_at_ = SteadyTime::max();
  std::optional<Failure> fatal_;
};

}  // namespace perdure::cli
