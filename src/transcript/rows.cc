#include "transcript/rows.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/hash.h"
#include "store/change_notes.h"
#include "transcript/json_text.h"

namespace perdure::transcript {
namespace {

/// Room for the longest that stand side by side in a key: a project and the id of a session.
constexpr std::size_t kKeyTextMax = 120;
constexpr std::size_t kKeyTextKept = 80;

constexpr auto kStatusNames =
    std::to_array<std::string_view>({"started", "active", "idle", "permission_needed", "done", "ended"});
constexpr auto kChanges =
    std::to_array<ChangeState>({ChangeState::kStarted, ChangeState::kActive, ChangeState::kIdle,
                                ChangeState::kPermissionNeeded, ChangeState::kDone, ChangeState::kEnded});

}  // namespace

std::string_view name_of(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

bool is_status(std::string_view name) {
  return std::ranges::find(kStatusNames, name) != kStatusNames.end();
}

std::string key_text(std::string_view text) {
  // A key takes two bytes for each of these.
  const bool has_nul = text.find('\0') != std::string_view::npos;
  if (text.size() <= kKeyTextMax && !has_nul) return std::string(text);
  std::array<char, 40> hash{};
  // Two of them, so that nobody meets another by chance.
  std::snprintf(hash.data(), hash.size(), "#%016llx%016llx", static_cast<unsigned long long>(hash64(text, 1)),
                static_cast<unsigned long long>(hash64(text, 2)));
  return std::string(has_nul ? "" : first_bytes(text, kKeyTextKept)) + hash.data();
}

bool said_nothing(Reader& reader, std::string_view space, const SessionRow& session) {
  // The first prompt with a text has named it.
  if (!session.name.empty()) return false;
  auto bytes = reader.get(progress_key(data_key(space, session.number)));
  if (!bytes) return true;
  // One that is damaged has been written when something was read.
  auto progress = decode<ProgressRow>(*bytes);
  return progress && progress->messages == 0;
}

Bytes text_mark(std::string_view text) {
  return text.empty() ? Bytes() : tuple::pack(hash64(text));
}

std::uint64_t decode_number(const std::optional<Bytes>& row) {
  if (!row) return 0;
  auto number = tuple::unpack_as<std::uint64_t>(*row);
  return number ? std::get<0>(*number) : 0;
}

std::uint64_t answer_of(Reader& reader, BytesView data, const ToolRow& tool) {
  std::uint64_t later = decode_number(reader.get(result_number_key(data, tool.id)));
  return later != 0 ? later : tool.result;
}

WallTime oldest_kept(const SessionRow& session, WallTime now) {
  bool all = session.favourite || from_ns(session.created) + kMessagesKept > now;
  return all ? WallTime::min() : now - kMessagesKept;
}

void write_prompt(Transaction& txn, BytesView data, std::uint64_t n, const PromptRow& prompt) {
  txn.set(tuple::pack_onto(prompts_key(data), n), encode(prompt));
  txn.set(tuple::pack_onto(prompt_times_key(data), prompt.at, n), text_mark(prompt.said ? "" : prompt.text));
}

void write_session(Transaction& txn, std::string_view space, std::string_view id, SessionRow& session) {
  Bytes key = session_key(space, id);
  auto before = read<SessionRow>(txn, key);
  bool was_started = before && before->status == Status::kStarted;
  bool is_started = session.status == Status::kStarted;
  Bytes started = tuple::pack_onto(started_key(space, session.project), id);
  if (is_started && !was_started) txn.set(started, {});
  if (was_started && !is_started) txn.clear(started);
  if (!before || before->due != session.due) {
    if (before && before->due != 0) txn.clear(due_key(before->due, space, id));
    if (session.due != 0) txn.set(due_key(session.due, space, id), {});
    txn.add(bell(), 1);
  }
  txn.set(key, encode(session));
}

void remove_session(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                    WallTime now) {
  txn.clear(session_key(space, id));
  txn.clear(alive_key(data_key(space, session.number)));
  txn.clear(tuple::pack_onto(started_key(space, session.project), id));
  if (session.due != 0) txn.clear(due_key(session.due, space, id));
  txn.set(tuple::pack_onto(gone_sessions(), space, session.number), {});
  txn.add(bell(), 1);
  SystemAccess(txn).note({.type = ChangeType::kSession,
                          .state = ChangeState::kRemoved,
                          .space = space,
                          .name = last_component(session.project),
                          .id = id,
                          .at = now});
}

std::string_view last_component(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

namespace {

void note(Transaction& txn, ChangeState state, std::string_view space, std::string_view id, const SessionRow& session,
          WallTime now) {
  SystemAccess(txn).note({.type = ChangeType::kSession,
                          .state = state,
                          .space = space,
                          .name = last_component(session.project),
                          .id = id,
                          .at = now});
}

}  // namespace

void note_status(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                 WallTime now) {
  note(txn, kChanges[static_cast<std::size_t>(session.status)], space, id, session, now);
}

void note_favourite(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                    WallTime now) {
  note(txn, ChangeState::kSet, space, id, session, now);
}

void note_messages(Transaction& txn, std::string_view space, std::string_view id, const SessionRow& session,
                   std::uint64_t count, std::uint64_t messages, WallTime now) {
  SystemAccess(txn).note({.type = ChangeType::kSession,
                          .state = ChangeState::kUpdated,
                          .space = space,
                          .name = last_component(session.project),
                          .id = id,
                          .at = now,
                          .count = count,
                          .offset = messages});
}

}  // namespace perdure::transcript
