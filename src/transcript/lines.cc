#include "transcript/lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/hash.h"

namespace perdure::transcript {
namespace {

/// As much as is needed while lines are shorter than what is read at once.
constexpr std::size_t kUsualCapacity = 2 * kReadBytes + kLinePadding;

Error unreadable(int problem) {
  return {ErrorCode::kUnavailable,
          "the transcript cannot be read: " + std::generic_category().message(problem) + "; it will be tried again"};
}

}  // namespace

LineReader::LineReader(TranscriptFile file, Position from) : file_(std::move(file)) {
  find_start(from);
}

void LineReader::find_start(const Position& from) {
  struct stat info{};
  if (::fstat(file_.fd(), &info) != 0) {
    problem_ = unreadable(errno);
    return;
  }
  position_ = {info.st_dev, info.st_ino, 0};
  if (from == Position{}) return;
  bool goes_on = from.device == position_.device && from.inode == position_.inode &&
                 static_cast<std::uint64_t>(info.st_size) >= from.offset;
  if (goes_on && from.offset > 0) {
    auto tail = tail_before(from.offset);
    if (!tail) {
      problem_ = tail.error();
      return;
    }
    goes_on = *tail != 0 && (*tail == from.tail || from.tail == 0);
  }
  if (goes_on) position_ = from;
  restarted_ = !goes_on;
}

Position LineReader::position() const {
  Position position = position_;
  position.tail = tail_before(position.offset).value_or(0);
  return position;
}

void LineReader::go_back(const Position& position) {
  position_ = position;
  begin_ = scanned_ = end_ = 0;
  dropped_ = 0;
}

std::uint64_t LineReader::left() const {
  struct stat info{};
  if (::fstat(file_.fd(), &info) != 0) return 0;
  auto size = static_cast<std::uint64_t>(info.st_size);
  return size - std::min(size, position_.offset);
}

Result<std::uint64_t> LineReader::tail_before(std::uint64_t offset) const {
  std::array<char, kTailBytes> bytes;
  std::size_t size = std::min<std::uint64_t>(offset, kTailBytes), had = 0;
  while (had < size) {
    auto got = read_at(bytes.data() + had, size - had, offset - size + had);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
    had += *got;
  }
  // Before a place where reading stopped a line has ended.
  if (size == 0 || had < size || bytes[size - 1] != '\n') return 0;
  return std::max<std::uint64_t>(hash64(BytesView(bytes.data(), size)), 1);
}

Result<std::size_t> LineReader::read_at(char* bytes, std::size_t size, std::uint64_t offset) const {
  while (true) {
    ssize_t got = ::pread(file_.fd(), bytes, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(unreadable(errno));
    return static_cast<std::size_t>(got);
  }
}

void LineReader::make_room() {
  std::size_t held = end_ - begin_;
  std::size_t needed = held + kReadBytes + kLinePadding;
  std::size_t wanted = capacity_;
  if (needed > capacity_) wanted = std::max({needed, kUsualCapacity, std::min(2 * capacity_, kLineBytesMax)});
  // A long line is behind us: nobody shall pay for it from now on.
  if (needed <= kUsualCapacity) wanted = kUsualCapacity;
  if (wanted != capacity_) {
    // Not made zero: the pages of a large buffer cost nothing before they are used.
    std::unique_ptr<char[]> larger(new char[wanted]);
    if (held > 0) std::memcpy(larger.get(), buffer_.get() + begin_, held);
    buffer_ = std::move(larger);
    capacity_ = wanted;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, held);
  }
  scanned_ -= begin_;
  end_ = held;
  begin_ = 0;
}

Result<std::size_t> LineReader::fill() {
  make_room();
  std::uint64_t offset = position_.offset + dropped_ + (end_ - begin_);
  auto got = read_at(buffer_.get() + end_, kReadBytes, offset);
  if (!got) return got;
  end_ += *got;
  bytes_read_ += *got;
  // What stands behind the last line must not be left to chance.
  std::memset(buffer_.get() + end_, 0, kLinePadding);
  return got;
}

void LineReader::pass(std::size_t size) {
  begin_ += size + 1;
  scanned_ = begin_;
  position_.offset += dropped_ + size + 1;
  dropped_ = 0;
}

Result<std::optional<std::string_view>> LineReader::next() {
  if (problem_) return std::unexpected(*problem_);
  while (true) {
    // memchr must not be given a null pointer, which the buffer is at first.
    const char* unscanned = buffer_.get() + scanned_;
    const void* found = scanned_ == end_ ? nullptr : std::memchr(unscanned, '\n', end_ - scanned_);
    if (found != nullptr) {
      const char* line = buffer_.get() + begin_;
      auto size = static_cast<std::size_t>(static_cast<const char*>(found) - line);
      bool too_long = dropped_ + size > kLineBytesMax;
      pass(size);
      if (!too_long) return std::string_view(line, size);
      ++long_lines_;
      continue;
    }
    scanned_ = end_;
    if (end_ - begin_ > kLineBytesMax || dropped_ > 0) {
      dropped_ += end_ - begin_;
      begin_ = scanned_ = end_ = 0;
    }
    auto got = fill();
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return std::nullopt;
  }
}

}  // namespace perdure::transcript
