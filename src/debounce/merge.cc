#include "debounce/merge.h"

namespace perdure::debounce {

Value merge_patch(Value target, Value patch) {
  Value::Map* changes = patch.as_map();
  if (changes == nullptr) return patch;
  if (!target.is_map()) target = Value::Map();
  Value::Map& entries = *target.as_map();
  for (auto& [name, change] : *changes) {
    if (change.is_null()) {
      entries.erase(name);
      continue;
    }
    Value& entry = entries[name];
    entry = merge_patch(std::move(entry), std::move(change));
  }
  return target;
}

}  // namespace perdure::debounce
