#include "transcript/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
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

struct Locked {
  File file;
  std::uint64_t size;
};

/// The file that `path` names, under its lock until it is closed; nothing if there is none and `flags` do not make one.
Result<std::optional<Locked>> open_locked(const std::string& path, int flags) {
  while (true) {
    // Neither a link that somebody else has put there is followed, nor the other end of a pipe waited for.
    File file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (file.fd() < 0 && errno == ENOENT && (flags & O_CREAT) == 0) return std::nullopt;
    if (file.fd() < 0) return failed("open", path, errno);
    while (::flock(file.fd(), LOCK_EX) != 0)
      if (errno != EINTR) return failed("lock", path, errno);
    struct stat opened{}, named{};
    if (::fstat(file.fd(), &opened) != 0) return failed("open", path, errno);
    if (!S_ISREG(opened.st_mode)) return fail(ErrorCode::kUnavailable, path + " is not a file");
    // Whoever had the lock before may have moved the file away: then it is read, or was, and the next one counts.
    bool same = ::lstat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (same) return Locked{std::move(file), static_cast<std::uint64_t>(opened.st_size)};
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

/// All of a file that was moved aside, and then the file itself.
Result<void> take_file(const std::string& path, const TakeSpooled& take, SpoolReport& report) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd() < 0 && errno == ENOENT) return {};  // Another daemon of this directory was faster.
  if (file.fd() < 0) return failed("open", path, errno);
  Lines lines(file.fd());
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
    if (auto taken = hand_over(batch, take, report); !taken) return taken;
    bytes = 0;
  }
  if (auto taken = hand_over(batch, take, report); !taken) return taken;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("delete", path, errno);
  return {};
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

/// The number that the spool was moved to, `number` or a later one; nothing if there is no spool.
Result<std::optional<std::uint64_t>> move_aside(const std::string& path, std::uint64_t number) {
  auto locked = open_locked(path, O_RDWR);
  if (!locked) return std::unexpected(std::move(locked.error()));
  if (!*locked) return std::nullopt;
  // Another daemon of this directory may have taken the number meanwhile.
  while (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, aside(path, number).c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EEXIST) return failed("move", path, errno);
    ++number;
  }
  return number;
}

}  // namespace

Result<void> append_to_spool(const std::string& path, const Spooled& spooled) {
  std::string line = line_of(spooled);
  auto locked = open_locked(path, O_RDWR | O_CREAT | O_APPEND);
  if (!locked) return std::unexpected(std::move(locked.error()));
  int fd = (*locked)->file.fd();
  std::uint64_t size = (*locked)->size;
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
  auto numbers = files_aside(path);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  auto moved = move_aside(path, numbers->empty() ? 1 : numbers->back() + 1);
  if (!moved) return std::unexpected(std::move(moved.error()));
  if (*moved) numbers->push_back(**moved);
  SpoolReport report;
  for (std::uint64_t number : *numbers)
    if (auto taken = take_file(aside(path, number), take, report); !taken)
      return std::unexpected(std::move(taken.error()));
  return report;
}

}  // namespace perdure::transcript
