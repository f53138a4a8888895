#include "harness.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace perdure::bench {

Settings parse_settings(int argc, char** argv) {
  Settings settings{.directory = "build/bench-data"};
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--dir" && !value.empty())
      settings.directory = value;
    else if (flag == "--seconds" && std::atof(value.c_str()) > 0)
      settings.duration = std::chrono::milliseconds(static_cast<int>(std::atof(value.c_str()) * 1000));
    else if (flag == "--only" && !value.empty())
      settings.filter = value;
    else if (flag == "--actors" && std::atoll(value.c_str()) >= 2000)
      settings.actors = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    else if (flag == "--events" && std::atoll(value.c_str()) >= 10'000)
      settings.events = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    else {
      std::fprintf(stderr,
                   "usage: %s [--dir DIR] [--seconds N] [--only NAME] [--actors N, at least 2000] "
                   "[--events N, at least 10000]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  std::filesystem::create_directories(settings.directory);
  return settings;
}

std::chrono::microseconds cpu_time() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double raw_syncs_per_second(const std::string& directory, std::chrono::milliseconds duration) {
  std::string path = directory + "/raw";
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char record[300];
  std::memset(record, 'r', sizeof record);
  std::uint64_t count = 0;
  auto start = Clock::now();
  while (Clock::now() - start < duration) {
    if (fd < 0 || write(fd, record, sizeof record) != sizeof record || fdatasync(fd) != 0) {
      std::perror(path.c_str());
      std::exit(1);
    }
    ++count;
  }
  std::chrono::duration<double> elapsed = Clock::now() - start;
  close(fd);
  unlink(path.c_str());
  return static_cast<double>(count) / elapsed.count();
}

std::chrono::duration<double, std::milli> percentile(std::vector<Clock::duration>& latencies, double share) {
  if (latencies.empty()) return {};
  auto index = static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1));
  std::nth_element(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(index), latencies.end());
  return latencies[index];
}

double report(const Settings& settings, const std::string& name, const std::function<Sample()>& measure) {
  double before = raw_syncs_per_second(settings.directory, settings.raw_duration);
  Sample sample = measure();
  double after = raw_syncs_per_second(settings.directory, settings.raw_duration);
  double raw = (before + after) / 2;
  double rate = static_cast<double>(sample.operations) / std::chrono::duration<double>(sample.elapsed).count();
  if (sample.in_syncs) {
    char syncs[32];
    std::snprintf(syncs, sizeof syncs, ",\"syncs\":%.2f", percentile(sample.latencies, 0.5).count() / 1000 * raw);
    sample.extra += syncs;
  }
  if (sample.cpu.count() > 0) {
    char cpu[32];
    std::snprintf(cpu, sizeof cpu, ",\"cpu_us\":%.1f",
                  static_cast<double>(sample.cpu.count()) / static_cast<double>(sample.operations));
    sample.extra += cpu;
  }
  std::printf(
      "{\"name\":\"%s\",\"ops_per_s\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"raw_per_s\":%.0f,\"ratio\":%.2f%s}\n",
      name.c_str(), rate, percentile(sample.latencies, 0.5).count(), percentile(sample.latencies, 0.99).count(), raw,
      rate / raw, sample.extra.c_str());
  std::fflush(stdout);
  return rate / raw;
}

}  // namespace perdure::bench
