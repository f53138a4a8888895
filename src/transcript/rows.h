// The rows of transcripts, all of them among perdure's own keys; see docs/internals/key_layout.md. With P for
// ("transcript", space), and N for the number of a session, which is never given again:
//
//     (P, "project", path)               -> when it was first and last heard of
//     (P, "session", id)                 -> what is known of a session
//     (P, "started", project, id)        -> nothing: a session that has started, and done nothing yet
//     (P, "numbers")                     -> the last N
//     (P, "uuid", uuid)                  -> which entry has it, see uuids.h
//     (P, "seen", id)                    -> nothing: the hook with that id was taken
//     (P, "data", N, "a")                -> nothing, as long as there is the session
//     (P, "data", N, "h", n, i)          -> the n-th hook of a session, in chunks
//     (P, "data", N, "o", type, time)    -> nothing: a hook of that type with that time of its own was taken
//     (P, "data", N, "p", n)             -> its n-th prompt
//     (P, "data", N, "q", time, n)       -> the hash of that prompt's text, or nothing if it came without one
//     (P, "data", N, "m", time, n)       -> the message of its n-th entry, in the order of the transcript's own times
//     (P, "data", N, "v", n)             -> the n-th answer of a tool
//     (P, "data", N, "r", tool)          -> n, for the answer to a call whose message does not say it
//     (P, "data", N, "s")                -> how far its transcript was read
//     (P, "data", N, "t")                -> the message with its list of things to do
//     (P, "data", N, "u", uuid)          -> nothing: a message that is replaced by another, and still known
//     (P, "data", N, "b", i)             -> uuids that were booked ahead, see uuids.h
//
//     ("transcript-due", ms, space, id)  -> nothing: a session that is to be looked after then; "" for hooks of nobody
//     ("transcript-gone", space, N)      -> nothing: what is left of a session is to be removed
//     ("transcript-bell")                -> a counter: one of these has been written
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/describe.h"
#include "perdure/time.h"
#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "store/ranges.h"

