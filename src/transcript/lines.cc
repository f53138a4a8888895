#include "transcript/lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/hash.h"

namespace perdure::transcript {
namespace {

/// As much as is needed while lines are shorter than what is read at once.
constexpr std::size_t kUsualCapacity = kTailBytes + 2 * kReadBytes + kLinePadding;

Error unreadable(int problem) {
  return {ErrorCode::kUnavailable,
          "the transcript cannot be read: " + std::generic_category().message(problem) + "; it will be tried again"};
}

/// What a place is known by, if these bytes stand before it; 0 for no bytes, and for none that could.
std::uint64_t tail_of(std::string_view before, bool inside) {
  // Before a place where reading stopped a line has ended, unless that is inside of one.
  if (before.empty() || (!inside && !before.ends_with('\n'))) return 0;
  return std::max<std::uint64_t>(hash64(before), 1);
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
    auto before = bytes_before(from.offset);
    if (!before) {
      problem_ = before.error();
      return;
    }
    std::uint64_t tail = tail_of(*before, from.inside);
    goes_on = tail != 0 && (tail == from.tail || from.tail == 0);
    if (goes_on) start_at(from, *before);
  }
  if (!goes_on) ++restarts_;
}

Position LineReader::position() const {
  Position position = position_;
  std::size_t size = std::min(begin_, kTailBytes);
  position.tail = tail_of({buffer_.get() + begin_ - size, size}, position.inside);
  return position;
}

void LineReader::go_back(const Position& position) {
  auto before = bytes_before(position.offset);
  if (!before)
    problem_ = before.error();
  else if (tail_of(*before, position.inside) == position.tail)
    start_at(position, *before);
  else
    start_over();
}

void LineReader::start_at(const Position& position, std::string_view before) {
  position_ = position;
  dropped_ = 0;
  begin_ = scanned_ = end_ = 0;
  make_room();
  std::ranges::copy(before, buffer_.get());
  begin_ = scanned_ = end_ = before.size();
}

void LineReader::start_over() {
  start_at({position_.device, position_.inode, 0}, {});
  ++restarts_;
}

std::uint64_t LineReader::left() const {
  struct stat info{};
  if (::fstat(file_.fd(), &info) != 0) return 0;
  auto size = static_cast<std::uint64_t>(info.st_size);
  return size - std::min(size, position_.offset);
}

Result<std::string> LineReader::bytes_before(std::uint64_t offset) const {
  std::string bytes(std::min<std::uint64_t>(offset, kTailBytes), '\0');
  for (std::size_t had = 0; had < bytes.size();) {
    auto got = read_at(bytes.data() + had, bytes.size() - had, offset - bytes.size() + had);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return std::string();
    had += *got;
  }
  return bytes;
}

Result<bool> LineReader::is_the_same(std::uint64_t offset) const {
  auto now = bytes_before(offset);
  if (!now) return std::unexpected(now.error());
  return now->empty() == (offset == 0) && std::string_view(buffer_.get(), end_).ends_with(*now);
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
  const std::size_t from = begin_ - std::min(begin_, kTailBytes);
  std::size_t held = end_ - from;
  std::size_t needed = held + kReadBytes + kLinePadding;
  std::size_t wanted = capacity_;
  if (needed > capacity_) wanted = std::max({needed, kUsualCapacity, std::min(2 * capacity_, kLineBytesMax)});
  // A long line is behind us: nobody shall pay for it from now on.
  if (needed <= kUsualCapacity) wanted = kUsualCapacity;
  if (wanted != capacity_) {
    // Not made zero: the pages of a large buffer cost nothing before they are used.
    std::unique_ptr<char[]> larger(new char[wanted]);
    if (held > 0) std::memcpy(larger.get(), buffer_.get() + from, held);
    buffer_ = std::move(larger);
    capacity_ = wanted;
  } else if (from > 0) {
    std::memmove(buffer_.get(), buffer_.get() + from, held);
  }
  begin_ -= from;
  scanned_ -= from;
  end_ = held;
}

Result<std::size_t> LineReader::fill() {
  make_room();
  std::uint64_t offset = position_.offset + (end_ - begin_);
  auto got = read_at(buffer_.get() + end_, kReadBytes, offset);
  if (!got) return got;
  // Behind it: whoever writes meanwhile is noticed now, or the next time.
  auto same = is_the_same(offset);
  if (!same) return std::unexpected(same.error());
  if (!*same) {
    start_over();
    return fill();
  }
  end_ += *got;
  bytes_read_ += *got;
  // What stands behind the last line must not be left to chance.
  std::memset(buffer_.get() + end_, 0, kLinePadding);
  return got;
}

void LineReader::drop() {
  const std::size_t kept = std::min(end_, kTailBytes);
  dropped_ += end_ - begin_;
  position_.offset += end_ - begin_;
  position_.inside = true;
  std::memmove(buffer_.get(), buffer_.get() + end_ - kept, kept);
  begin_ = scanned_ = end_ = kept;
}

void LineReader::pass(std::size_t size) {
  begin_ += size + 1;
  scanned_ = begin_;
  position_.offset += size + 1;
  position_.inside = false;
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
      bool too_long = position_.inside || size > kLineBytesMax;
      pass(size);
      if (!too_long) return std::string_view(line, size);
      ++long_lines_;
      continue;
    }
    scanned_ = end_;
    if (end_ - begin_ > kLineBytesMax || position_.inside) drop();
    if (dropped_ >= kPassedAtOnce) {
      dropped_ = 0;
      return std::string_view(buffer_.get() + end_, 0);
    }
    auto got = fill();
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return std::nullopt;
  }
}

}  // namespace perdure::transcript
