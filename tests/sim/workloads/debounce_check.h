// What debouncers owe, as the rows of a finished run tell it, without a clock: by versions of the store.
//
// Every touch writes its number in its transaction where it can, and every run writes with its completion which touches
// it ran for, and how many. So after a run the store says
//   D1, D3  of the runs of a key that had an effect, each was claimed after the one before had ended;
//   D2      a touch that was acknowledged is among those of a run that was claimed after it, and of one only; or its
//           window was closed, and it was one of as many as that had.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "perdure/debounce.h"

namespace perdure::sim::debouncing {

/// How often touches must be run.
enum class Owed {
  kOnce,     ///< All of them, by number.
  kCounted,  ///< All of them, by their sum: the payloads of most are gone.
  kSome,     ///< Those that lead a burst: whoever touched a key at all caused a run.
};

/// Notes in a transaction that touch `number` of `key` is part of it.
void write_touch(Transaction& txn, const std::string& key, std::int64_t number);
/// Notes that a window of `key` with `count` touches was closed without a run.
void write_closed(Transaction& txn, const std::string& key, std::uint64_t count);
/// Notes with the end of a run what it ran for.
void write_run(Transaction& txn, const std::string& key, const Token& token, std::uint64_t count,
               const std::vector<std::int64_t>& numbers);

struct CheckOptions {
  Owed owed = Owed::kOnce;
  /// Faults have ended, and everything has come to rest.
  bool at_rest = false;
  /// Touches that are known to have been made, and those that may have been, without a row of their own.
  std::map<std::string, std::set<std::int64_t>> acknowledged;
  std::map<std::string, std::set<std::int64_t>> possible;
};
void check(Reader& reader, const CheckOptions& options, const std::function<void(std::string)>& wrong);

}  // namespace perdure::sim::debouncing
