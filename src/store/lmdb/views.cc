#include "store/lmdb/views.h"

#include "base/endian.h"
#include "store/lmdb/errors.h"
#include "store/lmdb/lmdb_engine.h"
#include "store/lmdb/row.h"

namespace perdure::lmdb {
namespace {

/// A cursor that closes itself.
class Cursor {
 public:
  Cursor(MDB_txn* txn, MDB_dbi rows) { code_ = mdb_cursor_open(txn, rows, &cursor_); }
  ~Cursor() {
    if (cursor_) mdb_cursor_close(cursor_);
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Moves; false at the end or on an error, see code().
  bool move(MDB_cursor_op operation) {
    if (code_ == 0) code_ = mdb_cursor_get(cursor_, &key_, &row_, operation);
    return code_ == 0;
  }
  /// To the first key at or after `key`.
  bool seek(BytesView key) {
    code_ = error();
    if (key.empty()) return move(MDB_FIRST);
    key_ = to_val(key);
    return move(MDB_SET_RANGE);
  }
  /// To the last key before `end`; an empty end is no bound.
  bool seek_before(BytesView end) {
    if (!end.empty() && seek(end)) return move(MDB_PREV);
    code_ = error();
    return move(MDB_LAST);
  }
  int erase() { return mdb_cursor_del(cursor_, 0); }

  BytesView key() const { return to_view(key_); }
  BytesView row() const { return to_view(row_); }
  /// 0 also at the end.
  int error() const { return code_ == MDB_NOTFOUND ? 0 : code_; }

 private:
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_ = {}, row_ = {};
  int code_;
};

}  // namespace

Error RowReader::damaged(BytesView key) const {
  return {ErrorCode::kCorrupt, "the row " + printable(key) + " of " + environment_.path +
                                   " is damaged: its checksum does not match; run verify, and restore from a backup"};
}

Error RowReader::failed(int code) const {
  return lmdb_error(code, "cannot read " + environment_.path);
}

Result<std::optional<Versioned>> RowReader::get(MDB_txn* txn, BytesView key) const {
  MDB_val lmdb_key = to_val(key), lmdb_row;
  int code = mdb_get(txn, environment_.rows, &lmdb_key, &lmdb_row);
  if (code == MDB_NOTFOUND) return std::nullopt;
  if (code) return std::unexpected(failed(code));
  BytesView row = to_view(lmdb_row);
  if (!row_is_whole(key, row)) return std::unexpected(damaged(key));
  return Versioned{Bytes(row_value(row)), row_version(row)};
}

Result<Version> RowReader::version_of(MDB_txn* txn, BytesView key) const {
  MDB_val lmdb_key = to_val(key), row;
  int code = mdb_get(txn, environment_.rows, &lmdb_key, &row);
  if (code == MDB_NOTFOUND) return Version{};
  if (code) return std::unexpected(failed(code));
  if (row.mv_size < kRowHeader) return std::unexpected(damaged(key));
  return row_version(to_view(row));
}

Result<std::vector<Row>> RowReader::get_range(MDB_txn* txn, const RangeRead& read) const {
  std::vector<Row> rows;
  const KeyRange& range = read.range;
  if (range.empty() || read.options.limit == 0) return rows;
  Cursor cursor(txn, environment_.rows);
  bool forward = read.options.direction == Direction::kForward;
  bool more = forward ? cursor.seek(range.begin) : cursor.seek_before(range.end);
  while (more && range.contains(cursor.key())) {
    if (!row_is_whole(cursor.key(), cursor.row())) return std::unexpected(damaged(cursor.key()));
    rows.push_back({Bytes(cursor.key()), Bytes(row_value(cursor.row())), row_version(cursor.row())});
    if (rows.size() == read.options.limit) break;
    more = cursor.move(forward ? MDB_NEXT : MDB_PREV);
  }
  if (cursor.error()) return std::unexpected(failed(cursor.error()));
  return rows;
}

Result<Fingerprint> RowReader::fingerprint(MDB_txn* txn, const KeyRange& range, std::uint64_t rows_max) const {
  Fingerprint fingerprint;
  if (range.empty()) return fingerprint;
  Cursor cursor(txn, environment_.rows);
  for (bool more = cursor.seek(range.begin); more && fingerprint.rows() < rows_max && range.contains(cursor.key());
       more = cursor.move(MDB_NEXT)) {
    if (cursor.row().size() < kRowHeader) return std::unexpected(damaged(cursor.key()));
    fingerprint.add(cursor.key(), row_version(cursor.row()));
  }
  if (cursor.error()) return std::unexpected(failed(cursor.error()));
  return fingerprint;
}

LmdbSnapshot::LmdbSnapshot(LmdbEngine& engine, MDB_txn* txn, SteadyTime opened)
    : engine_(engine), opened_(opened), epoch_(mdb_txn_id(txn)), txn_(txn) {}

LmdbSnapshot::~LmdbSnapshot() {
  engine_.give_back(*this);
}

template <class F>
auto LmdbSnapshot::reading(F read) -> decltype(read()) {
  std::lock_guard lock(mutex_);
  if (retired_) return fail(ErrorCode::kUnavailable, "the snapshot was taken back because it was held for long");
  return read();
}

Result<std::optional<Versioned>> LmdbSnapshot::get(BytesView key) {
  return reading([&] { return engine_.reader().get(txn_, key); });
}

Result<Version> LmdbSnapshot::version_of(BytesView key) {
  return reading([&] { return engine_.reader().version_of(txn_, key); });
}

Result<std::vector<Row>> LmdbSnapshot::get_range(const RangeRead& read) {
  return reading([&] { return engine_.reader().get_range(txn_, read); });
}

Result<Fingerprint> LmdbSnapshot::fingerprint(const KeyRange& range, std::uint64_t rows_max) {
  return reading([&] { return engine_.reader().fingerprint(txn_, range, rows_max); });
}

void LmdbSnapshot::retire() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) retire_locked();
}