namespace perdure::transcript {

enum class Status { kStarted, kActive, kIdle, kPermissionNeeded, kDone, kEnded };
/// "started", "permission_needed", ...
std::string_view name_of(Status status);
bool is_status(std::string_view name);

/// A moment as rows have it, in nanoseconds.
inline std::int64_t to_ns(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
inline WallTime from_ns(std::int64_t ns) {
  return WallTime(std::chrono::nanoseconds(ns));
}
/// As the timetable has it: not before that moment.
inline std::int64_t to_ms(WallTime time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// How long messages are kept, after their own time and after that of their session.
inline constexpr Duration kMessagesKept = std::chrono::hours(3 * 24);
/// What a session is called by has no more characters than this.
inline constexpr std::size_t kNameCharacters = 200;
/// Instead of a session, in the timetable: the hooks of nobody.
inline constexpr std::string_view kNobody;

struct ProjectRow {
  std::string path;
  std::int64_t created = 0;
  std::int64_t updated = 0;
  PERDURE_DESCRIBE(ProjectRow, path, created, updated)
};

struct SessionRow {
  std::uint64_t number = 0;
  std::string project;
  std::string name;
  std::string transcript_path;
  Status status = Status::kStarted;
  std::int64_t created = 0;
  std::int64_t updated = 0;
  bool favourite = false;
  /// How many of each there have been; they are numbered from 1.
  std::uint64_t hooks = 0;
  std::uint64_t prompts = 0;
  /// When it is looked after next, in ms; 0 for never.
  std::int64_t due = 0;
  /// When the hook came that the status is by.
  std::int64_t status_at = 0;
  PERDURE_DESCRIBE(SessionRow, number, project, name, transcript_path, status, created, updated, favourite, hooks,
                   prompts, due, status_at)
};

/// What was read of the transcript of a session: apart from what hooks change, so that neither waits for the other.
struct ProgressRow {
  std::uint64_t messages = 0;
  /// Where reading stopped, and how much was read so far.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t tail = 0;
  /// How many calls of tools were answered; the answers are numbered from 1.
  std::uint64_t results = 0;
  /// How many entries were read, those that were known or of no use too. Messages are numbered by them.
  std::uint64_t entries = 0;
  /// See Position.
  bool inside = false;
  /// Of so many prompts it was seen to that those without a text of their own have the right one.
  std::uint64_t prompts = 0;
  PERDURE_DESCRIBE(ProgressRow, messages, device, inode, offset, bytes_read, tail, results, entries, inside, prompts)
};

struct PromptRow {
  std::string text;
  std::int64_t at = 0;
  /// When the user said its text, if it came without one and has what was said last.
  std::optional<std::int64_t> said = {};
  PERDURE_DESCRIBE(PromptRow, text, at, said)
};

struct ToolRow {
  std::string id;
  std::string name;
  /// See ToolCall.
  std::string input;
  /// Its answer, if that was stored with it, or 0; see answer_of.
  std::uint64_t result = 0;
  PERDURE_DESCRIBE(ToolRow, id, name, input, result)
};

struct MessageRow {
  std::string uuid = {};
  bool is_user = false;
  std::string body = {};
  std::string thinking = {};
  std::vector<ToolRow> tools = {};
  /// More than a row has room for was left out.
  bool cut = false;
  PERDURE_DESCRIBE(MessageRow, uuid, is_user, body, thinking, tools, cut)
};

struct ResultRow {
  std::string output;
  bool is_error = false;
  bool cut = false;
  PERDURE_DESCRIBE(ResultRow, output, is_error, cut)
};

/// The beginning of a hook; its payload follows, as text, in this row and in those behind it.
struct HookRow {
  /// As keys have it.
  std::string id;
  std::string type;
  std::int64_t at = 0;
  /// Its own time, as text; empty if it has none.
  std::string time;
  Blob text;
  PERDURE_DESCRIBE(HookRow, id, type, at, time, text)
};

// Keys. Texts of any length are cut to what a key has room for, with a hash of the whole behind it; those with a NUL
// in them are the hash alone.
std::string key_text(std::string_view text);

inline Bytes root(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "transcript", space);
}
inline Bytes projects_key(std::string_view space) {
  return tuple::pack_onto(root(space), "project");
}
inline Bytes project_key(std::string_view space, std::string_view path) {
  return tuple::pack_onto(projects_key(space), key_text(path));
}
inline Bytes sessions_key(std::string_view space) {
  return tuple::pack_onto(root(space), "session");
}
inline Bytes session_key(std::string_view space, std::string_view id) {
  return tuple::pack_onto(sessions_key(space), id);
}
inline Bytes started_key(std::string_view space, std::string_view project) {
  return tuple::pack_onto(root(space), "started", key_text(project));
}
inline Bytes numbers_key(std::string_view space) {
  return tuple::pack_onto(root(space), "numbers");
}
inline Bytes uuid_key(std::string_view space, std::string_view uuid) {
  return tuple::pack_onto(root(space), "uuid", key_text(uuid));
}
inline Bytes seen_key(std::string_view space, std::string_view id) {
  return tuple::pack_onto(root(space), "seen", key_text(id));
}
inline Bytes data_key(std::string_view space, std::uint64_t number) {
  return tuple::pack_onto(root(space), "data", number);
}
inline Bytes alive_key(BytesView data) {
  return tuple::pack_onto(data, "a");
}
inline Bytes progress_key(BytesView data) {
  return tuple::pack_onto(data, "s");
}
inline Bytes hooks_key(BytesView data) {
  return tuple::pack_onto(data, "h");
}
inline Bytes own_time_key(BytesView data, std::string_view type, std::string_view time) {
  return tuple::pack_onto(data, "o", key_text(type), key_text(time));
}
inline Bytes prompts_key(BytesView data) {
  return tuple::pack_onto(data, "p");
}
/// Prompts in the order of their times, without their texts.
inline Bytes prompt_times_key(BytesView data) {
  return tuple::pack_onto(data, "q");
}
inline Bytes messages_key(BytesView data) {
  return tuple::pack_onto(data, "m");
}
/// Ids of calls come in no order, and each such row changes another page of the store. So it is only there for answers
/// that were not stored together with their calls.
inline Bytes result_number_key(BytesView data, std::string_view tool) {
  return tuple::pack_onto(data, "r", key_text(tool));
}
inline Bytes result_key(BytesView data, std::uint64_t n) {
  return tuple::pack_onto(data, "v", n);
}
inline Bytes todo_key(BytesView data) {
  return tuple::pack_onto(data, "t");
}
inline Bytes replaced_key(BytesView data) {
  return tuple::pack_onto(data, "u");
}
inline Bytes booked_key(BytesView data) {
  return tuple::pack_onto(data, "b");
}
inline Bytes timetable() {
  return tuple::pack_onto(kSystemKeys, "transcript-due");
}
inline Bytes due_key(std::int64_t ms, std::string_view space, std::string_view id) {
  return tuple::pack_onto(timetable(), ms, space, id);
}
inline Bytes gone_sessions() {
  return tuple::pack_onto(kSystemKeys, "transcript-gone");
}
inline Bytes bell() {
  return tuple::pack_onto(kSystemKeys, "transcript-bell");
}

/// A row that is described, as it is stored.
template <class T>
Bytes encode(const T& row) {
  return to_value(row).encode();
}
/// Errors: kCorrupt.
template <class T>
Result<T> decode(BytesView bytes) {
  auto value = Value::decode(bytes);
  auto row = value ? from_value<T>(*value, UnknownFields::kIgnore) : std::unexpected(value.error());
  if (!row)
    return fail(ErrorCode::kCorrupt, "a row of a transcript cannot be read; run verify: " + row.error().message);
  return row;
}
/// What is damaged makes the transaction fail. Needs system access, as all that follows.
template <class T>
std::optional<T> read(Reader& reader, BytesView key);

/// Whether the session has neither a prompt with a text nor a message, and never had.
bool said_nothing(Reader& reader, std::string_view space, const SessionRow& session);
/// Which answer is that of a call; 0 for none. One that came later is found by the id of the call, and is the better
/// one.
std::uint64_t answer_of(Reader& reader, BytesView data, const ToolRow& tool);
/// That of a row by the id of a call; 0 if there is none.
std::uint64_t decode_number(const std::optional<Bytes>& row);
/// Messages with a time up to this would go at once.
WallTime oldest_kept(const SessionRow& session, WallTime now);
/// The n-th prompt of a session.
void write_prompt(Transaction& txn, BytesView data, std::uint64_t n, const PromptRow& prompt);
/// What the order of prompts has of a text.
Bytes text_mark(std::string_view text);
/// Writes the session, and files when it is to be looked after.
void write_session(Transaction& txn, std::string_view space, std::string_view id, SessionRow& session);
/// Takes it away, and leaves the rest of it to whoever looks after what is gone.
void remove_session(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                    WallTime now);
/// Of a path: what people call a project by.
std::string_view last_component(std::string_view path);
/// Tells the feed of changes what became of a session: its status, or that it has `count` messages more, `messages` by
/// now.
void note_status(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                 WallTime now);
void note_favourite(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                    WallTime now);
void note_messages(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                   std::uint64_t count, std::uint64_t messages, WallTime now);

}  // namespace perdure::transcript

#include "store/system_access.h"

namespace perdure::transcript {

template <class T>
std::optional<T> read(Reader& reader, BytesView key) {
  auto bytes = reader.get(key);
  if (!bytes) return std::nullopt;
  return in_txn(reader, decode<T>(*bytes));
}

}  // namespace perdure::transcript
