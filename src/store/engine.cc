#include "store/engine.h"

#include "base/hash.h"

namespace perdure {

std::uint64_t watch_hash(BytesView key) {
  return hash64(key) & kWatchHashMask;
}

void Fingerprint::add(BytesView key, Version version) {
  ++rows_;
  // Order matters: the hash so far seeds the next.
  hash_ = hash64(key, hash_ * 0x9e3779b97f4a7c15 + version.number);
}

Result<std::vector<std::optional<Versioned>>> ReadView::get_many(std::span<const Bytes> keys) {
  std::vector<std::optional<Versioned>> rows;
  rows.reserve(keys.size());
  for (const Bytes& key : keys) {
    auto row = get(key);
    if (!row) return std::unexpected(std::move(row.error()));
    rows.push_back(std::move(*row));
  }
  return rows;
}

Result<std::vector<std::vector<Row>>> ReadView::get_ranges(std::span<const RangeRead> reads) {
  std::vector<std::vector<Row>> answers;
  answers.reserve(reads.size());
  for (const RangeRead& read : reads) {
    auto rows = get_range(read);
    if (!rows) return std::unexpected(std::move(rows.error()));
    answers.push_back(std::move(*rows));
  }
  return answers;
}

}  // namespace perdure
