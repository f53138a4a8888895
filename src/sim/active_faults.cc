#include "sim/active_faults.h"

#include <algorithm>

namespace perdure::sim {

void ActiveFaults::end(const FaultEvent& event) {
  auto& events = now_[index(event.kind)];
  if (auto found = std::ranges::find(events, event); found != events.end()) events.erase(found);
}

std::optional<std::int64_t> ActiveFaults::degree(FaultClass kind, int node) const {
  std::optional<std::int64_t> worst;
  for (const FaultEvent& event : now_[index(kind)])
    if (event.node == kEveryNode || event.node == node) worst = std::max(worst.value_or(event.degree), event.degree);
  return worst;
}

bool ActiveFaults::strikes(FaultClass kind, int node) {
  if (now_[index(kind)].empty()) return false;
  auto permille = degree(kind, node);
  if (!permille || !chance(random_, static_cast<std::uint64_t>(*permille))) return false;
  count(kind);
  return true;
}

}  // namespace perdure::sim
