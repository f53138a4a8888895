// Measuring beside the disk.
//
// Machines differ and are noisy, so a rate alone says little. Each measurement runs between two loops that append
// 300-byte records to a file on the same disk and fdatasync each: their mean rate is `raw_per_s`, called r. What counts
// is the ratio to r. One JSON line a result goes to stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace perdure::bench {

using Clock = std::chrono::steady_clock;

struct Sample {
  std::uint64_t operations = 0;
  Clock::duration elapsed = {};
  std::vector<Clock::duration> latencies = {};
  /// More fields for the JSON line, each begun with a comma: `,"conflicts":12`.
  std::string extra;
  /// What the process has computed meanwhile, all threads together; given for each operation as the field `cpu_us`. It
  /// hardly depends on what else the machine does.
  std::chrono::microseconds cpu = {};
  /// Also gives the median latency in raw sync times, as the field `syncs`.
  bool in_syncs = false;
};

struct Settings {
  std::string directory;  ///< Where stores and the raw file are made.
  std::chrono::milliseconds duration{3000};
  std::chrono::milliseconds raw_duration{700};
  std::string filter = {};           ///< Only results whose name contains it.
  std::uint64_t actors = 100'000;    ///< That exist besides, for those results that want to know what they cost.
  std::uint64_t events = 1'000'000;  ///< That are stored, likewise.

  bool wants(const std::string& name) const { return filter.empty() || name.find(filter) != std::string::npos; }
};

/// --dir, --seconds, --only, --actors, --events; ends the program with a usage message on anything else.
Settings parse_settings(int argc, char** argv);

/// What the process has computed so far, in its own code and in the kernel.
std::chrono::microseconds cpu_time();

/// Appends and syncs for `duration`; how many a second.
double raw_syncs_per_second(const std::string& directory, std::chrono::milliseconds duration);

/// Runs `measure` between two raw loops and prints its line. Returns the ratio to raw.
double report(const Settings& settings, const std::string& name, const std::function<Sample()>& measure);

std::chrono::duration<double, std::milli> percentile(std::vector<Clock::duration>& latencies, double share);

}  // namespace perdure::bench
