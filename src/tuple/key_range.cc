#include "perdure/key_range.h"

#include <utility>

namespace perdure {

KeyRange prefix_range(BytesView prefix) {
  Bytes end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {Bytes(prefix), std::move(end)};
}

KeyRange single_key(BytesView key) {
  KeyRange range{Bytes(key), Bytes(key)};
  range.end.push_back('\0');
  return range;
}

}  // namespace perdure
