// The log that workers write while their power is cut, and what must hold of it afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "perdure/store.h"

namespace perdure::e2e {

inline constexpr BytesView kLogEnd = "log-end";
inline constexpr BytesView kLogTotal = "log-total";
inline constexpr int kCopies = 3;

Bytes log_key(std::int64_t place);

/// One transaction of the log.
struct LogEntry {
  int process = 0;
  int chain = 0;
  std::int64_t n = 0;

  Bytes encode() const;
  /// One of the keys that hold the chain's newest n.
  Bytes chain_key(int copy) const;
  bool operator==(const LogEntry&) const = default;
};

/// What workers were told, over all cuts.
struct Acknowledged {
  std::map<std::int64_t, std::string> entries;  ///< By place.
  std::int64_t end_seen = 0;                    ///< The end of the log that a reader was shown.
  std::vector<std::string> contradictions;

  /// Takes in "ack PLACE PROCESS CHAIN N" or "end PLACE".
  void hear(const std::string& event);
};

/// What is wrong with the log in `store`, one sentence each; empty if nothing is:
/// S2, everything that was acknowledged or shown is there; S3, no place below the end is empty and the n of each chain
/// rise by one; S4, the copies, the counter and the end agree.
std::vector<std::string> check_log(Store& store, const Acknowledged& acknowledged);

}  // namespace perdure::e2e
