#include "queue/list.h"

#include <algorithm>
#include <map>

#include "queue/inspect.h"
#include "queue/rules.h"
#include "queue/worker_table.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kPageMax = 1'000;
/// Of values: a page with more ends early.
constexpr std::size_t kPageBytesMax = 4 << 20;
constexpr EventState kOrder[] = {EventState::kReady, EventState::kScheduled, EventState::kRunning, EventState::kDead};

/// A cursor: which index, and the last key seen there.
std::string encode_cursor(std::size_t index, const Bytes& last) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = std::to_string(index) + ".";
  for (char c : last) {
    auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

struct Cursor {
  std::size_t index = 0;
  Bytes last;
};

std::optional<Cursor> decode_cursor(std::string_view text) {
  auto digit = [](char c) -> int { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() < 2 || text.size() % 2 != 0 || text[1] != '.' || digit(text[0]) < 0 || digit(text[0]) > 3)
    return std::nullopt;
  Cursor cursor{static_cast<std::size_t>(digit(text[0])), {}};
  for (std::size_t i = 2; i < text.size(); i += 2) {
    if (digit(text[i]) < 0 || digit(text[i + 1]) < 0) return std::nullopt;
    cursor.last.push_back(static_cast<char>(digit(text[i]) << 4 | digit(text[i + 1])));
  }
  return cursor;
}

/// The ids at the front of the values of a range.
void collect(Reader& reader, KeyRange range, const Bytes& after, std::size_t limit, IndexPage& page) {
  if (!after.empty() && after >= range.begin) range.begin = next_key(after);
  if (range.empty() || page.ids.size() >= limit) return;
  for (const Row& row : reader.get_range(range, {.limit = limit - page.ids.size()})) {
    page.ids.push_back(decode_id(BytesView(row.value).substr(0, sizeof(Uuid::bytes))).value_or(Uuid()));
    page.places.push_back(row.key);
  }
}

/// Ready events that wait for a slot stand under their limit keys, which may be many: from one to the next by a seek.
void collect_waiting(Reader& reader, BytesView prefix, const Bytes& after, std::size_t limit, IndexPage& page) {
  Bytes keys = tuple::pack_onto(prefix, "k");
  KeyRange range = tuple::extensions(keys);
  if (after > range.begin) range.begin = next_key(after);
  while (page.ids.size() < limit && !range.empty()) {
    auto first = reader.get_range(range, {.limit = 1});
    if (first.empty()) return;
    tuple::Reader parts(BytesView(first[0].key).substr(keys.size()));
    std::string name(parts.next_text());
    if (!parts.ok()) return;
    collect(reader, tuple::extensions(waiting_key(prefix, name)), after, limit, page);
    range.begin = tuple::extensions(tuple::pack_onto(keys, name)).end;
  }
}

/// Running events are in no index: their claims are noted with the sessions that have them, or with their deadlines.
IndexPage walk_running(Reader& reader, std::string_view space, std::string_view worker) {
  std::map<Stamp, Uuid> running;
  auto take = [&](const Uuid& id) {
    auto event = load(reader, space, id);
    if (event && event->row.state == Stored::kRunning && event->row.names().worker == worker)
      running[event->row.stamp] = id;
  };
  // What an ended session had claimed is running until it is swept.
  for (std::string_view table : {"open", "ended"})
    for (const Row& there : reader.get_range(session::table_range(table))) {
      auto session = session::id_of(table, there.key);
      if (!session) continue;
      for (const Row& row : reader.get_range(tuple::extensions(session::held_key(*session, kHeldClaims))))
        if (auto held = HeldClaims::decode(row.value); held && held->space == space)
          for (const Uuid& id : held->ids) take(id);
    }
  for (const Row& row : reader.get_range(tuple::extensions(deadlines()))) {
    auto parts = tuple::unpack_after<std::int64_t, std::string, Uuid>(deadlines(), row.key);
    if (parts && std::get<1>(*parts) == space) take(std::get<2>(*parts));
  }
  IndexPage page;
  for (const auto& [stamp, id] : running) {
    auto place = stamp.encode();
    page.ids.push_back(id);
    page.places.emplace_back(place.data(), place.size());
  }
  return page;
}

std::size_t index_of(EventState state) {
  switch (state) {
    case EventState::kScheduled:
      return 1;
    case EventState::kRunning:
      return 2;
    case EventState::kDead:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

IndexPage walk(Reader& reader, std::string_view space, std::string_view worker, EventState state, const Bytes& after,
               std::size_t limit) {
  Bytes prefix = worker_prefix(space, worker);
  IndexPage page;
  switch (index_of(state)) {
    case 1:
      collect(reader, tuple::extensions(scheduled_key(prefix)), after, limit, page);
      break;
    case 2: {
      page = walk_running(reader, space, worker);
      std::size_t first = static_cast<std::size_t>(std::ranges::upper_bound(page.places, after) - page.places.begin());
      page.ids.erase(page.ids.begin(), page.ids.begin() + static_cast<std::ptrdiff_t>(first));
      page.places.erase(page.places.begin(), page.places.begin() + static_cast<std::ptrdiff_t>(first));
      if (page.ids.size() > limit) {
        page.ids.resize(limit);
        page.places.resize(limit);
      }
      break;
    }
    case 3:
      collect(reader, tuple::extensions(dead_key(prefix)), after, limit, page);
      break;
    default: {
      // The waiting stand before the ready in the order of keys, and are listed behind them.
      KeyRange ready = tuple::extensions(ready_key(prefix));
      bool in_ready = after.empty() || after >= ready.begin;
      if (in_ready) collect(reader, ready, after, limit, page);
      collect_waiting(reader, prefix, in_ready ? Bytes() : after, limit, page);
    }
  }
  return page;
}

Result<EventPage> list_events(Reader& reader, std::string_view space, const EventFilter& filter, WallTime now) {
  SystemAccess access(reader);
  if (filter.limit == 0 || filter.limit > kPageMax)
    return fail(ErrorCode::kInvalidArgument, "a page of events has 1 to 1000 of them");
  Cursor cursor{filter.state ? index_of(*filter.state) : 0, {}};
  if (!filter.after.empty()) {
    auto decoded = decode_cursor(filter.after);
    if (!decoded || (filter.state && decoded->index != cursor.index))
      return fail(ErrorCode::kInvalidArgument, "\"" + printable(filter.after) + "\" is no cursor of this list");
    cursor = std::move(*decoded);
  }
  EventPage page;
  auto rules = read_rules(reader, worker_prefix(space, filter.worker), now);
  // Paused and blocked are views of ready: nothing is in the one that does not hold.
  EventState ready_now = state_by(rules) == WorkerState::kBlock   ? EventState::kBlocked
                         : state_by(rules) == WorkerState::kPause ? EventState::kPaused
                                                                  : EventState::kReady;
  std::size_t bytes = 0;
  bool is_view = filter.state && index_of(*filter.state) == 0;
  if (is_view && *filter.state != ready_now) return page;
  for (std::size_t index = cursor.index; index < std::size(kOrder); ++index) {
    std::size_t want = filter.limit - page.events.size();
    auto found = walk(reader, space, filter.worker, kOrder[index], index == cursor.index ? cursor.last : Bytes(), want);
    for (std::size_t i = 0; i < found.ids.size(); ++i) {
      auto event = get_event(reader, space, found.ids[i], now);
      if (!event) continue;
      bytes += event->value.encoded_size();
      page.events.push_back(std::move(*event));
      if (bytes < kPageBytesMax) continue;
      page.next = encode_cursor(index, found.places[i]);
      return page;
    }
    if (found.ids.size() == want) {
      page.next = encode_cursor(index, found.places.back());
      return page;
    }
    if (filter.state) break;
  }
  return page;
}

}  // namespace perdure::queue
