// The public classes, on top of SequencesImpl and PartitionStorage.
#include "perdure/sequence.h"
#include "sequence/append.h"
#include "sequence/partition_storage.h"
#include "sequence/sequences_impl.h"
#include "session/rows.h"
#include "store/blocking.h"
#include "store/change_notes.h"
#include "store/read_page.h"
#include "store/system_access.h"

namespace perdure {
namespace {

constexpr std::size_t kPageMax = 1'000;
constexpr std::size_t kRemovedAtOnce = 1'000;

std::unexpected<Error> pass_on(auto& failed) {
  return std::unexpected(std::move(failed.error()));
}

PartitionInfo info_of(Reader& reader, const sequence::Place& place, const sequence::PartitionRow& row) {
  PartitionInfo info{.space = place.space, .name = place.name, .spec = row.spec(), .owner = {}};
  info.flushed_offset = sequence::read_number(reader, place.offset);
  auto last = reader.get_range(tuple::extensions(place.log), {.limit = 1, .direction = Direction::kReverse});
  if (!last.empty()) info.offset = in_txn(reader, sequence::offset_of(place, last[0].key));
  info.owner = Session::holder_of(reader, place.lease);
  return info;
}

std::unexpected<Error> unknown_name(const sequence::Place& place) {
  return fail(ErrorCode::kCorrupt,
              "a row names a type or sequence that the partition \"" + place.name + "\" does not have; run verify");
}

Result<std::vector<std::pair<std::string, Number>>> by_name(const sequence::Place& place,
                                                            const sequence::PartitionRow& partition,
                                                            const sequence::Drawn& drawn) {
  std::vector<std::pair<std::string, Number>> named;
  for (auto [seq, number] : drawn) {
    const std::string* name = partition.name_of(seq);
    if (!name) return unknown_name(place);
    named.emplace_back(*name, number);
  }
  return named;
}

Result<LogEntry> entry_of(const sequence::Place& place, const sequence::PartitionRow& partition, const Row& row) {
  auto offset = sequence::offset_of(place, row.key);
  if (!offset) return pass_on(offset);
  auto entry = sequence::EntryRow::decode(row.value);
  if (!entry) return pass_on(entry);
  auto payload = Value::decode(entry->payload);
  if (!payload) return pass_on(payload);
  auto numbers = by_name(place, partition, entry->numbers);
  if (!numbers) return pass_on(numbers);
  auto updated = by_name(place, partition, entry->updated);
  if (!updated) return pass_on(updated);
  const auto* type = partition.type(entry->kind);
  if (!type) return unknown_name(place);
  return LogEntry{.offset = *offset,
                  .type = type->name,
                  .workspace = static_cast<std::uint64_t>(entry->workspace),
                  .numbers = std::move(*numbers),
                  .updated = std::move(*updated),
                  .payload = std::move(*payload),
                  .at = entry->at};
}

/// Errors: kInvalidArgument.
Result<SeqKey> key_of(const sequence::Place& place, const sequence::PartitionRow& partition, const RecordId& id) {
  auto seq = partition.seq(id.sequence);
  if (!seq)
    return fail(ErrorCode::kInvalidArgument,
                "the partition \"" + place.name + "\" has no sequence \"" + id.sequence + "\"");
  return SeqKey{WorkspaceId{id.workspace}, *seq};
}

std::string text_of(const RecordId& id) {
  return "record " + std::to_string(id.number) + " of sequence \"" + id.sequence + "\" in workspace " +
         std::to_string(id.workspace);
}

}  // namespace

std::string_view name_of(Trust trust) {
  switch (trust) {
    case Trust::kGuardAll:
      return "guard_all";
    case Trust::kGuardLog:
      return "guard_log";
    case Trust::kNobody:
      return "nobody";
  }
  return "unknown";
}

Result<Sequences> Sequences::open(Store store, SequencesOptions options) {
  return SequencesImpl::open(std::move(store), std::move(options));
}

Sequences Sequences::in(std::string space) const {
  return {impl_, std::move(space)};
}

// Partitions.

Result<PartitionInfo> Sequences::set(std::string_view partition, const PartitionSpec& spec) {
  return impl_->transact_now([&](Transaction& txn) { return set(txn, partition, spec); }, {});
}

PartitionInfo Sequences::set(Transaction& txn, std::string_view partition, const PartitionSpec& spec) {
  auto place = in_txn(txn, impl_->place(space_, partition));
  SystemAccess access(txn);
  sequence::PartitionRow row;
  if (auto value = txn.get(place->spec)) row = in_txn(txn, sequence::PartitionRow::decode(*value));
  in_txn(txn, row.take(spec));
  txn.set(place->spec, row.encode());
  access.note({.type = ChangeType::kPartition,
               .state = ChangeState::kSet,
               .space = space_,
               .name = partition,
               .id = {},
               .at = impl_->now()});
  return info_of(txn, *place, row);
}

Result<PartitionInfo> Sequences::get(std::string_view partition) {
  return impl_->read_now([&](Reader& reader) { return get(reader, partition); });
}

Result<PartitionInfo> Sequences::get(Reader& reader, std::string_view partition) const {
  auto place = impl_->place(space_, partition);
  if (!place) return pass_on(place);
  SystemAccess access(reader);
  auto row = impl_->partition(reader, **place);
  if (!row) return pass_on(row);
  return info_of(reader, **place, **row);
}

Result<void> Sequences::remove(std::string_view partition) {
  auto place = impl_->place(space_, partition);
  if (!place) return pass_on(place);
  auto remove_some = [&](Transaction& txn) -> Result<bool> {
    auto info = get(txn, partition);
    if (!info) return pass_on(info);
    if (info->owner)
      return fail(ErrorCode::kWrongState, "the partition " + std::string(partition) + " is held by session " +
                                              info->owner->session.to_string() + "; stop that first");
    SystemAccess access(txn);
    auto rows = txn.get_range(tuple::extensions(sequence::rows_prefix(space_, partition)), {.limit = kRemovedAtOnce});
    for (const Row& row : rows) txn.clear(row.key);
    if (rows.size() == kRemovedAtOnce) return true;
    txn.clear((*place)->spec);
    access.note({.type = ChangeType::kPartition,
                 .state = ChangeState::kRemoved,
                 .space = space_,
                 .name = partition,
                 .id = {},
                 .at = impl_->now()});
    return false;
  };
  for (;;) {
    auto more = impl_->transact_now(remove_some, {.reserve = Reserve::kMayUse});
    if (!more) return pass_on(more);
    if (!*more) return {};
  }
}

Result<std::vector<PartitionInfo>> Sequences::list(const PageOptions& page) {
  return impl_->read_now([&](Reader& reader) { return list(reader, page); });
}

Result<std::vector<PartitionInfo>> Sequences::list(Reader& reader, const PageOptions& page) const {
  SystemAccess access(reader);
  Bytes prefix = sequence::partitions_prefix(space_);
  KeyRange range = tuple::extensions(prefix);
  if (!page.after.empty()) range.begin = tuple::extensions(sequence::partition_key(space_, page.after)).end;
  std::vector<PartitionInfo> infos;
  for (const Row& row : reader.get_range(range, {.limit = std::min(page.limit, kPageMax)})) {
    tuple::Reader key(row.key);
    key.skip_prefix(prefix);
    auto info = get(reader, key.next_text());
    if (!info) return pass_on(info);
    infos.push_back(std::move(*info));
  }
  return infos;
}

// Appending.

Result<Appended> Sequences::append(std::string_view partition, Append event) {
  return block<Appended>(*impl_, [&](auto done) { append_async(partition, std::move(event), std::move(done)); });
}

void Sequences::append_async(std::string_view partition, Append event,
                             std::move_only_function<void(Result<Appended>)> done) {
  std::vector<Append> one;
  one.push_back(std::move(event));
  append_many_async(partition, std::move(one),
                    [done = std::move(done)](Result<std::vector<Appended>> appended) mutable {
                      if (!appended) return done(pass_on(appended));
                      done(std::move((*appended)[0]));
                    });
}

Appended Sequences::append(Transaction& txn, std::string_view partition, const Append& event) {
  return append_many(txn, partition, {event})[0];
}

Result<std::vector<Appended>> Sequences::append_many(std::string_view partition, std::vector<Append> events) {
  return block<std::vector<Appended>>(
      *impl_, [&](auto done) { append_many_async(partition, std::move(events), std::move(done)); });
}

void Sequences::append_many_async(std::string_view partition, std::vector<Append> events,
                                  std::move_only_function<void(Result<std::vector<Appended>>)> done) {
  auto place = impl_->place(space_, partition);
  if (!place) return done(pass_on(place));
  impl_->append(*place, std::move(events), std::move(done));
}

std::vector<Appended> Sequences::append_many(Transaction& txn, std::string_view partition,
                                             const std::vector<Append>& events) {
  return impl_->append(txn, *in_txn(txn, impl_->place(space_, partition)), events);
}

Effect Sequences::append_effect(std::string_view partition, Append event) const {
  return {.what = "append to " + std::string(partition),
          .apply = [self = *this, partition = std::string(partition),
                    event = std::move(event)](Transaction& txn) mutable -> Result<void> {
            self.append(txn, partition, event);
            return {};
          }};
}

// Reading.

Result<std::vector<LogEntry>> Sequences::log(std::string_view partition, const LogPage& page) {
  return impl_->read_now([&](Reader& reader) { return log(reader, partition, page); });
}

Result<std::vector<LogEntry>> Sequences::log(Reader& reader, std::string_view partition, const LogPage& page) const {
  auto place = impl_->place(space_, partition);
  if (!place) return pass_on(place);
  SystemAccess access(reader);
  auto row = impl_->partition(reader, **place);
  if (!row) return pass_on(row);
  std::vector<LogEntry> entries;
  if (page.after == UINT64_MAX) return entries;
  auto rows = read_page(reader, (*place)->log_from(page.after + 1), std::min(page.limit, kPageMax));
  for (const Row& one : rows) {
    auto entry = entry_of(**place, **row, one);
    if (!entry) return pass_on(entry);
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<std::map<std::string, Number>> Sequences::numbers(std::string_view partition, std::uint64_t workspace) {
  return impl_->read_now([&](Reader& reader) { return numbers(reader, partition, workspace); });
}

Result<std::map<std::string, Number>> Sequences::numbers(Reader& reader, std::string_view partition,
                                                         std::uint64_t workspace) const {
  auto place = impl_->place(space_, partition);
  if (!place) return pass_on(place);
  SystemAccess access(reader);
  auto row = impl_->partition(reader, **place);
  if (!row) return pass_on(row);
  std::map<std::string, Number> numbers;
  Bytes prefix = tuple::pack_onto((*place)->numbers, workspace);
  for (const Row& one : reader.get_range(tuple::extensions(prefix))) {
    tuple::Reader key(one.key);
    key.skip_prefix(prefix);
    const std::string* name = (*row)->name_of(SeqId{key.next<std::uint16_t>()});
    if (!key.finish() || !name) return unknown_name(**place);
    numbers[*name] = sequence::decode_number(reader, one.value);
  }
  return numbers;
}

// Records.

void Sequences::write_record(Transaction& txn, std::string_view partition, const RecordId& id, const Value& value,
                             RecordWrite write) {
  auto place = in_txn(txn, impl_->place(space_, partition));
  Bytes encoded = in_txn(txn, sequence::encode_payload(value));
  SystemAccess access(txn);
  auto row = in_txn(txn, impl_->partition(txn, *place));
  Bytes key = place->record_key(in_txn(txn, key_of(*place, *row, id)), id.number);
  if (write == RecordWrite::kUpdate && !txn.get(key))
    access.refuse({ErrorCode::kNotFound, "there is no " + text_of(id) + " to be updated"});
  if (write == RecordWrite::kNew && row->trust == Trust::kGuardAll && txn.get(key))
    access.refuse(sequence::violation(*place, "there is a " + text_of(id) + " already"));
  txn.set(key, encoded);
}

Result<Value> Sequences::record(Reader& reader, std::string_view partition, const RecordId& id) const {
  auto place = impl_->place(space_, partition);
  if (!place) return pass_on(place);
  SystemAccess access(reader);
  auto row = impl_->partition(reader, **place);
  if (!row) return pass_on(row);
  auto key = key_of(**place, **row, id);
  if (!key) return pass_on(key);
  auto value = reader.get((*place)->record_key(*key, id.number));
  if (!value) return fail(ErrorCode::kNotFound, "there is no " + text_of(id));
  return Value::decode(*value);
}

// Owning.

Result<OwnedPartition> Sequences::own(Session& session, std::string_view partition, Duration timeout) {
  return block<OwnedPartition>(*impl_, [&](auto done) { own_async(session, partition, timeout, std::move(done)); });
}

void Sequences::own_async(Session& session, std::string_view partition, Duration timeout,
                          std::move_only_function<void(Result<OwnedPartition>)> done) {
  auto place = impl_->place(space_, partition);
  if (!place) return done(pass_on(place));
  impl_->own(impl_, session, *place, timeout, std::move(done));
}

SequencerParams OwnedPartition::params() const {
  SequencerParams params;
  const sequence::PartitionRow& row = storage_->partition();
  for (std::size_t i = 0; i < row.types.size(); ++i)
    params.kinds[WorkspaceKind(static_cast<std::uint16_t>(i))] = row.types[i].floors;
  return params;
}

std::shared_ptr<SeqStorage> OwnedPartition::storage() const {
  return storage_;
}

Result<WorkspaceKind> OwnedPartition::kind(std::string_view type) const {
  if (auto kind = storage_->partition().kind(type)) return *kind;
  return fail(ErrorCode::kInvalidArgument, "the partition has no type \"" + std::string(type) + "\"");
}

Result<SeqId> OwnedPartition::seq(std::string_view sequence) const {
  if (auto seq = storage_->partition().seq(sequence)) return *seq;
  return fail(ErrorCode::kInvalidArgument, "the partition has no sequence \"" + std::string(sequence) + "\"");
}

void OwnedPartition::write(Transaction& txn, LogOffset offset, const LogWrite& entry) const {
  storage_->write_entry(txn, offset, entry);
}

const Lease& OwnedPartition::lease() const {
  return storage_->lease();
}

Result<void> OwnedPartition::release() {
  return Lease(lease()).release();
}

void OwnedPartition::release_async(std::move_only_function<void(Result<void>)> done) {
  Lease(lease()).release_async(std::move(done));
}

}  // namespace perdure
