#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perdure/error.h"

namespace perdure::sim {

struct Options {
  enum class Command { kSeeds, kOneSeed, kBugs, kList, kHelp } command = Command::kHelp;
  std::uint64_t seeds = 0;
  std::uint64_t from = 1;
  std::uint64_t seed = 0;
  std::string scenario;  ///< Empty: as the weights have it.
  std::string bug;       ///< Empty: none.
  std::string report;    ///< A file that the report is written to as well; empty: none.
  bool trace = false;
  bool shrink = true;
  /// Which faults of the seed's list to keep, by number; all if not given.
  std::optional<std::vector<std::size_t>> faults;
  unsigned jobs = 0;  ///< 0: one for each core.
};

std::string usage();
Result<Options> parse_options(int count, char** arguments);

}  // namespace perdure::sim
