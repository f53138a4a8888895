#include "transcript/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/rfc3339.h"
#include "perdure/value.h"
#include "tuple/utf8.h"

namespace perdure::transcript {
namespace {

constexpr std::size_t kBatchHooks = 100, kBatchBytes = std::size_t{8} << 20;
// A hook of 8 MiB takes six times as much if each byte of it has to be escaped.
constexpr std::size_t kLineMax = std::size_t{64} << 20;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

std::unexpected<Error> failed(const std::string& what, const std::string& path, int number) {
  ErrorCode code = number == ENOSPC || number == EDQUOT ? ErrorCode::kStoreFull : ErrorCode::kUnavailable;
  return fail(code, "cannot " + what + " " + path + ": " + std::strerror(number));
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Of what is in a file. The two do not keep each other out: a hook that opened the spool before it was moved has to
/// find out at once, not when all of it is taken.
enum class Lock {
  kToWrite,  ///< Waited for.
  kToMove,   ///< The same one, but not waited for: a hook that was stopped has it for as long as it stands.
  kToTake,
};

int try_lock(int fd, Lock lock) {
  if (lock != Lock::kToTake) return ::flock(fd, LOCK_EX | (lock == Lock::kToMove ? LOCK_NB : 0));
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole);
}

struct Opened {
  enum class State {
    kLocked,
    kMissing,  ///< There is none, and the flags do not make one.
    kBusy,     ///< Another daemon takes it, or a hook writes to it that is not waited for.
  };
  State state = State::kLocked;
  File file = File(-1);
  std::uint64_t size = 0;
};

bool is_own_file(const struct stat& found) {
  return S_ISREG(found.st_mode) && found.st_uid == ::geteuid();
}

/// Whether `path` names what no hook and no daemon of this user has put there: it is not even opened.
bool is_strange(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 && !is_own_file(found);
}

/// The file that `path` names, locked until it is closed.
Result<Opened> open_locked(const std::string& path, Lock lock, int flags = O_RDWR) {
  while (true) {
    // Neither a link that somebody else has put there is followed, nor the other end of a pipe waited for.
    File file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (file.fd() < 0 && errno == ENOENT && (flags & O_CREAT) == 0) return Opened{Opened::State::kMissing};
    if (file.fd() < 0) return failed("open", path, errno);
    while (try_lock(file.fd(), lock) != 0) {
      if (errno == EAGAIN || errno == EACCES) return Opened{Opened::State::kBusy};
      if (errno != EINTR) return failed("lock", path, errno);
    }
    struct stat opened{}, named{};
    if (::fstat(file.fd(), &opened) != 0) return failed("open", path, errno);
    if (!is_own_file(opened)) return fail(ErrorCode::kUnavailable, path + " is not a file of this user");
    // Whoever had the lock before may have moved the file away, or taken all of it: the next one of that name counts.
    bool same = ::lstat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (same) return Opened{Opened::State::kLocked, std::move(file), static_cast<std::uint64_t>(opened.st_size)};
  }
}

std::string line_of(const Spooled& spooled) {
  bool is_text = !find_invalid_utf8(spooled.hook);
  Value::Map line = {{"id", spooled.id},
                     {"space", spooled.space},
                     {"at", format_rfc3339(spooled.at)},
                     {"hook", is_text ? Value(spooled.hook) : Value(Blob{spooled.hook})}};
  return Value(std::move(line)).to_json() + "\n";
}

std::optional<Spooled> read_line(std::string_view line) {
  auto value = Value::from_json(line);
  if (!value) return {};
  auto text = [&](std::string_view name) -> const std::string* {
    const Value* found = value->find(name);
    return found == nullptr ? nullptr : found->as_text();
  };
  const std::string *id = text("id"), *space = text("space"), *at = text("at"), *hook = text("hook");
  const Value* raw = value->find("hook");
  const Blob* bytes = raw == nullptr ? nullptr : raw->as_bytes();
  if (id == nullptr || space == nullptr || at == nullptr || (hook == nullptr && bytes == nullptr)) return {};
  auto time = parse_rfc3339(*at);
  if (!time) return {};
  return Spooled{*id, *space, hook != nullptr ? *hook : bytes->bytes, *time};
}

/// Lines of a file, one after the other.
class Lines {
 public:
  enum class Got { kLine, kUnreadable, kEnd };

  explicit Lines(int fd) : fd_(fd) {}

  /// What comes next; `line` lives until the next call. Unreadable: too long, or without its newline at the end.
  Result<Got> next(std::string_view& line) {
    bool too_long = false;
    for (std::size_t searched = begin_;;) {
      std::size_t end = buffer_.find('\n', searched);
      if (end != std::string::npos) {
        line = std::string_view(buffer_).substr(begin_, end - begin_);
        begin_ = end + 1;
        return too_long ? Got::kUnreadable : Got::kLine;
      }
      buffer_.erase(0, std::exchange(begin_, 0));
      too_long = too_long || buffer_.size() > kLineMax;
      if (too_long) buffer_.clear();
      searched = buffer_.size();
      auto more = read_more();
      if (!more) return std::unexpected(std::move(more.error()));
      if (!*more) return std::exchange(buffer_, {}).empty() && !too_long ? Got::kEnd : Got::kUnreadable;
    }
  }

 private:
  Result<bool> read_more() {
    std::size_t had = buffer_.size();
    buffer_.resize(had + kReadBytes);
    ssize_t got = -1;
    do {
      got = ::read(fd_, buffer_.data() + had, kReadBytes);
    } while (got < 0 && errno == EINTR);
    int number = errno;
    buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) return failed("read", "the spool", number);
    return got > 0;
  }

