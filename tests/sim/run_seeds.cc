#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "commands.h"
#include "workers.h"

namespace perdure::sim {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

/// A line on stderr once a second, on a terminal; once in ten seconds elsewhere.
class Progress {
 public:
  Progress(std::uint64_t seeds, const Tally& tally) : seeds_(seeds), tally_(tally), terminal_(isatty(2) == 1) {}

  void one_more() { ++done_; }
  void tick() {
    double passed = seconds_since(begin_);
    if (passed < next_) return;
    next_ = passed + (terminal_ ? 1 : 10);
    std::fprintf(stderr, "%s%llu of %llu seeds, %zu failed, %.0f s%s", terminal_ ? "\r" : "",
                 static_cast<unsigned long long>(done_), static_cast<unsigned long long>(seeds_),
                 tally_.failures.size(), passed, terminal_ ? "" : "\n");
  }
  void end() const {
    if (terminal_) std::fprintf(stderr, "\r\x1b[K");
  }

 private:
  const std::uint64_t seeds_;
  const Tally& tally_;
  const bool terminal_;
  const WallClock::time_point begin_ = WallClock::now();
  double next_ = 1;
  std::uint64_t done_ = 0;
};

}  // namespace

void give_report(const std::string& report, const Options& options) {
  std::fputs(report.c_str(), stdout);
  if (options.report.empty()) return;
  std::ofstream out(options.report, std::ios::trunc);
  out << report;
  if (!out.flush()) std::fprintf(stderr, "cannot write %s\n", options.report.c_str());
}

int run_seeds(const std::vector<Scenario>& scenarios, const Options& options) {
  constexpr std::size_t kFailuresMax = 5;
  auto begin = WallClock::now();
  unsigned jobs = options.jobs > 0 ? options.jobs : cores();
  Tally total;
  Progress progress(options.seeds, total);
  std::vector<std::uint64_t> last_seed(jobs);
  auto work = [&](std::size_t job, const Tell& tell) {
    Tally tally;
    for (std::uint64_t i = job; i < options.seeds && tally.failures.size() < kFailuresMax; i += jobs) {
      std::uint64_t seed = options.from + i;
      tell("seed " + std::to_string(seed));
      run_seed(scenario_of(scenarios, seed), seed, options, tally);
    }
    std::string lines = tally.to_lines();
    lines.pop_back();
    tell(lines);
  };
  auto hear = [&](std::size_t job, const std::string& line) {
    if (line.starts_with("seed ")) {
      last_seed[job] = std::stoull(line.substr(5));
      progress.one_more();
    } else {
      total.read_line(line);
    }
  };
  auto ended = [&](std::size_t job, const std::string& how) {
    if (how.empty()) return;
    const Scenario& scenario = scenario_of(scenarios, last_seed[job]);
    total.failures.push_back("FAILED: seed " + std::to_string(last_seed[job]) + ", scenario " + scenario.name + "\n  " +
                             how + "; the other seeds of this worker were not run\n  replay: ./dev sim --seed " +
                             std::to_string(last_seed[job]) + " --scenario " + scenario.name + " --trace\n");
  };
  Workers(jobs).run(jobs, work, hear, ended, [&] { progress.tick(); });
  progress.end();
  std::string report;
  for (const std::string& failure : total.failures) report += failure + "\n";
  give_report(report + total.report(seconds_since(begin)), options);
  return total.failures.empty() ? 0 : 1;
}

int run_one_seed(const std::vector<Scenario>& scenarios, const Options& options) {
  const Scenario& scenario = scenario_of(scenarios, options.seed);
  FaultPlan plan = kept_faults(draw_shape(scenario, options.seed).plan, options);
  RunOutcome outcome = run_with(scenario, options.seed, plan, options.trace ? Trace::Keep::kLines : Trace::Keep::kHash);
  for (const std::string& line : outcome.trace) std::printf("%s\n", line.c_str());
  std::printf("seed %llu, scenario %s: %llu operations, %zu faults planned, %s s of virtual time, trace %016llx\n",
              static_cast<unsigned long long>(options.seed), scenario.name.c_str(),
              static_cast<unsigned long long>(outcome.operations), plan.size(), show_time(outcome.virtual_time).c_str(),
              static_cast<unsigned long long>(outcome.trace_hash));
  if (outcome.violations.empty()) return 0;
  std::printf("%s", describe_failure(scenario, options.seed, options, outcome).c_str());
  return 1;
}

}  // namespace perdure::sim
