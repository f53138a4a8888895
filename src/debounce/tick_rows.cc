#include "debounce/tick_rows.h"

namespace perdure::debounce {
namespace {

Bytes encoded(Stamp stamp, RunRowState state) {
  auto bytes = stamp.encode();
  return Bytes(bytes.data(), bytes.size()).append(1, static_cast<char>(state));
}

}  // namespace

std::optional<RunRow> read_run(Reader& reader, const Bytes& key) {
  auto value = reader.get(key);
  if (!value) return std::nullopt;
  bool sound = value->size() > Stamp::kSize;
  char state = sound ? (*value)[Stamp::kSize] : '\0';
  if (state != static_cast<char>(RunRowState::kBegun) && state != static_cast<char>(RunRowState::kEnded))
    SystemAccess(reader).refuse({ErrorCode::kCorrupt, "the row of a run cannot be read; run verify"});
  return RunRow{*Stamp::decode(BytesView(*value).substr(0, Stamp::kSize)), static_cast<RunRowState>(state)};
}

void begin_run(Transaction& txn, const Bytes& key, std::string_view instance) {
  txn.set_stamped(key, Stamped{{}, Bytes(1, static_cast<char>(RunRowState::kBegun)).append(instance)});
}

void end_run(Transaction& txn, const Bytes& key, Stamp stamp) {
  txn.set(key, encoded(stamp, RunRowState::kEnded));
}

void forget_run(Transaction& txn, const Bytes& key, Stamp stamp) {
  auto row = read_run(txn, key);
  if (row && row->stamp == stamp) txn.clear(key);
}

void fence_run(Transaction& txn, const Bytes& row, std::string_view key, Stamp stamp) {
  SystemAccess access(txn);
  auto run = read_run(txn, row);
  if (!run || run->stamp != stamp || run->state != RunRowState::kBegun)
    access.refuse({ErrorCode::kStaleToken,
                   "the run of '" + std::string(key) + "' is over, or a later one has begun: nothing was written"});
}

}  // namespace perdure::debounce
