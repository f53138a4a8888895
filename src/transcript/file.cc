#include "transcript/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "perdure/bytes.h"

namespace perdure::transcript {
namespace {

std::string quoted(const std::string& path) {
  return "the transcript " + printable(path, 300);
}

std::unexpected<Error> from_errno(const std::string& path, int problem) {
  switch (problem) {
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorCode::kNotFound, quoted(path) + " does not exist");
    case EACCES:
    case EPERM:
      return fail(
          ErrorCode::kPermissionDenied,
          quoted(path) + " may not be read by this process; change its permissions or those of its directories");
    case ELOOP:
      return fail(ErrorCode::kInvalidArgument,
                  quoted(path) + " is a loop of symbolic links; name the file that it should lead to");
    case ENAMETOOLONG:
      return fail(ErrorCode::kInvalidArgument, quoted(path) + " has too long a name; move it to a shorter path");
    default:
      return fail(ErrorCode::kUnavailable,
                  quoted(path) + " cannot be looked at: " + std::generic_category().message(problem));
  }
}

/// Without links, dots and double slashes; nothing if that fails, and errno says why.
std::optional<std::string> resolve(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return std::nullopt;
  return std::string(resolved.get());
}

/// A root may be on a file system that does not answer: it is not looked at for what another one has.
class Roots {
 public:
  explicit Roots(const std::vector<std::string>& roots) {
    for (const std::string& root : roots)
      if (!root.empty()) roots_.push_back(root);
  }
  bool has(const std::string& resolved) const {
    auto is_below = [&](const std::string& root) {
      return resolved.starts_with(root.back() == '/' ? root : root + '/');
    };
    // What is resolved has no links in it, so a root that it begins with is what it says.
    if (std::ranges::any_of(roots_, is_below)) return true;
    return std::ranges::any_of(roots_, [&](const std::string& root) {
      auto leads_to = resolve(root);
      return leads_to && is_below(*leads_to);
    });
  }
  bool has_directory(const std::string& resolved) const { return has(resolved + "/"); }
  std::unexpected<Error> refuse(const std::string& path) const {
    std::string list;
    for (const std::string& root : roots_) list += (list.empty() ? "" : ", ") + printable(root, 300);
    return fail(ErrorCode::kPermissionDenied,
                quoted(path) + " is outside the directories that transcripts may be in (" +
                    (list.empty() ? "there are none" : list) + "); allow its directory as a root");
  }

 private:
  std::vector<std::string> roots_;
};

Result<void> check_regular(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return {};
  std::string_view what = S_ISDIR(mode)                    ? "a directory"
                          : S_ISFIFO(mode)                 ? "a pipe"
                          : S_ISSOCK(mode)                 ? "a socket"
                          : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                           : "not what it was a moment ago";
  return fail(ErrorCode::kInvalidArgument,
              quoted(path) + " is " + std::string(what) + "; name the regular file that the session writes");
}

/// Where an open file is now.
std::optional<std::string> place_of(int fd) {
  char place[PATH_MAX];
  ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), place, sizeof place);
  if (size < 0) return std::nullopt;
  return std::string(place, static_cast<std::size_t>(size));
}

/// The directory above, as it was written.
std::string above(const std::string& path) {
  std::size_t end = path.find_last_not_of('/');
  std::size_t slash = path.rfind('/', end);
  return slash == 0 || slash == path.npos ? "/" : path.substr(0, slash);
}

bool has_dots(std::string_view rest) {
  return ("/" + std::string(rest) + "/").find("/../") != std::string::npos;
}

/// `path` does not exist: what would have to be made for it must be made below a root.
Result<void> check_missing(const std::string& path, const Roots& roots) {
  std::string missing = path;
  while (true) {
    struct stat info{};
    std::string bare = missing.substr(0, missing.find_last_not_of('/') + 1);
    if (::lstat(bare.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
      return fail(ErrorCode::kInvalidArgument,
                  quoted(path) + " is a symbolic link to nothing; name the file that it should lead to");
    std::string directory = above(missing);
    auto resolved = resolve(directory);
    if (!resolved && errno != ENOENT) return from_errno(path, errno);
    if (!resolved) {
      missing = directory;
      continue;
    }
    // What dots lead to is not known before the rest is there.
    if (!roots.has_directory(*resolved) || has_dots(path.substr(directory.size()))) return roots.refuse(path);
    if (::stat(resolved->c_str(), &info) != 0) return from_errno(path, errno);
    if (!S_ISDIR(info.st_mode)) return from_errno(path, ENOTDIR);
    return {};
  }
}

}  // namespace

TranscriptFile::~TranscriptFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> check_path_text(const std::string& path) {
  constexpr std::string_view kAdvice = "; give the absolute path of a file";
  auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::kInvalidArgument, "the path of a transcript " + std::string(what) + std::string(kAdvice));
  };
  if (path.empty()) return refuse("is empty");
  if (path.size() > kPathBytesMax) return refuse("is longer than " + std::to_string(kPathBytesMax) + " bytes");
  if (path.find('\0') != path.npos) return refuse("has a NUL byte in it");
  if (path[0] != '/') return refuse("is not absolute: " + printable(path));
  return {};
}

Result<TranscriptFile> open_transcript(const std::string& path, const std::vector<std::string>& allowed) {
  if (auto good = check_path_text(path); !good) return std::unexpected(good.error());
  Roots roots(allowed);
  auto resolved = resolve(path);
  if (!resolved) return from_errno(path, errno);
  if (!roots.has(*resolved)) return roots.refuse(path);
  // This takes hold of whatever is there without opening it. From here on nobody can put something else in its place.
  TranscriptFile held(::open(resolved->c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (held.fd() < 0) return from_errno(path, errno);
  struct stat info{};
  if (::fstat(held.fd(), &info) != 0) return from_errno(path, errno);
  if (auto good = check_regular(path, info.st_mode); !good) return std::unexpected(good.error());
  auto place = place_of(held.fd());
  if (!place) return fail(ErrorCode::kUnavailable, quoted(path) + " cannot be checked without /proc; mount it");
  if (!roots.has(*place)) return roots.refuse(path);
  std::string same = "/proc/self/fd/" + std::to_string(held.fd());
  TranscriptFile file(::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.fd() < 0) return from_errno(path, errno);
  return file;
}

Result<void> check_path(const std::string& path, const std::vector<std::string>& allowed) {
  if (auto good = check_path_text(path); !good) return good;
  Roots roots(allowed);
  auto resolved = resolve(path);
  if (!resolved && errno == ENOENT) return check_missing(path, roots);
  if (!resolved) return from_errno(path, errno);
  if (!roots.has(*resolved)) return roots.refuse(path);
  struct stat info{};
  if (::stat(resolved->c_str(), &info) != 0) return from_errno(path, errno);
  if (auto good = check_regular(path, info.st_mode); !good) return good;
  if (::faccessat(AT_FDCWD, resolved->c_str(), R_OK, AT_EACCESS) != 0) return from_errno(path, errno);
  return {};
}

}  // namespace perdure::transcript
