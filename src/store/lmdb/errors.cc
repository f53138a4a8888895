#include "store/lmdb/errors.h"

#include <cerrno>
#include <cstring>

namespace perdure::lmdb {

Error lmdb_error(int code, const std::string& what) {
  std::string message = what + ": " + mdb_strerror(code);
  switch (code) {
    case MDB_MAP_FULL:
      return {ErrorCode::kStoreFull, what + ": the reserved map is full; reopen the store with a larger map_bytes"};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
      return {ErrorCode::kCorrupt, message + "; run verify, and restore from a backup"};
    case MDB_VERSION_MISMATCH:
      return {ErrorCode::kUnsupportedFormat, message + "; it was written by another version of LMDB"};
    case MDB_TXN_FULL:
      return {ErrorCode::kTooLarge, what + ": the transaction changes too many pages; split it"};
    case MDB_READERS_FULL:
      return {ErrorCode::kUnavailable, what + ": too many transactions are reading at once; try again"};
    case MDB_PANIC:
      return {ErrorCode::kStoreFailed, message};
    default:
      return errno_error(code, what);
  }
}

Error errno_error(int code, const std::string& what) {
  std::string message = what + ": " + std::strerror(code);
  switch (code) {
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kPermissionDenied, message + "; give this user the right to read and write there"};
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::kStoreFull, message + "; make room on that disk"};
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
      return {ErrorCode::kUnavailable, message + "; that file system cannot lock files, put the store on a local disk"};
    case ENOTDIR:
    case EEXIST:
    case ENAMETOOLONG:
    case ELOOP:
      return {ErrorCode::kInvalidArgument, message};
    case ENOENT:
      return {ErrorCode::kNotFound, message};
    case ENOMEM:
      return {ErrorCode::kUnavailable, message + "; lower map_bytes or raise the limit on address space"};
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return {ErrorCode::kUnavailable, message};
    default:
      return {ErrorCode::kStoreFailed, message};
  }
}

}  // namespace perdure::lmdb
