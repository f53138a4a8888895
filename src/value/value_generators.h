// Random values, for the tests of this folder and of those below it.
#pragma once

#include <rapidcheck.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "perdure/value.h"

namespace perdure::random {

/// From 0 to `end` - 1, each as likely as the others from the first case on.
inline std::size_t pick(std::size_t end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, end));
}

/// Few keys, so that values which are made apart have some in common.
inline std::string any_key() {
  return *rc::gen::element<std::string>("", "a", "b", "c", "id", "é", std::string("a\0b", 3), std::string(2, '\0'));
}

/// Neither a list nor a map, and not often the same.
inline Value any_scalar() {
  switch (pick(8)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<double>();
    case 4:
      return any_key();
    case 5:
      return Blob{*rc::gen::arbitrary<std::string>()};
    default:
      return pick(3);
  }
}

Value any_value(int depth);

/// A list of maps with distinct ids: what the state codec keeps one row an item of.
inline Value any_items(int depth) {
  Value::List list;
  std::array<const char*, 5> ids = {"x", "y", "z", "w", "v"};
  for (auto rest = ids.size(); rest > 1; --rest) std::swap(ids[rest - 1], ids[pick(rest)]);
  for (const char* id : ids) {
    if (*rc::gen::arbitrary<bool>()) continue;
    Value item = Value::Map{{"id", id}};
    if (*rc::gen::arbitrary<bool>()) item["n"] = any_value(depth - 1);
    list.push_back(std::move(item));
  }
  return list;
}

inline Value any_value(int depth) {
  std::size_t kind = depth <= 0 ? 0 : pick(8);
  if (kind < 3) return any_scalar();
  if (kind == 3) return any_items(depth);
  std::size_t size = pick(4);
  if (kind == 4) {
    Value::List list;
    for (; size > 0; --size) list.push_back(any_value(depth - 1));
    return list;
  }
  Value::Map map;
  for (; size > 0; --size) map.insert_or_assign(any_key(), any_value(depth - 1));
  return map;
}

}  // namespace perdure::random
