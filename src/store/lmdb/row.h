// A row as LMDB holds it: eight bytes of version, four of checksum, then the value.
#pragma once

#include <cstring>

#include "base/endian.h"
#include "perdure/bytes.h"
#include "perdure/version.h"
#include "store/row_checksum.h"

namespace perdure::lmdb {

inline constexpr std::size_t kRowHeader = 12;

/// Writes kRowHeader + value.size() bytes to `out`.
inline void encode_row(char* out, BytesView key, Version version, BytesView value) {
  store_little(out, version.number);
  store_little(out + 8, row_checksum(key, version, value));
  std::memcpy(out + kRowHeader, value.data(), value.size());
}

inline Version row_version(BytesView row) {
  return Version{load_little<std::uint64_t>(row.data())};
}

inline BytesView row_value(BytesView row) {
  return row.substr(kRowHeader);
}

inline bool row_is_whole(BytesView key, BytesView row) {
  if (row.size() < kRowHeader) return false;
  return load_little<std::uint32_t>(row.data() + 8) == row_checksum(key, row_version(row), row_value(row));
}

}  // namespace perdure::lmdb
