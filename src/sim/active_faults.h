#pragma once

#include <array>
#include <vector>

#include "sim/faults.h"
#include "sim/streams.h"

namespace perdure::sim {

/// The faults that last for a while and are there now; and how often each class has struck.
class ActiveFaults {
 public:
  explicit ActiveFaults(std::uint64_t seed) : random_(stream(seed, "faults")) {}

  void begin(const FaultEvent& event) { now_[index(event.kind)].push_back(event); }
  void end(const FaultEvent& event);
  /// How bad it is for the node; nothing if it is not there.
  std::optional<std::int64_t> degree(FaultClass kind, int node) const;
  /// Whether a fault that strikes some of many (commits, bells, reads) strikes this one. Counts it.
  bool strikes(FaultClass kind, int node);
  void count(FaultClass kind) { ++counts_[index(kind)]; }
  const FaultCounts& counts() const { return counts_; }

 private:
  static std::size_t index(FaultClass kind) { return static_cast<std::size_t>(kind); }

  Random random_;
  std::array<std::vector<FaultEvent>, kFaultClasses> now_;
  FaultCounts counts_{};
};

}  // namespace perdure::sim
