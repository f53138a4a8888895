// What happens inside the engine's commit: each transaction of the batch is judged and written, one after another.
#include "store/committer.h"

namespace perdure {
namespace {

/// Whether the transaction takes rather than gives space, so that it is let through when the disk is nearly full.
bool only_clears(const WriteSet& writes) {
  for (const auto& [key, write] : writes.points())
    if (!std::holds_alternative<WriteSet::Clear>(write)) return false;
  return writes.stamped().empty();
}

Bytes filled(const std::variant<Bytes, Stamped>& value, Version version) {
  if (const auto* stamped = std::get_if<Stamped>(&value)) return stamped->filled(version);
  return std::get<Bytes>(value);
}

}  // namespace

Result<Committer::Verdict> Committer::apply_one(Call& call, CommitView& view) {
  TransactionState& state = call.state();
  bool holds = state.can_be_validated();
  if (holds && state.epoch() && (!changes_.empty() || *state.epoch() != view.base_epoch())) {
    auto valid = state.still_valid(view, TransactionState::Reads::kConflicting);
    if (!valid) return Verdict{{}, std::move(valid.error())};
    holds = *valid;
  }
  if (!holds && call.options().body == Body::kShort && !engine_.capabilities().remote) {
    if (auto ran = state.run_in(view, call.body()); !ran)
      return Verdict{{}, std::move(ran.error()), state.beaten() ? Refusal::kBeaten : Refusal::kFinal};
  } else if (!holds) {
    return Verdict{
        {}, Error{ErrorCode::kConflict, "something that the transaction read has changed"}, Refusal::kBeaten};
  }
  if (state.writes().empty()) return Verdict{};

  if (auto allowed = check_writes(call, view); !allowed) return Verdict{{}, std::move(allowed.error())};
  batch_bytes_ += state.writes().bytes();
  Version version{view.last_version().number + 1};
  if (auto written = write(call, view, version); !written) return std::unexpected(std::move(written.error()));
  view.raise_version(version);
  return Verdict{{version}};
}

/// Refusals are decided before the first write, because a batch cannot take back the writes of one transaction alone.
Result<void> Committer::check_writes(Call& call, CommitView& view) {
  const WriteSet& writes = call.state().writes();
  if (call.options().reserve == Reserve::kKeepOut && !only_clears(writes) && !view.has_room())
    return fail(ErrorCode::kStoreFull,
                "the store is nearly full, and what is left is kept for work that frees space; make room on its disk");
  for (const KeyRange& range : writes.cleared()) {
    std::size_t max = engine_.capabilities().limits.clear_range_rows_max;
    auto rows = view.fingerprint(range, max + 1);
    if (!rows) return std::unexpected(std::move(rows.error()));
    if (rows->rows() > max)
      return fail(ErrorCode::kTooLarge, "clear_range from " + printable(range.begin) + " would clear more than " +
                                            std::to_string(max) + " rows; use clear_in_batches");
  }
  for (const auto& [key, pending] : writes.points()) {
    if (!std::holds_alternative<WriteSet::Add>(pending)) continue;
    auto stored = view.get(key);
    if (!stored) return std::unexpected(std::move(stored.error()));
    if (*stored && (*stored)->value.size() != sizeof(std::int64_t))
      return fail(ErrorCode::kInvalidArgument, "the key " + printable(key) + " cannot be added to: its value has " +
                                                   std::to_string((*stored)->value.size()) + " bytes, a counter has 8");
  }
  return {};
}

Result<void> Committer::write(Call& call, CommitView& view, Version version) {
  const WriteSet& writes = call.state().writes();
  auto put = [&](BytesView key, BytesView value) {
    changes_.push_back({watch_hash(key), version});
    return view.put(key, value, version);
  };
  for (const KeyRange& range : writes.cleared()) {
    auto erased = view.erase_range(range, [&](BytesView key) { changes_.push_back({watch_hash(key), version}); });
    if (!erased) return erased;
  }
  for (const auto& [key, pending] : writes.points()) {
    Result<void> written;
    if (const auto* set = std::get_if<WriteSet::Set>(&pending)) {
      written = put(key, set->value);
    } else if (const auto* stamped = std::get_if<WriteSet::SetStamped>(&pending)) {
      written = put(key, stamped->value.filled(version));
    } else if (const auto* add = std::get_if<WriteSet::Add>(&pending)) {
      auto stored = view.get(key);
      if (!stored) return std::unexpected(std::move(stored.error()));
      auto old = static_cast<std::uint64_t>(*stored ? decode_counter((*stored)->value) : 0);
      written = put(key, encode_counter(static_cast<std::int64_t>(old + static_cast<std::uint64_t>(add->delta))));
    } else {
      changes_.push_back({watch_hash(key), version});
      written = view.erase(key);
    }
    if (!written) return written;
  }
  for (const auto& row : writes.stamped()) {
    Bytes key = row.key.filled(version);
    if (writes.cleared_after(row, key)) continue;
    if (auto written = put(key, filled(row.value, version)); !written) return written;
  }
  return {};
}

}  // namespace perdure
