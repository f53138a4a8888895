#include "sim/workload.h"

#include <map>

#include "base/assert.h"

namespace perdure::sim {
namespace {

/// By name, since the order in which they register is the linker's.
std::map<std::string_view, WorkloadInfo>& registry() {
  static std::map<std::string_view, WorkloadInfo> the_workloads;
  return the_workloads;
}

}  // namespace

RegisterWorkload::RegisterWorkload(WorkloadInfo info) {
  std::string_view name = info.name;
  check(registry().emplace(name, std::move(info)).second, "two workloads of one name");
}

const WorkloadInfo* find_workload(std::string_view name) {
  auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

std::string workload_names() {
  std::string names;
  for (const auto& [name, info] : registry()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace perdure::sim
