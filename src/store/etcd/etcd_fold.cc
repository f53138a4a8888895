#include "store/etcd/etcd_fold.h"

#include <algorithm>

#include "runtime/latch.h"
#include "runtime/random.h"

namespace perdure::etcd {
namespace {

/// Of them one is the mark.
constexpr std::size_t kChunkOps = 100;
static_assert(kChunkOps <= kOpsMax);
constexpr std::chrono::seconds kPatience{5};

Bytes random_name() {
  return encode_version({random_seed()}) + encode_version({random_seed()});
}

}  // namespace

Folder::Folder(Client& client, const Layout& layout, Compaction compaction)
    : client_(client), layout_(layout), compaction_(compaction), name_(random_name()) {}

Result<bool> Folder::fold(const remote::Fold& fold) {
  if (fold.to.version < fold.from || fold.trim > fold.from)
    return fail(ErrorCode::kInvalidArgument, "a fold goes forward, and trims no entry that it folds");
  mark_ = name_ + encode_version({++folds_});
  for (auto step : {&Folder::begin, &Folder::write_rows, &Folder::finish}) {
    auto done = (this->*step)(fold);
    if (!done || !*done) return done;
  }
  return true;
}

Result<TxnAnswer> Folder::write(const Txn& txn) {
  auto answer = client_.write(txn);
  // Whether it was done or not, as after kStoreFull too, all of the fold can be tried again.
  if (!answer) return std::unexpected(repeatable(std::move(answer.error())));
  return answer;
}

Result<bool> Folder::begin(const remote::Fold& fold) {
  const Compare unfolded{layout_.folded(), encode_version(fold.from)};
  const std::vector<Op> take = {Range{layout_.trimmed()}, Range{layout_.entry(fold.to.version)},
                                Put{layout_.folder(), mark_}};
  auto answer = write({.compares = {unfolded, {layout_.folder(), {}}},
                       .then = take,
                       .otherwise = {Range{layout_.folded()}, Range{layout_.folder()}}});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (!answer->succeeded) {
    const auto& folded = answer->answers.at(0).rows;
    if (folded.empty() || folded[0].value != *unfolded.value) return false;
    const auto& folder = answer->answers.at(1).rows;
    // It went away in this moment: whoever had it will have folded, or the next call finds it free.
    if (folder.empty() || !is_abandoned(folder[0])) return false;
    answer = write({.compares = {unfolded, {layout_.folder(), folder[0].value}}, .then = take});
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (!answer->succeeded) return false;
  }
  // Whoever lost commits is not to be told of them by rows. The mark that is left then is taken for abandoned.
  const auto& last = answer->answers.at(1).rows;
  if (fold.to.version > fold.from && (last.empty() || remote::link_of(last[0].value) != fold.to.link)) return false;
  const auto& trimmed = answer->answers.at(0).rows;
  trimmed_ = trimmed.empty() ? Version{} : decode_version(trimmed[0].value).value_or(Version{});
  return true;
}

bool Folder::is_abandoned(const KeyValue& mark) {
  if (mark.value.starts_with(name_)) return true;
  if (mark.mod_revision != seen_) {
    seen_ = mark.mod_revision;
    seen_since_ = steady_now();
    return false;
  }
  return steady_now() - seen_since_ >= kPatience;
}

Folder::Chunk Folder::chunk_of(std::span<const remote::FoldedRow> rows) const {
  // The mark is written again with each chunk, so that others see it change.
  Chunk chunk{.txn = {.compares = {{layout_.folder(), mark_}}, .then = {Put{layout_.folder(), mark_}}}};
  for (const remote::FoldedRow& each : rows) {
    Bytes key = layout_.row(each.key);
    const std::size_t size = key.size() + (each.row ? each.row->value.size() : 0);
    if (chunk.txn.then.size() >= kChunkOps || (chunk.rows > 0 && chunk.bytes + size > chunk_bytes_)) break;
    ++chunk.rows;
    chunk.bytes += size;
    if (each.row)
      chunk.txn.then.emplace_back(Put{std::move(key), encode_row(*each.row)});
    else
      chunk.txn.then.emplace_back(Delete{std::move(key)});
  }
  return chunk;
}

Result<bool> Folder::write_rows(const remote::Fold& fold) {
  for (auto rest = std::span(fold.rows); !rest.empty();) {
    const Chunk chunk = chunk_of(rest);
    auto written = write(chunk.txn);
    if (!written && written.error().code == ErrorCode::kTooLarge && chunk.rows > 1) {
      chunk_bytes_ = chunk.bytes / 2;
      continue;
    }
    // One row alone is never too large, unless the server takes less than it took once: the entry of the log that has
    // brought the row was a larger request than this one.
    if (!written) return std::unexpected(std::move(written.error()));
    if (!written->succeeded) return false;
    rest = rest.subspan(chunk.rows);
  }
  return true;
}

Result<bool> Folder::finish(const remote::Fold& fold) {
  const Version trim = std::max(fold.trim, trimmed_);
  auto done = write(
      {.compares = {{layout_.folder(), mark_}, {layout_.folded(), encode_version(fold.from)}},
       .then = {Put{layout_.folded(), encode_version(fold.to.version)}, Put{layout_.trimmed(), encode_version(trim)},
                layout_.log_up_to(trim), Delete{layout_.folder()}}});
  if (!done) return std::unexpected(std::move(done.error()));
  if (done->succeeded && compaction_ == Compaction::kOn) compact(done->revision);
  return done->succeeded;
}

void Folder::compact(Revision folded_at) {
  if (last_fold_ > 0) client_.compact(last_fold_);
  last_fold_ = folded_at;
}

}  // namespace perdure::etcd
