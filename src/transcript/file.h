// Opening a transcript at a path that somebody else has named.
//
// A hook may say any path, and whoever can send one need not be allowed to read all that the daemon can. So only
// regular files below the allowed roots are opened, wherever symbolic links lead; and since links can be changed at any
// moment, what counts is the file that is open and not the path that was checked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "perdure/error.h"

namespace perdure::transcript {

/// An open file. Movable; closes it at the end.
class TranscriptFile {
 public:
  /// Owns `fd` from now on.
  explicit TranscriptFile(int fd) : fd_(fd) {}
  TranscriptFile(TranscriptFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TranscriptFile& operator=(TranscriptFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TranscriptFile();

  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Longer paths are refused.
inline constexpr std::size_t kPathBytesMax = 4096;

/// Whether it may be a path at all, without a look at the file system. Errors: kInvalidArgument.
Result<void> check_path_text(const std::string& path);

/// Opens for reading the regular file that `path` leads to, if it is below one of `roots`; both are resolved, and roots
/// that do not exist are left out. Nothing else is ever opened, so a device or a pipe does not notice that it was asked
/// for. Errors: kNotFound, kPermissionDenied for what is outside or cannot be read, kInvalidArgument for what is no
/// absolute path to a regular file, kUnavailable if the system has a problem of its own.
Result<TranscriptFile> open_transcript(const std::string& path, const std::vector<std::string>& roots);

/// The same checks without opening, for a path whose file may not exist yet: then the nearest directory above it that
/// exists must be below a root, or be one.
Result<void> check_path(const std::string& path, const std::vector<std::string>& roots);

}  // namespace perdure::transcript
