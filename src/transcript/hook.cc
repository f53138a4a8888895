#include "transcript/hook.h"

#include <algorithm>

#include "base/rfc3339.h"
#include "session/rows.h"
#include "transcript/file.h"
#include "transcript/hook_fields.h"
#include "transcript/json_text.h"
#include "transcript/lines.h"

namespace perdure::transcript {
namespace {

constexpr std::size_t kChunkBytes = 500'000;
/// Of what is kept of a hook besides its payload, so that rows have room for it whatever it says.
constexpr std::size_t kPromptBytesMax = 500'000;
constexpr std::size_t kTypeBytesMax = 100;
constexpr std::size_t kTimeBytesMax = 100;
/// Hooks of no session are kept so that somebody can see what is wrong with them: so many, or fewer if they are long,
/// as each counts once more for every kNobodysBytes that it has.
constexpr std::uint64_t kNobodysKept = 1'000;
constexpr std::size_t kNobodysBytes = std::size_t{64} << 10;

std::optional<std::string> unless_empty(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

void take_fields(HookFields fields, Hook& hook) {
  hook.type = fields.hook_event_name.empty() ? "unknown" : first_bytes(fields.hook_event_name, kTypeBytesMax);
  hook.detail = std::move(hook.type == "SessionStart" ? fields.source : fields.notification_type);
  if (fields.cwd.size() <= kPathBytesMax) hook.project = unless_empty(std::move(fields.cwd));
  hook.prompt = unless_empty(std::move(fields.prompt));
  if (hook.prompt) hook.prompt->resize(first_bytes(*hook.prompt, kPromptBytesMax).size());
  if (fields.timestamp.size() <= kTimeBytesMax) hook.time = std::move(fields.timestamp);
  const std::string& session = fields.session_id;
  if (session.empty()) {
    hook.problem = "it has no session_id";
  } else if (auto good = session::check_name(session, "the session"); !good || session == "." || session == "..") {
    hook.problem = good ? "a session cannot be called '.' or '..'" : good.error().message;
  } else {
    hook.session = session;
  }
  if (fields.transcript_path.empty()) return;
  if (auto good = check_path_text(fields.transcript_path); good)
    hook.transcript_path = std::move(fields.transcript_path);
  else
    hook.problem = good.error().message;
}

std::optional<Status> status_after(const Hook& hook) {
  if (hook.type == "SessionStart") return Status::kStarted;
  if (hook.type == "UserPromptSubmit" || hook.type == "PreToolUse" || hook.type == "PostToolUse")
    return Status::kActive;
  if (hook.type == "Stop") return Status::kDone;
  if (hook.type == "SessionEnd") return Status::kEnded;
  if (hook.type == "Notification" && hook.detail == "permission_prompt") return Status::kPermissionNeeded;
  if (hook.type == "Notification" && hook.detail == "idle_prompt") return Status::kIdle;
  return std::nullopt;
}

/// The hook itself, in as many rows as it takes, and what it is known by when it comes again.
void keep_hook(Transaction& txn, std::string_view space, BytesView data, std::uint64_t number, const Hook& hook,
               WallTime came) {
  if (!hook.id.empty()) txn.set(seen_key(space, hook.id), {});
  if (!hook.time.empty()) txn.set(own_time_key(data, hook.type, hook.time), {});
  Bytes key = tuple::pack_onto(hooks_key(data), number);
  std::string_view text = hook.text;
  HookRow row{key_text(hook.id), hook.type, to_ns(came), hook.time, Blob{Bytes(text.substr(0, kChunkBytes))}};
  txn.set(tuple::pack_onto(key, 0), encode(row));
  for (std::size_t i = 1; i * kChunkBytes < text.size(); ++i)
    txn.set(tuple::pack_onto(key, i), text.substr(i * kChunkBytes, kChunkBytes));
}

void keep_nobodys(Transaction& txn, std::string_view space, const Hook& hook, WallTime came) {
  Bytes data = data_key(space, 0);
  std::uint64_t number = static_cast<std::uint64_t>(decode_counter(txn.get(data))) + 1;
  number += hook.text.size() / kNobodysBytes;
  txn.set(data, encode_counter(static_cast<std::int64_t>(number)));
  if (txn.get_range(tuple::extensions(hooks_key(data)), {.limit = 1}).empty()) {
    txn.set(due_key(to_ms(came + kHooksKept), space, kNobody), {});
    txn.add(bell(), 1);
  }
  keep_hook(txn, space, data, number, hook, came);
  if (number <= kNobodysKept) return;
  KeyRange too_many = tuple::extensions(hooks_key(data));
  too_many.end = tuple::extensions(tuple::pack_onto(hooks_key(data), number - kNobodysKept)).end;
  for (const Row& row : txn.get_range(too_many)) forget_hook(txn, space, data, row);
}

void keep_project(Transaction& txn, std::string_view space, const std::string& path, WallTime came) {
  if (path.empty()) return;
  Bytes key = project_key(space, path);
  ProjectRow row = read<ProjectRow>(txn, key).value_or(ProjectRow{path, to_ns(came), 0});
  row.updated = std::max(row.updated, to_ns(came));
  txn.set(key, encode(row));
}

/// Others of the project that started before and have said nothing, unless somebody wants to keep them. One that was
/// resumed, or whose context was cleared, has started too, and has said what it said.
void remove_started(Transaction& txn, std::string_view space, const std::string& project, const std::string& but,
                    WallTime came, WallTime now) {
  if (project.empty()) return;
  constexpr std::size_t kAtOnce = 100;
  Bytes started = started_key(space, project);
  for (const Row& row : txn.get_range(tuple::extensions(started), {.limit = kAtOnce})) {
    auto id = tuple::unpack_after<std::string>(started, row.key);
    if (!id || std::get<0>(*id) == but) continue;
    auto session = read<SessionRow>(txn, session_key(space, std::get<0>(*id)));
    if (session && !session->favourite && session->updated <= to_ns(came) && said_nothing(txn, space, *session))
      remove_session(txn, space, std::get<0>(*id), *session, now);
  }
}

void add_prompt(Transaction& txn, std::string_view space, SessionRow& session, const Hook& hook, WallTime came) {
  ++session.prompts;
  // By the clock of the transcript, if that is known: messages are told apart by it.
  WallTime at = parse_rfc3339(hook.time).value_or(hook.sent.value_or(came));
  bool asks = hook.type == "UserPromptSubmit" && hook.prompt;
  write_prompt(txn, data_key(space, session.number), session.prompts, {asks ? *hook.prompt : "", to_ns(at)});
}

SessionRow new_session(Transaction& txn, std::string_view space, const Hook& hook, WallTime came) {
  Bytes numbers = numbers_key(space);
  SessionRow session;
  session.number = static_cast<std::uint64_t>(decode_counter(txn.get(numbers))) + 1;
  txn.set(numbers, encode_counter(static_cast<std::int64_t>(session.number)));
  session.project = hook.project.value_or("");
  session.created = to_ns(came);
  txn.set(alive_key(data_key(space, session.number)), {});
  return session;
}

void change_session(Transaction& txn, std::string_view space, SessionRow& session, const Hook& hook, WallTime came) {
  bool is_latest = session.updated <= to_ns(came);
  session.updated = std::max(session.updated, to_ns(came));
  if (auto status = status_after(hook); status && session.status_at <= to_ns(came)) {
    session.status = *status;
    session.status_at = to_ns(came);
  }
  if (hook.transcript_path && (is_latest || session.transcript_path.empty()))
    session.transcript_path = *hook.transcript_path;
  if (hook.type == "SessionStart" && hook.detail != "resume") add_prompt(txn, space, session, hook, came);
  if (hook.type == "UserPromptSubmit") {
    add_prompt(txn, space, session, hook, came);
    if (session.name.empty() && hook.prompt) session.name = first_characters(*hook.prompt, kNameCharacters);
  }
  // One that had ended is looked after as soon as one that is new.
  std::int64_t due = to_ms(from_ns(session.updated) + kIdleTime);
  if (session.due == 0 || session.due > due) session.due = due;
}

}  // namespace

WallTime came_at(WallTime sent, const Clocks& now, Duration at_most) {
  if (sent > now.wall || (at_most != Duration::max() && sent < now.wall - at_most)) return now.store;
  return sent + std::max(now.store - now.wall, Duration::zero());
}

Hook read_hook(std::string text, std::string id) {
  Hook hook{.text = std::move(text), .id = std::move(id), .type = "invalid"};
  // It becomes part of a key, and of a row.
  if (!tuple::check_text(hook.id, "the id")) hook.id = printable(hook.id, hook.id.size());
  const std::size_t size = hook.text.size();
  hook.text.append(kLinePadding, '\0');
  auto fields = read_hook_fields(std::string_view(hook.text).substr(0, size));
  hook.text.resize(size);
  if (fields)
    take_fields(std::move(*fields), hook);
  else
    hook.problem = std::move(fields.error().message);
  return hook;
}

void note_look(const Result<void>& found, Hook& hook) {
  // What cannot be looked at just now is looked at again when it is read.
  if (found || found.error().code == ErrorCode::kUnavailable) return;
  hook.transcript_path.reset();
  hook.problem = found.error().message;
}

void forget_hook(Transaction& txn, std::string_view space, BytesView data, const Row& row) {
  auto place = tuple::unpack_after<std::uint64_t, std::uint64_t>(hooks_key(data), row.key);
  auto hook = place && std::get<1>(*place) == 0 ? decode<HookRow>(row.value) : HookRow();
  if (hook && !hook->id.empty()) txn.clear(seen_key(space, hook->id));
  if (hook && !hook->time.empty()) txn.clear(own_time_key(data, hook->type, hook->time));
  txn.clear(row.key);
}

Taken take_hook(Transaction& txn, std::string_view space, const Hook& hook, Debouncers& debouncers, WallTime now) {
  SystemAccess access(txn);
  if (!hook.id.empty() && txn.get(seen_key(space, hook.id))) return Taken::kDuplicate;
  // By another clock, which may be ahead.
  const WallTime came = std::min(hook.came.value_or(now), now);
  if (hook.session.empty()) {
    keep_nobodys(txn, space, hook, came);
    return Taken::kNew;
  }
  auto found = read<SessionRow>(txn, session_key(space, hook.session));
  if (found && !hook.time.empty() && txn.get(own_time_key(data_key(space, found->number), hook.type, hook.time)))
    return Taken::kDuplicate;
  bool is_new = !found;
  SessionRow session = found ? std::move(*found) : new_session(txn, space, hook, came);
  const Status status = session.status;
  const std::uint64_t prompts = session.prompts;
  Bytes data = data_key(space, session.number);
  keep_hook(txn, space, data, ++session.hooks, hook, came);
  keep_project(txn, space, session.project, came);
  if (hook.type == "SessionStart") remove_started(txn, space, session.project, hook.session, came, now);
  change_session(txn, space, session, hook, came);
  write_session(txn, space, hook.session, session);
  // Most hooks say nothing that is not known.
  if (is_new || session.status != status || session.prompts != prompts)
    note_status(txn, space, hook.session, session, now);
  if (hook.problem.empty() || !session.transcript_path.empty())
    debouncers.in(std::string(space)).touch(txn, kDebouncer, hook.session);
  return Taken::kNew;
}

}  // namespace perdure::transcript
