#include "store/remote/views.h"

#include "store/remote/overlay.h"

namespace perdure::remote {

Result<std::vector<Row>> ReplicaSnapshot::get_range(const RangeRead& read) {
  std::vector<Row> rows;
  auto scanned = noting(replica_.scan(at_, read.range, read.options, [&](BytesView key, const Versioned& row) {
    rows.push_back({Bytes(key), row.value, row.version});
    return true;
  }));
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return rows;
}

Result<Fingerprint> ReplicaSnapshot::fingerprint(const KeyRange& range, std::uint64_t rows_max) {
  Fingerprint fingerprint;
  auto scanned = noting(replica_.scan(at_, range, {.limit = rows_max}, [&](BytesView key, const Versioned& row) {
    fingerprint.add(key, row.version);
    return true;
  }));
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return fingerprint;
}

Result<std::vector<std::optional<Versioned>>> ReplicaSnapshot::get_many(std::span<const Bytes> keys) {
  if (auto fetched = noting(replica_.fetch(at_, keys, {})); !fetched)
    return std::unexpected(std::move(fetched.error()));
  return Snapshot::get_many(keys);
}

Result<std::vector<std::vector<Row>>> ReplicaSnapshot::get_ranges(std::span<const RangeRead> reads) {
  if (auto fetched = noting(replica_.fetch(at_, {}, reads)); !fetched)
    return std::unexpected(std::move(fetched.error()));
  return Snapshot::get_ranges(reads);
}

Result<std::optional<Versioned>> BatchView::get(BytesView key) {
  if (auto own = writes_.find(key); own != writes_.end()) return own->second;
  return replica_.get(base_, key);
}

Result<Version> BatchView::version_of(BytesView key) {
  if (auto own = writes_.find(key); own != writes_.end()) return own->second ? own->second->version : Version{};
  return replica_.version_of(base_, key);
}

Result<void> BatchView::scan(const KeyRange& range, const RangeOptions& wanted, const RowCache::Visit& visit) {
  if (range.empty() || wanted.limit == 0) return {};
  std::size_t left = wanted.limit;
  RowCache::Visit show = [&](BytesView key, const Versioned& row) { return visit(key, row) && --left > 0; };
  Overlay overlay(writes_, range, wanted.direction, show);
  std::size_t hidden = overlay.writes();
  std::size_t stored = wanted.limit > SIZE_MAX - hidden ? SIZE_MAX : wanted.limit + hidden;
  auto scanned = replica_.scan(base_, range, {.limit = stored, .direction = wanted.direction},
                               [&](BytesView key, const Versioned& row) { return overlay.row(key, row); });
  if (scanned) overlay.end(nothing_left());
  return scanned;
}

Result<std::vector<Row>> BatchView::get_range(const RangeRead& read) {
  std::vector<Row> rows;
  auto scanned = scan(read.range, read.options, [&](BytesView key, const Versioned& row) {
    rows.push_back({Bytes(key), row.value, row.version});
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return rows;
}

Result<Fingerprint> BatchView::fingerprint(const KeyRange& range, std::uint64_t rows_max) {
  Fingerprint fingerprint;
  auto scanned = scan(range, {.limit = rows_max}, [&](BytesView key, const Versioned& row) {
    fingerprint.add(key, row.version);
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return fingerprint;
}

Result<void> BatchView::put(BytesView key, BytesView value, Version version) {
  raise_version(version);
  auto own = writes_.lower_bound(key);
  if (own != writes_.end() && own->first == key)
    own->second = Versioned{Bytes(value), version};
  else
    writes_.emplace_hint(own, Bytes(key), Versioned{Bytes(value), version});
  return {};
}

Result<void> BatchView::erase(BytesView key) {
  writes_.insert_or_assign(Bytes(key), std::nullopt);
  return {};
}

Result<void> BatchView::erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) {
  std::vector<Bytes> keys;
  auto scanned = scan(range, {}, [&](BytesView key, const Versioned&) {
    keys.emplace_back(key);
    return true;
  });
  if (!scanned) return scanned;
  for (Bytes& key : keys) {
    erased(key);
    writes_.insert_or_assign(std::move(key), std::nullopt);
  }
  return {};
}

}  // namespace perdure::remote