void LmdbSnapshot::retire_for_sure() {
  std::lock_guard lock(mutex_);
  retire_locked();
}

void LmdbSnapshot::retire_locked() {
  if (retired_) return;
  mdb_txn_reset(txn_);
  retired_ = true;
}

LmdbCommit::LmdbCommit(const Environment& environment, MDB_txn* txn, bool has_room)
    : environment_(environment), reader_(environment), txn_(txn), has_room_(has_room) {}

Result<void> LmdbCommit::begin() {
  auto row = reader_.get(txn_, kVersionKey);
  if (!row) return std::unexpected(std::move(row.error()));
  if (!*row || (*row)->value.size() != 8) return std::unexpected(reader_.damaged(kVersionKey));
  last_version_ = Version{load_little<std::uint64_t>((*row)->value.data())};
  return {};
}

Result<void> LmdbCommit::finish() {
  char value[8];
  store_little(value, last_version_.number);
  return put(kVersionKey, BytesView(value, sizeof value), last_version_);
}

Result<void> LmdbCommit::put(BytesView key, BytesView value, Version version) {
  last_version_ = std::max(last_version_, version);
  MDB_val lmdb_key = to_val(key), place = {kRowHeader + value.size(), nullptr};
  if (int code = mdb_put(txn_, environment_.rows, &lmdb_key, &place, MDB_RESERVE))
    return std::unexpected(lmdb_error(code, "cannot write " + environment_.path));
  encode_row(static_cast<char*>(place.mv_data), key, version, value);
  return {};
}

Result<void> LmdbCommit::erase(BytesView key) {
  MDB_val lmdb_key = to_val(key);
  int code = mdb_del(txn_, environment_.rows, &lmdb_key, nullptr);
  if (code && code != MDB_NOTFOUND) return std::unexpected(lmdb_error(code, "cannot write " + environment_.path));
  return {};
}

Result<void> LmdbCommit::erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) {
  if (range.empty()) return {};
  Cursor cursor(txn_, environment_.rows);
  while (cursor.seek(range.begin) && range.contains(cursor.key())) {
    erased(cursor.key());
    if (int code = cursor.erase()) return std::unexpected(lmdb_error(code, "cannot write " + environment_.path));
  }
  if (cursor.error()) return std::unexpected(reader_.failed(cursor.error()));
  return {};
}

}  // namespace perdure::lmdb