  int fd_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< Of what has not been given out.
};

Result<void> hand_over(std::vector<Spooled>& batch, const TakeSpooled& take, SpoolReport& report) {
  if (batch.empty()) return {};
  if (auto taken = take(batch); !taken) return taken;
  report.taken += batch.size();
  batch.clear();
  return {};
}

/// Whether what is behind a file may be taken now.
enum class Behind { kMayBeTaken, kHasToWait };

/// All of a file that was moved aside, and then the file itself.
Result<Behind> take_file(const std::string& path, const TakeSpooled& take, SpoolReport& report) {
  if (is_strange(path)) {
    report.refused.push_back(path);
    return Behind::kMayBeTaken;
  }
  auto file = open_locked(path, Lock::kToTake);
  if (!file) return std::unexpected(std::move(file.error()));
  // Another daemon was faster, or is at it.
  if (file->state == Opened::State::kMissing) return Behind::kMayBeTaken;
  if (file->state == Opened::State::kBusy) return Behind::kHasToWait;
  Lines lines(file->file.fd());
  std::vector<Spooled> batch;
  std::size_t bytes = 0;
  while (true) {
    std::string_view line;
    auto got = lines.next(line);
    if (!got) return std::unexpected(std::move(got.error()));
    if (*got == Lines::Got::kEnd) break;
    auto spooled = *got == Lines::Got::kLine ? read_line(line) : std::nullopt;
    if (!spooled) {
      ++report.unreadable;
      continue;
    }
    bytes += spooled->hook.size();
    batch.push_back(std::move(*spooled));
    if (batch.size() < kBatchHooks && bytes < kBatchBytes) continue;
    if (auto taken = hand_over(batch, take, report); !taken) return std::unexpected(std::move(taken.error()));
    bytes = 0;
  }
  if (auto taken = hand_over(batch, take, report); !taken) return std::unexpected(std::move(taken.error()));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("delete", path, errno);
  return Behind::kMayBeTaken;
}

/// The numbers N of the files `path`.taking.N, in order.
Result<std::vector<std::uint64_t>> files_aside(const std::string& path) {
  std::filesystem::path whole(path), directory = whole.parent_path();
  std::string prefix = whole.filename().string() + ".taking.";
  std::vector<std::uint64_t> numbers;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory.empty() ? "." : directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
    std::uint64_t number = 0;
    auto read = std::from_chars(begin, end, number);
    if (read.ec == std::errc() && read.ptr == end) numbers.push_back(number);
  }
  if (error && error != std::errc::no_such_file_or_directory) return failed("list", directory.string(), error.value());
  std::ranges::sort(numbers);
  return numbers;
}

std::string aside(const std::string& path, std::uint64_t number) {
  return path + ".taking." + std::to_string(number);
}

std::uint64_t bytes_aside(const std::string& path, const std::vector<std::uint64_t>& numbers) {
  std::uint64_t bytes = 0;
  struct stat found{};
  for (std::uint64_t number : numbers)
    if (::lstat(aside(path, number).c_str(), &found) == 0 && is_own_file(found))
      bytes += static_cast<std::uint64_t>(found.st_size);
  return bytes;
}

/// Gives the spool, if there is one, the number behind all that are left. It stays where it is if a hook writes to it
/// right now. It stays and grows no more if so much is aside already that hooks would fill the disk while nothing can
/// be taken.
Result<void> move_aside(const std::string& path, SpoolReport& report) {
  if (is_strange(path)) {
    report.refused.push_back(path);
    return {};
  }
  auto spool = open_locked(path, Lock::kToMove);
  if (!spool) return std::unexpected(std::move(spool.error()));
  if (spool->state != Opened::State::kLocked) return {};
  // Under the lock: no other daemon gives away a number meanwhile.
  auto left = files_aside(path);
  if (!left) return std::unexpected(std::move(left.error()));
  if (!left->empty() && bytes_aside(path, *left) + spool->size > kSpoolBytesMax) return {};
  std::uint64_t number = left->empty() ? 1 : left->back() + 1;
  if (::rename(path.c_str(), aside(path, number).c_str()) != 0) return failed("move", path, errno);
  return {};
}

}  // namespace

Result<void> append_to_spool(const std::string& path, const Spooled& spooled) {
  std::string line = line_of(spooled);
  auto spool = open_locked(path, Lock::kToWrite, O_RDWR | O_CREAT | O_APPEND);
  if (!spool) return std::unexpected(std::move(spool.error()));
  int fd = spool->file.fd();
  std::uint64_t size = spool->size;
  // The part of a line that was left by a writer that died must not spoil this one.
  char last = '\n';
  if (size > 0 && ::pread(fd, &last, 1, static_cast<off_t>(size - 1)) == 1 && last != '\n') line.insert(0, "\n");
  if (size + line.size() > kSpoolBytesMax) return fail(ErrorCode::kStoreFull, path + " has grown to its limit");
  ssize_t written = ::write(fd, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  int number = written < 0 ? errno : ENOSPC;
  (void)!::ftruncate(fd, static_cast<off_t>(size));
  return failed("write", path, number);
}

Result<SpoolReport> take_spool(const std::string& path, const TakeSpooled& take) {
  SpoolReport report;
  if (auto moved = move_aside(path, report); !moved) return std::unexpected(std::move(moved.error()));
  auto seen = files_aside(path);
  if (!seen) return std::unexpected(std::move(seen.error()));
  if (seen->empty()) return report;
  // Once more: what others move while one reads the directory may be seen without what they moved before it.
  auto numbers = files_aside(path);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  for (std::uint64_t number : *numbers) {
    if (number > seen->back()) break;
    auto behind = take_file(aside(path, number), take, report);
    if (!behind) return std::unexpected(std::move(behind.error()));
    if (*behind == Behind::kHasToWait) break;
  }
  return report;
}

}  // namespace perdure::transcript
