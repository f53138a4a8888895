// The full check of an LMDB file, for `perdure verify`: every page of one snapshot, read by pread with bounds checks.
//
// LMDB trusts its file, so a damaged page ends in a crash or, worse, in rows that silently are not found. The walk
// reads the file behind LMDB's back instead, and names what is wrong:
//   - each page is within the file, says its own number, and has a sound header and sound nodes;
//   - keys rise within each page and stay between the separators above them, so every row can be found;
//   - all leaves are at one depth, and rows and pages are as many as the meta says;
//   - each page belongs to one tree, one overflow run or the freelist, and to one only.
// What a value contains is up to the caller's visitor, which checks its own checksums. Bytes that nothing refers to
// (free pages, gaps between nodes and page headers) are not checked, as LMDB does not look at them either.
//
//   { mdb_txn_begin(MDB_RDONLY); read_meta(fd, path, mdb_txn_id(txn)); walk(...); mdb_txn_abort }
// The read transaction keeps the snapshot's pages from being reused, so others may commit during the walk. Without
// one, and with writers about, the findings mean nothing. A caller that keeps writers out needs no transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "store/lmdb/file_check.h"
#include "store/lmdb/page_format.h"

namespace perdure::lmdb {

/// Called for each row of the main tree, in key order unless that is damaged. Returns what is wrong with it, if
/// something is: the text is reported behind the row's page and key. Both views end with the call.
using RowVisitor = std::function<std::optional<std::string>(BytesView key, BytesView value)>;

/// Pages accounted for, of those that there are. `done` reaches `total` in a sound file.
using WalkProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct WalkOptions {
  std::size_t damage_max = 100;  ///< Findings that are kept in words; all are counted.
  /// A row with a larger value is reported and not visited, so that a damaged size cannot exhaust memory.
  std::uint64_t value_bytes_max = 64 * 1024 * 1024;
  WalkProgress progress = {};  ///< May be empty. Called every few hundred pages and at the end.
};

struct WalkReport {
  std::uint64_t rows = 0;            ///< Of the main tree, as met.
  std::uint64_t tree_pages = 0;      ///< Pages that hold the main tree and its values.
  std::uint64_t freelist_pages = 0;  ///< Pages that hold the freelist itself.
  std::uint64_t free_pages = 0;      ///< Pages that the freelist lists.
  std::uint64_t lost_pages = 0;      ///< Neither free nor in use: harmless, though only a copy wins them back.
  std::uint64_t damage_count = 0;    ///< Of all findings.
  std::vector<std::string> damage;   ///< The first of them: "page 17: key 3 is not above key 2".

  bool sound() const { return damage_count == 0; }
};

/// Walks the snapshot `meta` of the data.mdb behind `fd`. Takes one page of memory a level, one value, and two bits for
/// each page of the file. Damage, a block that cannot be read included, is no error but in the report.
/// Errors: kStoreFailed (the file's size cannot be learned), kInvalidArgument (`meta` is none of read_meta's).
/// Crash: changes nothing.
Result<WalkReport> walk(int fd, BytesView path, const Meta& meta, const RowVisitor& visit, WalkOptions options = {});

}  // namespace perdure::lmdb
