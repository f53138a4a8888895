#include "schedule/tzif.h"

#include <algorithm>
#include <array>

#include "base/endian.h"

namespace perdure::schedule {
namespace {

constexpr std::size_t kHeaderSize = 44;
/// Offsets that RFC 9636 tells readers to expect, and which the search for local times relies on.
constexpr Seconds kOffsetMin = -25 * 3600 + 1;
constexpr Seconds kOffsetMax = 26 * 3600 - 1;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, std::string(what));
}

/// The header's counts, in the order in which they stand there.
struct Header {
  char version = 0;
  std::uint32_t utc_flags = 0, wall_flags = 0, leaps = 0, times = 0, types = 0, letters = 0;

  /// The size of the block that follows, whose times are `time_size` bytes long.
  std::uint64_t block_size(std::uint64_t time_size) const {
    return times * time_size + times + types * std::uint64_t{6} + letters + leaps * (time_size + 4) + wall_flags +
           utc_flags;
  }
};

Result<Header> read_header(BytesView& rest) {
  if (!rest.starts_with("TZif") || rest.size() < kHeaderSize) return damaged("it is not a time zone file");
  Header header;
  header.version = rest[4];
  std::array<std::uint32_t*, 6> counts = {&header.utc_flags, &header.wall_flags, &header.leaps,
                                          &header.times,     &header.types,      &header.letters};
  for (std::size_t i = 0; i < counts.size(); ++i) *counts[i] = load_big<std::uint32_t>(rest.data() + 20 + 4 * i);
  rest.remove_prefix(kHeaderSize);
  return header;
}

/// Adds a transition, unless nothing changes with it.
void push(std::vector<Transition>& out, Transition next) {
  if (out.empty() || out.back().offset != next.offset) out.push_back(next);
}

/// `last` becomes the time of the last transition, also of one with which nothing changes.
Result<std::vector<Transition>> read_block(BytesView block, const Header& header, Seconds& last) {
  if (header.types == 0) return damaged("it has no local time");
  const char* times = block.data();
  const char* indices = times + std::size_t{8} * header.times;
  const char* types = indices + header.times;
  auto offset_of = [&](std::uint32_t type) {
    return static_cast<std::int32_t>(load_big<std::uint32_t>(types + std::size_t{6} * type));
  };
  std::vector<Transition> out = {{kBeginningOfTime, offset_of(0)}};
  last = kBeginningOfTime;
  for (std::uint32_t i = 0; i < header.times; ++i) {
    auto begin = static_cast<Seconds>(load_big<std::uint64_t>(times + std::size_t{8} * i));
    std::uint32_t type = static_cast<unsigned char>(indices[i]);
    if (type >= header.types) return damaged("a transition has a type that is not there");
    // Files of old versions of zic begin with one at the Big Bang.
    if (begin <= kBeginningOfTime) {
      out.front().offset = offset_of(type);
      continue;
    }
    if (begin <= last) return damaged("its transitions are out of order");
    last = begin;
    push(out, {begin, offset_of(type)});
  }
  for (const Transition& transition : out)
    if (transition.offset < kOffsetMin || transition.offset > kOffsetMax) return damaged("an offset is out of range");
  return out;
}

}  // namespace

Result<std::vector<Transition>> parse_tzif(BytesView file) {
  BytesView rest = file;
  auto header = read_header(rest);
  if (!header) return std::unexpected(std::move(header.error()));
  if (header->version < '2') return damaged("it is of the first version, which ends in 2038");
  // The first block is for readers of that version.
  if (header->block_size(4) > rest.size()) return damaged("it is cut short");
  rest.remove_prefix(header->block_size(4));
  header = read_header(rest);
  if (!header) return std::unexpected(std::move(header.error()));
  std::uint64_t size = header->block_size(8);
  if (size > rest.size()) return damaged("it is cut short");
  if (header->leaps > 0) return damaged("it counts leap seconds, and perdure's time does not");
  Seconds last;
  auto out = read_block(rest.substr(0, size), *header, last);
  if (!out) return out;
  rest.remove_prefix(size);
  std::size_t end = rest.find('\n', 1);
  if (!rest.starts_with('\n') || end == BytesView::npos) return damaged("it is cut short before its rule");
  std::string_view rule = rest.substr(1, end - 1);
  if (rule.empty()) return out;
  // Before 1970 there is nothing to be scheduled, so that the rule of a zone without transitions may begin there.
  auto later = expand_rule(rule, std::max(last, Seconds{0}));
  if (!later) return later;
  for (const Transition& transition : *later)
    if (transition.begin > out->back().begin) push(*out, transition);
  return out;
}

}  // namespace perdure::schedule
