// What must hold of a partition, whoever appended to it: for the simulation, and for processes that are killed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "perdure/sequence.h"

namespace perdure::sim::sequencing {

inline const std::string kPartition = "p";
inline const std::string kType = "shop";
inline const std::map<std::string, Number> kFloors = {{"invoice", 1}, {"order", 100}, {"refund", 7}};

/// An event that somebody was told of: what he knows of it.
struct Told {
  std::uint64_t workspace;
  std::vector<std::pair<std::string, Number>> numbers;
};

struct Known {
  std::string partition = kPartition;
  std::map<LogOffset, Told> told = {};
  /// The tokens of all owners.
  std::vector<Token> tokens = {};
  /// Nobody has anything left to store.
  bool at_rest = false;
};

/// The payload of an entry: who wrote it, by the token of an owner; nothing for one that was appended.
Value payload_of(const Token& token);

/// N1, N2: the offsets of the log and the numbers of each workspace and sequence are consecutive, from the initial
/// values on; each is there once. N3: what somebody was told is there as he was told it. N4: no owner has written after
/// a later one took over. And the stored numbers are not behind the stored offset, nor ahead of the log.
/// Needs no system access.
void check(Reader& reader, const Known& known, const std::function<void(std::string)>& report);

}  // namespace perdure::sim::sequencing
