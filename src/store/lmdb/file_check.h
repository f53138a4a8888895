// The check that comes before LMDB maps a file: is it one of ours, and is all of it there?
//
// LMDB trusts its file. It takes the number of pages from the newest meta and reads them through a map, so that a file
// that was cut short (a full disk while copying, a broken restore) ends the process with SIGBUS at some later read.
// Here the metas are read by pread and the file's size is compared with them.
//
// A sound file can be shorter than its meta says: pages that a transaction allocated and gave back before its commit
// are counted and listed as free, but never written. If they are the last ones, the file ends before them. So if pages
// are missing, the freelist decides.
#pragma once

#include <cstdint>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "store/lmdb/page_format.h"

namespace perdure::lmdb {

enum class FileState {
  kNew,       ///< Empty: LMDB will write the first metas.
  kComplete,  ///< All pages are there.
  kShort,     ///< Sound, but free pages at the end are missing: extend it with ftruncate to `complete_bytes`.
};

struct FileCheck {
  FileState state = FileState::kNew;
  std::uint64_t complete_bytes = 0;  ///< Where the last page ends, by the newest meta.
};

/// Checks the data.mdb behind `fd`, which needs to be readable only; `path` is for messages. Quick: two pages, and the
/// freelist if the file is short. Other processes may commit meanwhile, but none may be creating the file.
/// Errors: kCorrupt (not an LMDB file, a damaged meta, truncated), kUnsupportedFormat (another version of LMDB's
/// format), kUnavailable (commits came faster than the freelist could be read), kStoreFailed (reading failed).
/// Crash: changes nothing.
Result<FileCheck> check_file_size(int fd, BytesView path);

/// The snapshot of transaction `txnid`, for page_walk.h. To be called right after an LMDB read transaction was begun
/// (`txnid` is its mdb_txn_id): two later commits overwrite the meta. Then the error is kUnavailable, and the caller
/// begins another read transaction. Other errors are those of check_file_size.
Result<Meta> read_meta(int fd, BytesView path, std::uint64_t txnid);

}  // namespace perdure::lmdb
