#include "store/change_notes.h"

#include <algorithm>
#include <array>

#include "base/endian.h"

namespace perdure {
namespace {

constexpr char kFormat = 1;
constexpr std::size_t kHeadBytes = 1 + sizeof(std::uint32_t) + sizeof(std::uint64_t);
/// A row of this size is full, well below what a value may have.
constexpr std::size_t kRowBytesFull = 64 << 10;
constexpr std::size_t kErrorBytesMax = 500;

enum Flag : std::uint8_t {
  kSameName = 1,
  kUuid = 2,
  kAttempt = 4,
  kCount = 8,
  kOffset = 16,
  kRewritten = 32,
  kError = 64,
};

constexpr auto kTypes =
    std::to_array<std::string_view>({"event", "worker", "actor", "debouncer", "schedule", "partition", "session"});
constexpr auto kStates = std::to_array<std::string_view>({"scheduled", "ready",     "running",
                                                          "completed", "failed",    "dead",
                                                          "dropped",   "cancelled", "paused",
                                                          "unpaused",  "blocked",   "unblocked",
                                                          "set",       "removed",   "created",
                                                          "handled",   "locked",    "unlocked",
                                                          "killed",    "waiting",   "fired",
                                                          "ended",     "appended",  "started",
                                                          "active",    "idle",      "permission_needed",
                                                          "done",      "updated"});

void put_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_text(Bytes& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}

/// Not in the middle of a character.
std::string_view cut(std::string_view text) {
  if (text.size() <= kErrorBytesMax) return text;
  std::size_t size = kErrorBytesMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

/// Reads off the front of a row.
struct Cursor {
  BytesView rest;
  bool ok = true;

  std::string_view bytes(std::size_t size) {
    if (size > rest.size()) ok = false;
    if (!ok) return {};
    std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  std::uint8_t byte() {
    std::string_view one = bytes(1);
    return one.empty() ? 0 : static_cast<std::uint8_t>(one[0]);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && ok; shift += 7) {
      std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return value;
    }
    ok = false;
    return 0;
  }
  std::string_view text() { return bytes(varint()); }
};

}  // namespace

std::string_view name_of(ChangeType type) {
  auto index = static_cast<std::size_t>(type);
  return index < kTypes.size() ? kTypes[index] : "unknown";
}

std::string_view name_of(ChangeState state) {
  auto index = static_cast<std::size_t>(state);
  return index < kStates.size() ? kStates[index] : "unknown";
}

void ChangeNotes::add(const ChangeNote& note) {
  auto found = std::ranges::find_if(open_, [&](const Open& open) { return open.row.space == note.space; });
  if (found != open_.end() && found->row.value.size() >= kRowBytesFull) {
    full_.push_back(finish(std::move(*found)));
    open_.erase(found);
    found = open_.end();
  }
  if (found == open_.end())
    found = open_.insert(found, Open{{std::string(note.space), Bytes(kHeadBytes, '\0')}, 0, note.at, {}, {}});
  Open& open = *found;
  Bytes& out = open.row.value;
  const Uuid* uuid = std::get_if<Uuid>(&note.id);
  bool same = open.count > 0 && open.type == note.type && open.name == note.name;
  out.push_back(static_cast<char>((same ? kSameName : 0) | (uuid ? kUuid : 0) | (note.attempt > 0 ? kAttempt : 0) |
                                  (note.count > 0 ? kCount : 0) | (note.offset ? kOffset : 0) |
                                  (note.rewritten ? kRewritten : 0) | (!note.error.empty() ? kError : 0)));
  if (!same) {
    out.push_back(static_cast<char>(note.type));
    put_text(out, note.name);
    open.type = note.type;
    open.name = note.name;
  }
  out.push_back(static_cast<char>(note.state));
  if (uuid)
    out.append(reinterpret_cast<const char*>(uuid->bytes.data()), uuid->bytes.size());
  else
    put_text(out, std::get<std::string_view>(note.id));
  if (note.attempt > 0) put_varint(out, note.attempt);
  if (note.count > 0) put_varint(out, note.count);
  if (note.offset) put_varint(out, *note.offset);
  if (!note.error.empty()) put_text(out, cut(note.error));
  ++open.count;
  open.at = std::max(open.at, note.at);
}

ChangeNotes::Encoded ChangeNotes::finish(Open&& open) {
  char* head = open.row.value.data();
  head[0] = kFormat;
  store_little(head + 1, open.count);
  store_little(head + 1 + sizeof open.count, static_cast<std::uint64_t>(open.at.time_since_epoch().count()));
  return std::move(open.row);
}

std::vector<ChangeNotes::Encoded> ChangeNotes::take() {
  auto rows = std::move(full_);
  for (Open& open : open_) rows.push_back(finish(std::move(open)));
  clear();
  return rows;
}

std::optional<ChangeRowHead> ChangeRowHead::of(BytesView row) {
  if (row.size() < kHeadBytes || row[0] != kFormat) return std::nullopt;
  auto ns = load_little<std::uint64_t>(row.data() + 1 + sizeof(std::uint32_t));
  return ChangeRowHead{load_little<std::uint32_t>(row.data() + 1), WallTime(Duration(static_cast<std::int64_t>(ns)))};
}

bool read_changes(BytesView row, const std::function<bool(std::uint32_t index, const ChangeNote&)>& take) {
  auto head = ChangeRowHead::of(row);
  if (!head) return false;
  Cursor cursor{row.substr(kHeadBytes)};
  ChangeNote note;
  note.at = head->at;
  for (std::uint32_t i = 0; i < head->count; ++i) {
    std::uint8_t flags = cursor.byte();
    if (!(flags & kSameName)) {
      note.type = static_cast<ChangeType>(cursor.byte());
      note.name = cursor.text();
    }
    note.state = static_cast<ChangeState>(cursor.byte());
    if (flags & kUuid) {
      Uuid uuid;
      std::ranges::copy(cursor.bytes(uuid.bytes.size()), uuid.bytes.begin());
      note.id = uuid;
    } else {
      note.id = cursor.text();
    }
    note.attempt = flags & kAttempt ? static_cast<std::uint32_t>(cursor.varint()) : 0;
    note.count = flags & kCount ? cursor.varint() : 0;
    note.offset = flags & kOffset ? std::optional(cursor.varint()) : std::nullopt;
    note.rewritten = flags & kRewritten;
    note.error = flags & kError ? cursor.text() : std::string_view();
    if (!cursor.ok) return false;
    if (!take(i, note)) return true;
  }
  return true;
}

}  // namespace perdure
