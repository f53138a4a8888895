#pragma once

#include <lmdb.h>

#include <memory>
#include <string>

#include "perdure/error.h"
#include "perdure/store.h"
#include "store/lmdb/bulletin.h"

namespace perdure::lmdb {

/// Rows that perdure keeps for itself in every LMDB store.
inline constexpr BytesView kFormatKey =
    "\xff"
    "format";
inline constexpr BytesView kVersionKey =
    "\xff"
    "version";
inline constexpr std::uint64_t kFormat = 1;

inline MDB_val to_val(BytesView bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

inline BytesView to_view(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// An opened LMDB store directory: data.mdb and lock.mdb of LMDB, the bulletin, and FORMAT, a line of text for people.
struct Environment {
  std::string directory;
  /// Absolute path of the data file, for messages.
  std::string path;
  std::unique_ptr<Bulletin> bulletin;
  MDB_env* env = nullptr;
  MDB_dbi rows = 0;
  /// There was no row, not even one with the format.
  bool was_new = false;

  Environment() = default;
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

/// Opens or makes the store in `directory`: checks before it trusts, and syncs what a process that died may have left
/// unsynced, before anybody can read it. `life` as for Bulletin::join.
Result<std::unique_ptr<Environment>> open_environment(const std::string& directory, const StoreOptions& options,
                                                      std::uint64_t life);

}  // namespace perdure::lmdb
