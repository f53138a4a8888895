// What the simulation runner does. Each command prints, and answers the exit code.
#pragma once

#include "one_seed.h"

namespace perdure::sim {

int run_seeds(const std::vector<Scenario>& scenarios, const Options& options);
int run_one_seed(const std::vector<Scenario>& scenarios, const Options& options);
int run_bugs(const std::vector<Scenario>& scenarios, const Options& options);
int list(const std::vector<Scenario>& scenarios);

/// Prints the report, and writes it to the file that the options name.
void give_report(const std::string& report, const Options& options);

}  // namespace perdure::sim
