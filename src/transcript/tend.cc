#include "transcript/tend.h"

#include <algorithm>

#include "session/timed_part.h"
#include "store/read_page.h"
#include "transcript/hook.h"
#include "transcript/rows.h"

namespace perdure::transcript {
namespace {

constexpr Duration kMessagesKept = std::chrono::hours(3 * 24);
constexpr Duration kSessionsKept = std::chrono::hours(7 * 24);
/// In one transaction.
constexpr std::size_t kSessionsAtOnce = 20;
constexpr std::size_t kRowsAtOnce = 500;

std::int64_t ms_of(WallTime time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// It may be that of another by now, if its session is gone.
void forget_uuid(Transaction& txn, std::string_view space, std::uint64_t number, std::string_view uuid) {
  Bytes key = uuid_key(space, uuid);
  if (owner_of(txn.get(key)) == number) txn.clear(key);
}

MessageRow forget_message(Transaction& txn, std::string_view space, std::uint64_t number, const Row& row) {
  MessageRow message = in_txn(txn, decode<MessageRow>(row.value));
  forget_uuid(txn, space, number, message.uuid);
  txn.clear(row.key);
  return message;
}

bool is_empty(Transaction& txn, const KeyRange& range) {
  return txn.get_range(range, {.limit = 1}).empty();
}

void forget_other(Transaction& txn, std::string_view space, std::uint64_t number, const Row& row) {
  if (auto uuid = tuple::unpack_after<std::string>(replaced_key(data_key(space, number)), row.key))
    forget_uuid(txn, space, number, std::get<0>(*uuid));
  txn.clear(row.key);
}

/// Some of what is left of a session that is gone; whether that was all.
bool remove_some(Transaction& txn, std::string_view space, std::uint64_t number) {
  Bytes data = data_key(space, number);
  const KeyRange messages = tuple::extensions(messages_key(data)), hooks = tuple::extensions(hooks_key(data));
  const KeyRange all = tuple::extensions(data);
  for (const Row& row : read_page(txn, all, kRowsAtOnce)) {
    if (messages.contains(row.key))
      forget_message(txn, space, number, row);
    else if (hooks.contains(row.key))
      forget_hook(txn, space, data, row);
    else
      forget_other(txn, space, number, row);
  }
  return is_empty(txn, all);
}

/// Those of a transcript that was old when it was first heard of are as new as the session.
bool old_messages_go(Transaction& txn, std::string_view space, const SessionRow& session, WallTime now,
                     std::optional<WallTime>& next) {
  if (session.favourite) return true;
  if (from_ns(session.created) + kMessagesKept > now) {
    next = earlier(next, from_ns(session.created) + kMessagesKept);
    return true;
  }
  Bytes data = data_key(space, session.number), messages = messages_key(data);
  std::size_t gone = 0;
  for (const Row& row : read_page(txn, tuple::extensions(messages), kRowsAtOnce)) {
    auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(messages, row.key);
    WallTime goes = place ? from_ns(std::get<0>(*place)) + kMessagesKept : now;
    if (goes > now) {
      next = earlier(next, goes);
      return true;
    }
    // With what its tools answered.
    for (const ToolRow& tool : forget_message(txn, space, session.number, row).tools)
      txn.clear(result_key(data, tool.id)), ++gone;
    if (++gone >= kRowsAtOnce) break;
  }
  return is_empty(txn, tuple::extensions(messages));
}

bool old_hooks_go(Transaction& txn, std::string_view space, const SessionRow& session, WallTime now,
                  std::optional<WallTime>& next) {
  Bytes data = data_key(space, session.number);
  const KeyRange hooks = tuple::extensions(hooks_key(data));
  for (const Row& row : read_page(txn, hooks, kRowsAtOnce)) {
    auto place = tuple::unpack_after<std::uint64_t, std::uint64_t>(hooks_key(data), row.key);
    if (place && std::get<1>(*place) == 0) {
      WallTime goes = from_ns(in_txn(txn, decode<HookRow>(row.value)).at) + kSessionsKept;
      if (goes > now) {
        next = earlier(next, goes);
        return true;
      }
    }
    forget_hook(txn, space, data, row);
  }
  return is_empty(txn, hooks);
}

bool said_nothing(Transaction& txn, std::string_view space, const SessionRow& session) {
  Bytes data = data_key(space, session.number);
  auto progress = read<ProgressRow>(txn, progress_key(data));
  if (progress && progress->messages > 0) return false;
  return std::ranges::all_of(txn.get_range(tuple::extensions(prompts_key(data)), {.limit = kRowsAtOnce}),
                             [&](const Row& row) { return in_txn(txn, decode<PromptRow>(row.value)).text.empty(); });
}

/// Whether nobody will read more of it by what is known now.
bool is_read(Reader& reader, const Debouncers& debouncers, std::string_view space, const std::string& id) {
  auto key = debouncers.in(std::string(space)).key(reader, kDebouncer, id);
  return !key || key->status == KeyStatus::kIdle;
}

void tend_session(Transaction& txn, const Debouncers& debouncers, std::string_view space, const std::string& id,
                  std::int64_t due, WallTime now) {
  auto session = read<SessionRow>(txn, session_key(space, id));
  if (!session || session->due != due) return txn.clear(due_key(due, space, id));
  WallTime heard = from_ns(session->updated);
  std::optional<WallTime> next;
  if (heard + kIdleTime <= now) {
    bool empty = said_nothing(txn, space, *session), all_read = is_read(txn, debouncers, space, id);
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
  bool all = old_messages_go(txn, space, *session, now, next) && old_hooks_go(txn, space, *session, now, next);
  // One that went on right now would be seen to in this very turn, for ever.
  std::int64_t soonest = ms_of(now) + 1;
  session->due = !all ? soonest : next ? std::max(ms_of(*next), soonest) : 0;
  write_session(txn, space, id, *session);
}

}  // namespace

DueTurn tend(Transaction& txn, const Debouncers& debouncers, WallTime now) {
  DueTurn turn;
  Bytes gone = gone_sessions();
  for (const Row& row : txn.get_range(tuple::extensions(gone), {.limit = 1})) {
    auto which = tuple::unpack_after<std::string, std::uint64_t>(gone, row.key);
    if (!which || remove_some(txn, std::get<0>(*which), std::get<1>(*which))) txn.clear(row.key);
    turn.more = true;
    return turn;
  }
  for (const Row& row : txn.get_range(tuple::extensions(timetable()), {.limit = kSessionsAtOnce + 1})) {
    auto place = tuple::unpack_after<std::int64_t, std::string, std::string>(timetable(), row.key);
    if (place && std::get<0>(*place) > ms_of(now)) {
      // Those that were seen to may come before it by now.
      if (!turn.acted) turn.next = WallTime(std::chrono::milliseconds(std::get<0>(*place)));
      break;
    }
    turn.acted = true;
    if (!place)
      txn.clear(row.key);
    else
      tend_session(txn, debouncers, std::get<1>(*place), std::get<2>(*place), std::get<0>(*place), now);
  }
  turn.more = turn.acted;
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
