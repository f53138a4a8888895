#include "actor/housekeeping.h"

#include "actor/actors_impl.h"
#include "actor/collect.h"
#include "actor/mailbox.h"
#include "actor/rows.h"
#include "base/seeded_bug.h"

namespace perdure::actor {
namespace {

constexpr std::size_t kPromotedAtOnce = 30;
constexpr std::size_t kPromotedBytes = 2'000'000;
constexpr Duration kCollectEvery = std::chrono::minutes(10);
constexpr Duration kRetry = std::chrono::milliseconds(200);

constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

/// Pushes a delayed cast whose time has come. A mailbox that is full takes it all the same: it was promised.
void push_due(Transaction& txn, const Row& row, WallTime now) {
  if (!seeded(SeededBug::kPromoteTwice)) txn.clear(row.key);
  auto delayed = decode_delayed(row.value);
  if (!delayed) return;
  Message message{MessageType::kCast, now, {}, std::move(delayed->body), std::move(delayed->traceparent)};
  (void)push(txn, delayed->actor, {&message, 1}, Bound::kIgnored);
}

std::optional<WallTime> due_time(const Row& row) {
  auto parts = tuple::unpack_after<std::int64_t, Stamp>(due_prefix(), row.key);
  if (!parts) return std::nullopt;
  return WallTime(Duration(std::get<0>(*parts)));
}

DueLoop<ActorsImpl>::Turn promote(Transaction& txn, WallTime now) {
  SystemAccess access(txn);
  DueLoop<ActorsImpl>::Turn turn;
  std::size_t count = 0, bytes = 0;
  for (const Row& row : txn.get_range(tuple::extensions(due_prefix()), {.limit = kPromotedAtOnce + 1})) {
    if (auto due = due_time(row); due && *due > now) {
      turn.next = due;
      break;
    }
    turn.more = count == kPromotedAtOnce || bytes > kPromotedBytes || access.is_full();
    if (turn.more) break;
    ++count;
    bytes += row.value.size();
    push_due(txn, row, now);
  }
  turn.acted = count > 0;
  return turn;
}

}  // namespace

std::optional<WallTime> first_delayed(Reader& reader) {
  auto rows = reader.get_range(tuple::extensions(due_prefix()), {.limit = 1});
  // One whose key cannot be read is due at once.
  return rows.empty() ? std::nullopt : std::optional(due_time(rows[0]).value_or(WallTime()));
}

Housekeeping::Housekeeping(ActorsImpl& home) : home_(home), delayed_casts_(home, due_bell_key(), promote) {}

void Housekeeping::start() {
  follow_deaths();
  delayed_casts_.start();
  home_.at(home_.scheduler().now() + kCollectEvery, [this] { collect_again(); });
}

// Deaths.

void Housekeeping::follow_deaths() {
  struct Seen {
    std::optional<Bytes> fallen;
    Watch watch;
  };
  home_.transact(
      [](Transaction& txn) {
        SystemAccess access(txn);
        Watch watch = txn.watch(fallen_key());
        return Seen{txn.snapshot().get(fallen_key()), watch};
      },
      [this](Result<Seen> seen, Receipt) {
        if (!seen && seen.error().code == ErrorCode::kClosed) return;
        if (!seen) {
          home_.at(home_.scheduler().now() + kRetry, [this] { follow_deaths(); });
          return;
        }
        if (auto stamp = Stamp::decode(seen->fallen.value_or(""))) home_.careful_from(stamp->version.number);
        seen->watch.then(home_.guarded([this] { follow_deaths(); }));
      },
      {});
}

// Abandoned callers.

void Housekeeping::collect_again() {
  collect(home_.options().abandoned_after, [this](const Result<std::uint64_t>&) {
    home_.at(home_.scheduler().now() + kCollectEvery, [this] { collect_again(); });
  });
}

void Housekeeping::collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done) {
  auto before = std::chrono::duration_cast<std::chrono::seconds>((home_.now() - age).time_since_epoch()).count();
  collect_from({}, before, 0, std::move(done));
}

void Housekeeping::collect_from(Bytes after, std::int64_t before_seconds, std::uint64_t so_far,
                                std::move_only_function<void(Result<std::uint64_t>)> done) {
  home_.transact([after, before_seconds](Transaction& txn) { return collect_some(txn, after, before_seconds); },
                 [this, before_seconds, so_far, done = std::move(done)](Result<Collected> part, Receipt) mutable {
                   if (!part) return done(std::unexpected(std::move(part.error())));
                   if (!part->more) return done(so_far + part->callers);
                   collect_from(std::move(part->last), before_seconds, so_far + part->callers, std::move(done));
                 },
                 kOptions);
}

}  // namespace perdure::actor
