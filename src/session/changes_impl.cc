#include "session/changes_impl.h"

#include <algorithm>
#include <utility>

#include "base/time_math.h"
#include "session/change_reader.h"
#include "session/rows.h"
#include "store/change_notes.h"

namespace perdure {
namespace {

constexpr std::size_t kRowsAtOnce = 1'000;
constexpr std::size_t kRowsOfPage = 100;
constexpr std::size_t kSpacesAtOnce = 256;
/// Between turns, so that many rows are cleared by one of them; of the time that they are kept, a share.
constexpr int kTurnsPerLife = 16;
constexpr Duration kShortestPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);

/// Nobody rings it: the feed is cleared by the clock alone.
Bytes no_bell() {
  return tuple::pack_onto(kSystemKeys, "changes-trim-bell");
}

}  // namespace

Result<Changes> ChangesImpl::open(Store store, ChangesOptions options) {
  if (auto good = session::check_short_name(options.space, "the space"); !good)
    return std::unexpected(std::move(good.error()));
  if (options.rows_max == 0) return fail(ErrorCode::kInvalidArgument, "rows_max of the feed must be at least 1");
  if (auto use = StoreAccess::impl(store).use(); !use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<ChangesImpl>(store, options);
  if (impl->kept_ > Duration::zero()) {
    if (auto begun = impl->begin(); !begun) return std::unexpected(std::move(begun.error()));
    if (options.trim) impl->loop_.start();
  }
  // As for schedules: handles share an owner of their own, and keep the store open.
  ChangesImpl* raw = impl.get();
  std::shared_ptr<ChangesImpl> handle(
      raw, [impl = std::move(impl), store = std::move(store)](ChangesImpl* node) { node->abandon(); });
  return Changes(std::move(handle), std::move(options.space));
}

ChangesImpl::ChangesImpl(Store& store, const ChangesOptions& options)
    : StorePart(store, "the changes of this node"),
      kept_(StoreAccess::impl(store).options().changes_kept),
      rows_max_(options.rows_max),
      clock_(scheduler_),
      // Not on the commit thread: it reads much.
      loop_(*this, no_bell(), [this](Transaction& txn, WallTime now) { return turn(txn, now); },
            {.reserve = Reserve::kMayUse}) {}

Result<void> ChangesImpl::begin() {
  auto body = [](Transaction& txn) {
    SystemAccess access(txn);
    if (!txn.get(changes_begun_key())) txn.set_stamped(changes_begun_key(), Stamped{});
  };
  constexpr TransactOptions kOptions = {.reserve = Reserve::kMayUse};
  if (may_block()) return transact_now(body, kOptions);
  transact(body, [](const Result<void>&, Receipt) {}, kOptions);
  return {};
}

ChangesImpl::Loop::Turn ChangesImpl::turn(Transaction& txn, WallTime now) {
  Loop::Turn turn{.next = plus(now, std::clamp(kept_ / kTurnsPerLife, kShortestPause, kLongestPause))};
  // Each space has one bell.
  Bytes bells = changes_bells();
  KeyRange range = tuple::extensions(bells);
  if (!after_.empty()) range.begin = next_key(changes_bell(after_));
  Reader snapshot = txn.snapshot();
  std::size_t left = kRowsAtOnce;
  std::string last = after_;
  auto spaces = snapshot.get_range(range, {.limit = kSpacesAtOnce});
  for (const Row& bell : spaces) {
    auto space = tuple::unpack_after<std::string>(bells, bell.key);
    if (!space) continue;
    left -= trim(txn, std::get<0>(*space), static_cast<std::uint64_t>(decode_counter(bell.value)), left, now);
    turn.more = left == 0;
    if (turn.more) break;
    last = std::get<0>(*space);
  }
  // From the first one on again, once all were looked at.
  if (!turn.more && spaces.size() < kSpacesAtOnce)
    last.clear();
  else
    turn.more = true;
  turn.committed = [this, last = std::move(last)] { after_ = last; };
  return turn;
}

std::size_t ChangesImpl::trim(Transaction& txn, const std::string& space, std::uint64_t written, std::size_t most,
                              WallTime now) {
  Bytes prefix = changes_prefix(space);
  KeyRange range = tuple::extensions(prefix);
  Reader snapshot = txn.snapshot();
  auto value = snapshot.get(changes_trimmed_key(space));
  session::TrimmedRow trimmed;
  if (value) trimmed = session::TrimmedRow::decode(*value).value_or(session::TrimmedRow{});
  std::size_t cleared = 0;
  bool more = true;
  while (more && cleared < most) {
    std::size_t page = std::min(kRowsOfPage, most - cleared);
    auto rows = snapshot.get_range(range, {.limit = page});
    more = rows.size() == page;
    for (const Row& row : rows) {
      auto stamp = tuple::unpack_after<Stamp>(prefix, row.key);
      auto head = ChangeRowHead::of(row.value);
      bool old = !stamp || !head || plus(head->at, kept_) <= now || written > trimmed.rows + rows_max_;
      if (!old) {
        more = false;
        break;
      }
      txn.clear(row.key);
      ++cleared;
      ++trimmed.rows;
      if (stamp) trimmed.last = {std::get<0>(*stamp), head && head->count > 0 ? head->count - 1 : UINT32_MAX};
    }
    if (!rows.empty()) range.begin = next_key(rows.back().key);
  }
  if (cleared == 0) return 0;
  // Two processes may clear the same rows at once: one of them finds that out here.
  txn.add_read_conflict(changes_trimmed_key(space));
  txn.set(changes_trimmed_key(space), trimmed.encode());
  return cleared;
}

}  // namespace perdure
