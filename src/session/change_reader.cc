#include "session/change_reader.h"

#include <algorithm>
#include <charconv>

#include "base/endian.h"
#include "session/rows.h"

namespace perdure::session {
namespace {

constexpr std::size_t kChangesMax = 1'000;
constexpr std::size_t kRowsAtOnce = 64;
/// A page looks at so much and no more, whatever its filter lets through.
constexpr std::size_t kRowsOfPage = 1'024;
constexpr std::size_t kBytesOfPage = 4 << 20;
constexpr std::size_t kCursorDigits = 32;

void put_hex(std::string& out, std::uint64_t value, std::size_t digits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (std::size_t i = digits; i-- > 0;) out.push_back(kHex[(value >> (4 * i)) & 15]);
}

template <class T>
bool take_hex(std::string_view& text, T& value) {
  std::string_view digits = text.substr(0, 2 * sizeof(T));
  text.remove_prefix(digits.size());
  // Only one text for each place, so that cursors can be compared as such.
  bool good = std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return good && std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ec == std::errc();
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool passes(const ChangeFilter& filter, const ChangeNote& note) {
  switch (note.type) {
    case ChangeType::kEvent:
    case ChangeType::kWorker:
      return has(filter.workers, note.name);
    case ChangeType::kActor:
      return has(filter.kinds, note.name);
    case ChangeType::kDebouncer:
      return has(filter.debouncers, note.name);
    case ChangeType::kSchedule:
      return has(filter.schedules, note.name);
    case ChangeType::kPartition:
      return has(filter.partitions, note.name);
    case ChangeType::kSession: {
      const auto* id = std::get_if<std::string_view>(&note.id);
      return id && has(filter.sessions, *id);
    }
  }
  return false;
}

bool passes_all(const ChangeFilter& filter) {
  return filter.workers.empty() && filter.kinds.empty() && filter.debouncers.empty() && filter.schedules.empty() &&
         filter.partitions.empty() && filter.sessions.empty();
}

Change change_of(const ChangeNote& note, const ChangePosition& position) {
  const Uuid* uuid = std::get_if<Uuid>(&note.id);
  Change change{.type = std::string(name_of(note.type)),
                .name = std::string(note.name),
                .id = uuid ? to_string(*uuid) : std::string(std::get<std::string_view>(note.id)),
                .state = std::string(name_of(note.state)),
                .attempt = static_cast<int>(note.attempt),
                .count = note.count,
                .offset = note.offset,
                .version = {},
                .error = std::string(note.error),
                .at = note.at,
                .cursor = position.cursor()};
  if (note.rewritten) change.version = Stamp{position.stamp.version, 0};
  return change;
}

/// Fills a page row by row.
class Scan {
 public:
  Scan(const ChangeQuery& query, ChangePosition from, ChangePage& page)
      : filter_(query.filter),
        all_(passes_all(query.filter)),
        limit_(std::clamp<std::size_t>(query.limit, 1, kChangesMax)),
        at_(from),
        page_(page) {}

  const ChangePosition& at() const { return at_; }
  bool full() const { return page_.changes.size() >= limit_ || rows_ >= kRowsOfPage || bytes_ >= kBytesOfPage; }

  void take(Stamp stamp, BytesView row) {
    ++rows_;
    bytes_ += row.size();
    bool readable = read_changes(row, [&](std::uint32_t index, const ChangeNote& note) {
      ChangePosition here{stamp, index};
      if (here <= at_) return true;
      if (page_.changes.size() >= limit_) return false;
      at_ = here;
      if (all_ || passes(filter_, note)) page_.changes.push_back(change_of(note, here));
      return true;
    });
    // What is damaged is as good as gone; the feed goes on behind it.
    if (readable) return;
    page_.gap = true;
    at_ = {stamp, UINT32_MAX};
  }

 private:
  const ChangeFilter& filter_;
  const bool all_;
  const std::size_t limit_;
  ChangePosition at_;
  ChangePage& page_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::string ChangePosition::cursor() const {
  std::string text;
  text.reserve(kCursorDigits);
  put_hex(text, stamp.version.number, 16);
  put_hex(text, stamp.order, 8);
  put_hex(text, index, 8);
  return text;
}

std::optional<ChangePosition> ChangePosition::of(std::string_view cursor) {
  ChangePosition position;
  if (cursor.size() != kCursorDigits) return std::nullopt;
  if (!take_hex(cursor, position.stamp.version.number) || !take_hex(cursor, position.stamp.order) ||
      !take_hex(cursor, position.index))
    return std::nullopt;
  return position;
}

Bytes TrimmedRow::encode() const {
  auto stamp = last.stamp.encode();
  Bytes out(stamp.data(), stamp.size());
  out.resize(Stamp::kSize + sizeof last.index + sizeof rows);
  store_little(out.data() + Stamp::kSize, last.index);
  store_little(out.data() + Stamp::kSize + sizeof last.index, rows);
  return out;
}

std::optional<TrimmedRow> TrimmedRow::decode(BytesView value) {
  if (value.size() != Stamp::kSize + sizeof last.index + sizeof rows) return std::nullopt;
  return TrimmedRow{
      {*Stamp::decode(value.substr(0, Stamp::kSize)), load_little<std::uint32_t>(value.data() + Stamp::kSize)},
      load_little<std::uint64_t>(value.data() + Stamp::kSize + sizeof last.index)};
}

ChangePosition feed_floor(Reader& reader, std::string_view space) {
  auto begun = reader.get(changes_begun_key());
  auto trimmed = reader.get(changes_trimmed_key(space));
  ChangePosition floor{begun ? Stamp::decode(*begun).value_or(Stamp{}) : Stamp{}, 0};
  if (auto row = trimmed ? TrimmedRow::decode(*trimmed) : std::nullopt) floor = std::max(floor, row->last);
  return floor;
}

ChangePosition feed_end(Reader& reader, std::string_view space) {
  ChangePosition floor = feed_floor(reader, space);
  Bytes prefix = changes_prefix(space);
  auto last = reader.get_range(tuple::extensions(prefix), {.limit = 1, .direction = Direction::kReverse});
  if (last.empty()) return floor;
  auto stamp = tuple::unpack_after<Stamp>(prefix, last[0].key);
  if (!stamp) return floor;
  auto head = ChangeRowHead::of(last[0].value);
  return std::max(floor, ChangePosition{std::get<0>(*stamp), head && head->count > 0 ? head->count - 1 : UINT32_MAX});
}

Result<ChangePage> read_feed(Reader& reader, std::string_view space, const ChangeQuery& query) {
  if (auto good = check_short_name(space, "the space"); !good) return std::unexpected(std::move(good.error()));
  auto after = query.after.empty() ? std::optional(ChangePosition{}) : ChangePosition::of(query.after);
  if (!after)
    return fail(ErrorCode::kInvalidArgument,
                "\"" + printable(query.after) + "\" is no cursor of the feed of changes; take one that it gave out");
  ChangePage page;
  ChangePosition floor = feed_floor(reader, space);
  page.gap = !query.after.empty() && *after < floor;
  Scan scan(query, std::max(*after, floor), page);
  Bytes prefix = changes_prefix(space);
  KeyRange range = tuple::extensions(prefix);
  range.begin = tuple::pack_onto(prefix, scan.at().stamp);
  bool all = false;
  while (!scan.full() && !all) {
    auto rows = reader.get_range(range, {.limit = kRowsAtOnce});
    for (const Row& row : rows) {
      auto stamp = tuple::unpack_after<Stamp>(prefix, row.key);
      if (stamp) scan.take(std::get<0>(*stamp), row.value);
      if (scan.full()) break;
    }
    all = rows.size() < kRowsAtOnce && !scan.full();
    if (!rows.empty()) range.begin = next_key(rows.back().key);
  }
  page.more = !all;
  page.next = scan.at().cursor();
  // Ahead of all that is there: of another store, or of this one before it was restored from a copy.
  if (all && page.changes.empty() && *after > floor && *after > feed_end(reader, space)) {
    page.gap = page.more = true;
    page.next = floor.cursor();
  }
  return page;
}

}  // namespace perdure::session
