#include "transcript/tend.h"

#include <algorithm>

#include "base/time_math.h"
#include "debounce/window.h"
#include "session/timed_part.h"
#include "store/read_page.h"
#include "transcript/hook.h"
#include "transcript/rows.h"
#include "transcript/uuids.h"

namespace perdure::transcript {
namespace {

constexpr Duration kSessionsKept = std::chrono::hours(7 * 24);
/// In one transaction, which others wait for.
constexpr std::size_t kSessionsAtOnce = 20;
constexpr std::size_t kRowsAtOnce = 1'000;
/// Each has some hundred uuids.
constexpr std::size_t kListsAtOnce = 2;
constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20;

/// One turn: how much of it is left, and what was found that cannot be read. Such a row must not keep all others from
/// going, so it goes as well once it would if it could be read; what is in it is lost already.
struct Tending {
  Transaction& txn;
  const WallTime now;
  std::size_t rows = kRowsAtOnce, bytes = kBytesAtOnce;
  std::vector<Bytes> damaged = {};

  bool spent() const { return rows == 0 || bytes == 0; }
  /// The first of a range, as many as it may see to.
  std::vector<Row> page(const KeyRange& range) {
    auto found = read_page(txn, range, rows, bytes);
    for (const Row& row : found) pay(row.value.size());
    return found;
  }
  void pay(std::size_t size) {
    rows -= std::min<std::size_t>(rows, 1);
    bytes -= std::min(bytes, size);
  }
  template <class T>
  std::optional<T> decoded(BytesView key, BytesView value) {
    auto row = decode<T>(value);
    if (row) return std::move(*row);
    damaged.emplace_back(key);
    return std::nullopt;
  }
};

/// It may be that of another by now, if its session is gone.
void forget_uuid(Transaction& txn, std::string_view space, std::uint64_t number, std::string_view uuid) {
  clear_owned(txn, space, {{std::string(uuid)}}, number, 0);
}

MessageRow forget_message(Tending& turn, std::string_view space, std::uint64_t number, const Row& row) {
  auto message = turn.decoded<MessageRow>(row.key, row.value);
  if (message) forget_uuid(turn.txn, space, number, message->uuid);
  turn.txn.clear(row.key);
  return message.value_or(MessageRow());
}

bool is_empty(Transaction& txn, const KeyRange& range) {
  return txn.get_range(range, {.limit = 1}).empty();
}

void forget_other(Transaction& txn, std::string_view space, std::uint64_t number, const Row& row) {
  if (auto uuid = tuple::unpack_after<std::string>(replaced_key(data_key(space, number)), row.key))
    forget_uuid(txn, space, number, std::get<0>(*uuid));
  txn.clear(row.key);
}

/// Some of what was booked for a session that is gone; whether there was any.
bool forget_booked(Tending& turn, std::string_view space, std::uint64_t number) {
  auto rows = turn.txn.get_range(tuple::extensions(booked_key(data_key(space, number))), {.limit = kListsAtOnce});
  for (const Row& row : rows) {
    auto booked = booked_uuids(row.value);
    if (booked)
      clear_owned(turn.txn, space, *booked, number, 0);
    else
      turn.damaged.push_back(row.key);
    turn.txn.clear(row.key);
  }
  return !rows.empty();
}

/// Some of what is left of a session that is gone; whether that was all.
bool remove_some(Tending& turn, std::string_view space, std::uint64_t number) {
  Bytes data = data_key(space, number);
  const KeyRange messages = tuple::extensions(messages_key(data)), hooks = tuple::extensions(hooks_key(data));
  const KeyRange all = tuple::extensions(data);
  if (forget_booked(turn, space, number)) return false;
  for (const Row& row : turn.page(all)) {
    if (messages.contains(row.key))
      forget_message(turn, space, number, row);
    else if (hooks.contains(row.key))
      forget_hook(turn.txn, space, data, row);
    else
      forget_other(turn.txn, space, number, row);
  }
  return is_empty(turn.txn, all);
}

/// When the first message of a range goes; nothing if there is none.
std::optional<WallTime> first_goes(Tending& turn, BytesView messages, const KeyRange& range) {
  auto first = turn.txn.get_range(range, {.limit = 1});
  if (first.empty()) return std::nullopt;
  auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(messages, first[0].key);
  // A key that nobody could have written is no message.
  if (!place) turn.txn.clear(first[0].key);
  return place ? plus(from_ns(std::get<0>(*place)), kMessagesKept) : turn.now;
}

/// Those of a transcript that was old when it was first heard of are as new as the session.
bool old_messages_go(Tending& turn, std::string_view space, const SessionRow& session, std::optional<WallTime>& next) {
  if (session.favourite) return true;
  if (from_ns(session.created) + kMessagesKept > turn.now) {
    next = earlier(next, from_ns(session.created) + kMessagesKept);
    return true;
  }
  Bytes data = data_key(space, session.number), messages = messages_key(data);
  const KeyRange all = tuple::extensions(messages);
  // None but those that go are read: what is paid for those that stay would be missing for whatever comes after them,
  // in every turn.
  const Bytes young = tuple::extensions(tuple::pack_onto(messages, to_ns(turn.now - kMessagesKept))).end;
  for (const Row& row : turn.page({all.begin, young})) {
    // With what its tools answered.
    for (const ToolRow& tool : forget_message(turn, space, session.number, row).tools) {
      turn.txn.clear(result_key(data, answer_of(turn.txn, data, tool)));
      turn.txn.clear(result_key(data, tool.result));
      turn.txn.clear(result_number_key(data, tool.id));
      turn.pay(0);
    }
  }
  if (!is_empty(turn.txn, {all.begin, young})) return false;
  next = earlier(next, first_goes(turn, messages, {young, all.end}));
  return true;
}

bool old_hooks_go(Tending& turn, std::string_view space, std::uint64_t number, std::optional<WallTime>& next) {
  Bytes data = data_key(space, number);
  const KeyRange hooks = tuple::extensions(hooks_key(data));
  for (const Row& row : turn.page(hooks)) {
    auto place = tuple::unpack_after<std::uint64_t, std::uint64_t>(hooks_key(data), row.key);
    if (place && std::get<1>(*place) == 0) {
      // One that cannot be read is the oldest that is left, and as good as none.
      auto hook = turn.decoded<HookRow>(row.key, row.value);
      WallTime goes = hook ? from_ns(hook->at) + kHooksKept : turn.now;
      if (goes > turn.now) {
        next = earlier(next, goes);
        return true;
      }
    }
    forget_hook(turn.txn, space, data, row);
  }
  return is_empty(turn.txn, hooks);
}

/// Whether nobody will read more of it by what is known now. It is asked for sessions that have come up, and must fail
/// for none of them, or nobody would look after all others.
bool is_read(Reader& reader, std::string_view space, const std::string& id) {
  return debounce::is_idle(reader, {std::string(space), std::string(kDebouncer), id});
}

/// One that went on right now would be seen to in this very turn, for ever.
std::int64_t due_after(const Tending& turn, bool all, std::optional<WallTime> next) {
  std::int64_t soonest = to_ms(turn.now) + 1;
  return !all ? soonest : next ? std::max(to_ms(*next), soonest) : 0;
}

void tend_session(Tending& turn, std::string_view space, const std::string& id, std::int64_t due) {
  Transaction& txn = turn.txn;
  const WallTime now = turn.now;
  Bytes key = session_key(space, id);
  auto bytes = txn.get(key);
  // What is damaged stays for verify to find, and is looked after no more.
  auto session = bytes ? turn.decoded<SessionRow>(key, *bytes) : std::nullopt;
  if (!session || session->due != due) return txn.clear(due_key(due, space, id));
  WallTime heard = from_ns(session->updated);
  std::optional<WallTime> next;
  if (heard + kIdleTime <= now) {
    bool empty = said_nothing(txn, space, *session), all_read = is_read(txn, space, id);
    if (!session->favourite && (heard + kSessionsKept <= now || (empty && all_read)))
      return remove_session(txn, space, id, *session, now);
    if (!all_read) next = now + kIdleTime;
    if (session->status != Status::kEnded) {
      session->status = Status::kEnded;
      note_status(txn, space, id, *session, now);
    }
    if (!session->favourite) next = earlier(next, heard + kSessionsKept);
  } else {
    next = heard + kIdleTime;
  }
  bool all = old_messages_go(turn, space, *session, next) && old_hooks_go(turn, space, session->number, next);
  session->due = due_after(turn, all, next);
  write_session(txn, space, id, *session);
}

void tend_nobody(Tending& turn, std::string_view space, std::int64_t due) {
  turn.txn.clear(due_key(due, space, kNobody));
  std::optional<WallTime> next;
  bool all = old_hooks_go(turn, space, 0, next);
  if (std::int64_t again = due_after(turn, all, next); again != 0) turn.txn.set(due_key(again, space, kNobody), {});
}

/// Those of which something is due, as many as one turn sees to.
void tend_due(Tending& tending, DueTurn& turn) {
  Transaction& txn = tending.txn;
  for (const Row& row : txn.get_range(tuple::extensions(timetable()), {.limit = kSessionsAtOnce + 1})) {
    if (tending.spent()) break;
    auto place = tuple::unpack_after<std::int64_t, std::string, std::string>(timetable(), row.key);
    if (place && std::get<0>(*place) > to_ms(tending.now)) {
      // Those that were seen to may come before it by now.
      if (!turn.acted) turn.next = WallTime(std::chrono::milliseconds(std::get<0>(*place)));
      break;
    }
    turn.acted = true;
    if (!place)
      txn.clear(row.key);
    else if (const auto& [due, space, id] = *place; id == kNobody)
      tend_nobody(tending, space, due);
    else
      tend_session(tending, space, id, due);
  }
  turn.more = turn.acted;
}

}  // namespace

DueTurn tend(Transaction& txn, WallTime now, const SayDamaged& say) {
  DueTurn turn;
  Tending tending{txn, now};
  Bytes gone = gone_sessions();
  auto first = txn.get_range(tuple::extensions(gone), {.limit = 1});
  if (!first.empty()) {
    auto which = tuple::unpack_after<std::string, std::uint64_t>(gone, first[0].key);
    if (!which || remove_some(tending, std::get<0>(*which), std::get<1>(*which))) txn.clear(first[0].key);
    turn.more = true;
  } else {
    tend_due(tending, turn);
  }
  if (!tending.damaged.empty() && say)
    turn.committed = [say, damaged = std::move(tending.damaged)] {
      for (const Bytes& key : damaged) say(key);
    };
  return turn;
}

std::optional<WallTime> next_due(Reader& reader) {
  auto rows = reader.get_range(tuple::extensions(timetable()), {.limit = 1});
  if (rows.empty()) return std::nullopt;
  auto place = tuple::unpack_after<std::int64_t, std::string, std::string>(timetable(), rows[0].key);
  return WallTime(std::chrono::milliseconds(place ? std::get<0>(*place) : 0));
}

bool has_gone(Reader& reader) {
  return !reader.get_range(tuple::extensions(gone_sessions()), {.limit = 1}).empty();
}

}  // namespace perdure::transcript
