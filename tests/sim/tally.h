// What many runs came to, and how a worker process tells it to the one that reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/run.h"

namespace perdure::sim {

struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t repeated = 0;
  std::uint64_t operations = 0;
  std::uint64_t virtual_ms = 0;
  std::uint64_t steps = 0;
  std::map<std::string, std::uint64_t> faults;
  std::map<std::string, std::uint64_t> scenarios;
  std::vector<std::string> failures;  ///< Each as it is printed.

  void add(const Scenario& scenario, const RunOutcome& outcome);
  void add(const Tally& other);
  /// One line for each number and failure; `read_line` takes them.
  std::string to_lines() const;
  /// False if the line is not one of a tally.
  bool read_line(const std::string& line);
  /// For a person.
  std::string report(double seconds) const;
};

/// A text as one line, and back.
std::string escaped(const std::string& text);
std::string unescaped(const std::string& line);

}  // namespace perdure::sim
