// Leases that are taken, written under and released, by several processes at once; and what must hold afterwards.
//
// There is one log for each lease. Whoever holds it appends its token there, fenced. Tokens grow with each acquisition,
// so if two ever wrote under one lease at a time, a smaller token stands behind a larger one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "perdure/session.h"
#include "perdure/store.h"

namespace perdure::e2e {

struct LeaseLoad {
  Store store;
  SessionOptions options;
  int process;
  std::string prefix;  ///< The leases are called PREFIX0, PREFIX1 ...
  int leases;
  int chains;  ///< How many it is after at once.
};

/// Opens sessions one after another, a new one whenever the last is lost. Ends when it is told to.
std::function<void()> start_lease_load(const LeaseLoad& load);

struct LeaseLogs {
  /// Everything that must not be, as sentences.
  std::vector<std::string> problems;
  std::size_t entries = 0;
  std::size_t tokens = 0;
};
LeaseLogs check_lease_logs(Store& store, const std::string& prefix, int leases);

}  // namespace perdure::e2e
