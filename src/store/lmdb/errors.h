#pragma once

#include <lmdb.h>

#include <string>

#include "perdure/error.h"

namespace perdure::lmdb {

/// What a failed call of LMDB or the system means for the caller. `what` says what was being done, and to which file.
Error lmdb_error(int code, const std::string& what);

/// For `return errno_error("open", path)` after a failed system call.
Error errno_error(int code, const std::string& what);

}  // namespace perdure::lmdb
