#include "actor/admin.h"

#include <algorithm>

#include "actor/commit.h"
#include "actor/mailbox.h"
#include "actor/state_codec.h"
#include "session/rows.h"
#include "store/read_page.h"

namespace perdure::actor {
namespace {

/// Rows of one sort that one transaction deletes.
constexpr std::size_t kKilledAtOnce = 4'000;
constexpr std::size_t kWaitingMax = 1'000;
constexpr std::size_t kPage = 500;

Error killed(const ActorId& actor) {
  return {ErrorCode::kActorGone, actor.to_string() + " was killed before it replied to this call"};
}

/// Clears the rows under `prefix` up to a bound; whether that was all.
bool clear_some(Transaction& txn, const Bytes& prefix) {
  auto rows = txn.get_range(tuple::extensions(prefix), {.limit = kKilledAtOnce});
  for (const Row& row : rows) txn.clear(row.key);
  return rows.size() < kKilledAtOnce;
}

/// Tells those who wait; their rows stay until they have read that, or their session is over.
bool fail_waiting(Transaction& txn, const ActorId& actor, BytesView prefix) {
  Bytes waiting = waiting_key(prefix);
  KeyRange range = tuple::extensions(waiting);
  std::size_t failed = 0;
  for (;;) {
    auto rows = txn.get_range(range, {.limit = kPage});
    for (const Row& row : rows) {
      auto parts = tuple::unpack_after<std::int64_t, Stamp, std::uint64_t, std::uint64_t>(waiting, row.key);
      if (!parts) continue;
      Caller caller{std::get<0>(*parts), std::get<1>(*parts), std::get<2>(*parts)};
      if (!session::is_open(txn, SessionId{caller.session})) {
        txn.clear(row.key);
        ++failed;
      } else if (row.value.empty() && std::get<3>(*parts) == 0) {
        write_reply(txn, prefix, caller, std::unexpected(killed(actor)));
        ++failed;
      }
    }
    if (rows.size() < kPage) return true;
    // Those who have their reply already are no reason to come again.
    if (failed >= kKilledAtOnce) return false;
    range.begin = next_key(rows.back().key);
  }
}

bool clear_mailbox(Transaction& txn, BytesView prefix) {
  Bytes mailbox = mailbox_key(prefix);
  auto rows = txn.get_range(tuple::extensions(mailbox), {.limit = kKilledAtOnce});
  for (const Row& row : rows) txn.clear(row.key);
  txn.add(pops_key(prefix), static_cast<std::int64_t>(rows.size()));
  return rows.size() < kKilledAtOnce;
}

}  // namespace

Killed kill_some(Transaction& txn, const ActorId& actor, WallTime now) {
  Bytes prefix = prefix_of(actor);
  // Callers first: a message that is gone without a word to its caller would be one too many.
  bool all = fail_waiting(txn, actor, prefix);
  all = all && clear_mailbox(txn, prefix);
  all = all && clear_some(txn, dead_key(prefix));
  if (!all) return Killed::kPart;
  if (auto head = read_head(txn, prefix); head && head->lock) txn.clear(held_lock_key(head->lock->session, actor));
  Bytes state = state_key(prefix);
  txn.clear_range(state_range(state));
  txn.clear(head_key(prefix));
  txn.clear(attempts_key(prefix));
  for (const Bytes& counter : {pushes_key(prefix), pops_key(prefix), dead_count_key(prefix)}) txn.clear(counter);
  txn.clear(ready_key(actor));
  note(txn, actor, ChangeState::kKilled, now);
  return Killed::kWhole;
}

Result<ActorInfo> inspect(Reader& reader, const ActorId& actor) {
  SystemAccess access(reader);
  Bytes prefix = prefix_of(actor);
  ActorInfo info;
  auto head = read_head(reader, prefix);
  if (head) {
    Bytes key = state_key(prefix);
    auto state = read_state(key, reader.get_range(state_range(key)));
    if (!state) return std::unexpected(std::move(state.error()));
    info.state = std::move(state->value);
    info.version = head->version;
    info.schema = head->schema;
    if (head->lock && session::is_open(reader, head->lock->session))
      info.locked = LockInfo{head->lock->session, Token{head->lock->token, session::read_store_number(reader)}};
  }
  info.mailbox_length = mailbox_length(reader, prefix);
  Bytes mailbox = mailbox_key(prefix);
  auto first = reader.get_range(tuple::extensions(mailbox), {.limit = 1});
  if (!first.empty()) info.oldest = readable(reader, decode_item(mailbox, first[0])).message.pushed;
  info.dead = static_cast<std::uint64_t>(std::max<std::int64_t>(decode_counter(reader.get(dead_count_key(prefix))), 0));
  info.waiting = reader.get_range(tuple::extensions(waiting_key(prefix)), {.limit = kWaitingMax}).size();
  if (!head && first.empty() && info.dead == 0 && info.waiting == 0)
    return fail(ErrorCode::kNotFound, "there is nothing of " + actor.to_string());
  return info;
}

std::vector<DeadLetter> dead_letters(Reader& reader, const ActorId& actor, std::size_t limit, Stamp after) {
  SystemAccess access(reader);
  Bytes dead = dead_key(prefix_of(actor));
  std::vector<DeadLetter> letters;
  KeyRange range = tuple::extensions(dead);
  if (after != Stamp{}) range.begin = next_key(tuple::pack_onto(dead, after));
  for (const Row& row : read_page(reader, range, limit)) {
    auto id = tuple::unpack_after<Stamp>(dead, row.key);
    if (!id) continue;
    DeadRow letter = readable(reader, DeadRow::decode(row.value));
    letters.push_back({std::get<0>(*id), letter.message.type, Value::decode(letter.message.body).value_or(Value()),
                       std::move(letter.error), letter.attempts, letter.at});
  }
  return letters;
}

std::uint64_t redrive(Transaction& txn, const ActorId& actor, std::size_t limit, WallTime now) {
  SystemAccess access(txn);
  Bytes prefix = prefix_of(actor);
  auto rows = read_page(txn, tuple::extensions(dead_key(prefix)), std::min(limit, kKilledAtOnce));
  std::vector<Message> messages;
  for (const Row& row : rows) {
    messages.push_back(readable(txn, DeadRow::decode(row.value)).message);
    messages.back().pushed = now;
    txn.clear(row.key);
  }
  if (messages.empty()) return 0;
  txn.add(dead_count_key(prefix), -static_cast<std::int64_t>(rows.size()));
  (void)push(txn, actor, messages, Bound::kIgnored);
  return rows.size();
}

std::vector<std::string> list(Reader& reader, std::string_view space, std::string_view kind, const ActorPage& page) {
  SystemAccess access(reader);
  Bytes of_kind = tuple::pack_onto(kSystemKeys, "actor", space, kind);
  KeyRange range = tuple::extensions(of_kind);
  if (!page.prefix.empty()) {
    // Up to where the text goes on, without the byte that ends it.
    Bytes begin = tuple::pack_onto(of_kind, page.prefix);
    begin.pop_back();
    range = prefix_range(begin);
  }
  if (!page.after.empty()) range.begin = std::max(range.begin, tuple::range_onto(of_kind, page.after).end);
  std::vector<std::string> ids;
  // One seek for each: past all rows of the one before.
  while (ids.size() < page.limit && !range.empty()) {
    auto row = reader.get_range(range, {.limit = 1});
    if (row.empty()) break;
    tuple::Reader key(row[0].key);
    key.skip_prefix(of_kind);
    ids.emplace_back(key.next_text());
    if (!key.ok()) break;
    range.begin = tuple::range_onto(of_kind, ids.back()).end;
  }
  return ids;
}

}  // namespace perdure::actor
