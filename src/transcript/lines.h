// Reading a file that grows, from where one stopped.
//
// What was read is remembered by the file's identity, the offset behind the last whole line, or in one that is too long
// to be kept, and a hash of the bytes before that. So it is noticed that a file was replaced (another inode), truncated
// (shorter than the offset) or rewritten, in place or by another that got the same inode (other bytes before the
// offset); then it is read again from its beginning, and its entries are known by their uuids. The same is looked at
// whenever more of it is read: those are the bytes that were read, and not what the file has there by then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/error.h"
#include "transcript/file.h"

namespace perdure::transcript {

/// So many bytes behind each line are readable, for parsers that look at many bytes at once.
inline constexpr std::size_t kLinePadding = 64;
/// How much is read at once.
inline constexpr std::size_t kReadBytes = std::size_t{1} << 20;
/// Longer lines are passed over. Nobody says as much, and memory is bounded by it.
inline constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;
/// In each stretch of so many bytes of such a line, its reader gets an empty line: there may be no end of it, and
/// whoever reads wants to store its place, or to stop.
inline constexpr std::size_t kPassedAtOnce = std::size_t{64} << 20;

/// How many bytes before a place are looked at to know it again.
inline constexpr std::size_t kTailBytes = 256;

/// Where reading stopped: the identity of the file and the bytes behind the last whole line.
struct Position {
  std::uint64_t device = 0, inode = 0, offset = 0;
  /// The hash of the kTailBytes before the offset; 0 if that is not known.
  std::uint64_t tail = 0;
  /// The offset is in a line that is too long, of which the rest is passed over.
  bool inside = false;
  bool operator==(const Position&) const = default;
};

/// Not safe for several threads at once. Blocks for as long as the disk does.
class LineReader {
 public:
  LineReader(TranscriptFile file, Position from);

  /// The next whole line without its '\n', good until the next call, or nothing at the end of what is whole: a last
  /// line without '\n' is still being written. Asked again, it looks whether there is more by now. If what was read is
  /// not there any more, the first line of the file comes next. Errors: kUnavailable, and nothing has moved.
  Result<std::optional<std::string_view>> next();

  /// Behind the last line that next() gave, or what it has passed over.
  Position position() const;
  /// Next comes what stands behind `position`, which this reader has been at; or the first line, if the file is not
  /// what it was then.
  void go_back(const Position& position);
  /// How much the file has behind the last line that was given, by now; 0 if it cannot be looked at.
  std::uint64_t left() const;
  /// What was read from the file in all.
  std::uint64_t bytes_read() const { return bytes_read_; }
  /// How often the file was not any more what had been read of it, and has been begun anew; so `from` counts as well.
  std::uint64_t restarts() const { return restarts_; }
  /// How many lines were passed over because they are longer than kLineBytesMax.
  std::uint64_t long_lines() const { return long_lines_; }

 private:
  void find_start(const Position& from);
  /// Reads the next bytes of the file to the end of the buffer; how many, 0 at the end of the file.
  Result<std::size_t> fill();
  /// Makes room for kReadBytes more, and padding.
  void make_room();
  Result<std::size_t> read_at(char* bytes, std::size_t size, std::uint64_t offset) const;
  /// The bytes of the file that a place is known by; none if it ends before.
  Result<std::string> bytes_before(std::uint64_t offset) const;
  /// Whether the file still has what was read of it before `offset`, which is the end of the buffer.
  Result<bool> is_the_same(std::uint64_t offset) const;
  /// Reads on from a place, before which the file has these bytes.
  void start_at(const Position& position, std::string_view before);
  void start_over();
  /// Moves behind a line of `size` bytes and its '\n'.
  void pass(std::size_t size);
  /// Passes over what there is of a line that is too long.
  void drop();

  TranscriptFile file_;
  Position position_;
  std::uint64_t bytes_read_ = 0, long_lines_ = 0, restarts_ = 0;
  std::optional<Error> problem_;  ///< That the file cannot even be looked at.

  /// The bytes [begin_, end_) are those of the file from position_.offset on; those before scanned_ have no '\n' in
  /// them. Those before begin_ are what the file has before, kTailBytes of them or all.
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0, begin_ = 0, scanned_ = 0, end_ = 0;
  /// What was dropped since a line was given.
  std::size_t dropped_ = 0;
};

}  // namespace perdure::transcript
