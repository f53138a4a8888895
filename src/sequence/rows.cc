#include "sequence/rows.h"

#include <algorithm>

#include "base/assert.h"
#include "base/endian.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure::sequence {
namespace {

constexpr int kFormat = 1;
/// Ids have 16 bits.
constexpr std::size_t kNamesMax = 65'536;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the row of " + std::string(what) + " cannot be read; run verify");
}

/// The fixed part of an entry: format (1), kind (2), workspace (8), time in ns (8), how many numbers of each sort (2,
/// 2).
constexpr std::size_t kHeaderBytes = 23;
constexpr std::size_t kNumberBytes = 10;

template <class T>
void put(Bytes& out, T value) {
  char bytes[sizeof(T)];
  store_little(bytes, value);
  out.append(bytes, sizeof bytes);
}

void put_drawn(Bytes& out, const Drawn& drawn) {
  for (auto [seq, number] : drawn) {
    put(out, static_cast<std::uint16_t>(seq));
    put(out, number);
  }
}

struct Header {
  WorkspaceKind kind;
  WorkspaceId workspace;
  std::int64_t at_ns;
  std::size_t numbers, updated;
};

std::optional<Header> decode_header(BytesView value) {
  if (value.size() < kHeaderBytes || value[0] != kFormat) return std::nullopt;
  const char* p = value.data() + 1;
  Header header{WorkspaceKind{load_little<std::uint16_t>(p)}, WorkspaceId{load_little<std::uint64_t>(p + 2)},
                static_cast<std::int64_t>(load_little<std::uint64_t>(p + 10)), load_little<std::uint16_t>(p + 18),
                load_little<std::uint16_t>(p + 20)};
  if (value.size() < kHeaderBytes + (header.numbers + header.updated) * kNumberBytes) return std::nullopt;
  return header;
}

std::pair<SeqId, Number> number_at(const char* p) {
  return {SeqId{load_little<std::uint16_t>(p)}, load_little<std::uint64_t>(p + 2)};
}

Drawn drawn_at(const char* p, std::size_t count) {
  Drawn drawn;
  for (std::size_t i = 0; i < count; ++i) drawn.push_back(number_at(p + i * kNumberBytes));
  return drawn;
}

template <class Names>
Result<std::size_t> id_for(Names& names, std::string_view name, std::string_view what) {
  if (auto good = session::check_short_name(name, "the name of a " + std::string(what)); !good)
    return std::unexpected(std::move(good.error()));
  auto found = std::ranges::find(names, name, [](const auto& one) -> std::string_view {
    if constexpr (requires { one.name; })
      return one.name;
    else
      return one;
  });
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  if (names.size() == kNamesMax)
    return fail(ErrorCode::kInvalidArgument, "a partition has at most " + std::to_string(kNamesMax) +
                                                 " names of each sort; there is no room for " + std::string(what) +
                                                 " \"" + std::string(name) + "\"");
  names.push_back({std::string(name)});
  return names.size() - 1;
}

}  // namespace

Place::Place(std::string_view space_name, std::string_view partition)
    : space(space_name),
      name(partition),
      lease("sequence/" + space + "/" + name),
      spec(partition_key(space, name)),
      offset(tuple::pack_onto(kSystemKeys, "sequence", space, name, "o")),
      log(tuple::pack_onto(kSystemKeys, "sequence", space, name, "l")),
      numbers(tuple::pack_onto(kSystemKeys, "sequence", space, name, "n")),
      records(tuple::pack_onto(kSystemKeys, "sequence", space, name, "r")) {}

std::optional<SeqId> PartitionRow::seq(std::string_view sequence) const {
  auto found = std::ranges::find(sequences, sequence);
  if (found == sequences.end()) return std::nullopt;
  return SeqId(static_cast<std::uint16_t>(found - sequences.begin()));
}

std::optional<WorkspaceKind> PartitionRow::kind(std::string_view type) const {
  auto found = std::ranges::find(types, type, &Type::name);
  if (found == types.end()) return std::nullopt;
  return WorkspaceKind(static_cast<std::uint16_t>(found - types.begin()));
}

const std::string* PartitionRow::name_of(SeqId seq) const {
  return static_cast<std::size_t>(seq) < sequences.size() ? &sequences[static_cast<std::size_t>(seq)] : nullptr;
}

const PartitionRow::Type* PartitionRow::type(WorkspaceKind kind) const {
  return static_cast<std::size_t>(kind) < types.size() ? &types[static_cast<std::size_t>(kind)] : nullptr;
}

PartitionSpec PartitionRow::spec() const {
  PartitionSpec spec{.types = {}, .trust = trust};
  for (const Type& one : types) {
    SequenceFloors& floors = spec.types[one.name];
    for (auto [id, initial] : one.floors) floors[*name_of(id)] = initial;
  }
  return spec;
}

Result<void> PartitionRow::take(const PartitionSpec& spec) {
  trust = spec.trust;
  for (const auto& [name, floors] : spec.types) {
    auto kind = id_for(types, name, "type");
    if (!kind) return std::unexpected(std::move(kind.error()));
    for (const auto& [sequence, initial] : floors) {
      auto id = id_for(sequences, sequence, "sequence");
      if (!id) return std::unexpected(std::move(id.error()));
      if (initial == 0)
        return fail(ErrorCode::kInvalidArgument,
                    "the initial value of sequence \"" + sequence + "\" is 0; numbers begin with 1 or more");
      types[*kind].floors[SeqId(static_cast<std::uint16_t>(*id))] = initial;
    }
  }
  return {};
}

Bytes PartitionRow::encode() const {
  Bytes out = tuple::pack(kFormat, static_cast<int>(trust), sequences.size());
  for (const std::string& name : sequences) tuple::append(out, name);
  tuple::append(out, types.size());
  for (const Type& one : types) {
    tuple::append(out, one.name, one.floors.size());
    for (auto [id, initial] : one.floors) tuple::append(out, static_cast<std::uint16_t>(id), initial);
  }
  return out;
}

Result<PartitionRow> PartitionRow::decode(BytesView value) {
  tuple::Reader reader(value);
  PartitionRow row;
  int format = reader.next<int>();
  int trust = reader.next<int>();
  row.trust = static_cast<Trust>(trust);
  for (auto count = reader.next<std::size_t>(); reader.ok() && count > 0; --count)
    row.sequences.emplace_back(reader.next_text());
  for (auto count = reader.next<std::size_t>(); reader.ok() && count > 0; --count) {
    Type& type = row.types.emplace_back(std::string(reader.next_text()));
    for (auto floors = reader.next<std::size_t>(); reader.ok() && floors > 0; --floors) {
      SeqId id{reader.next<std::uint16_t>()};
      if (static_cast<std::size_t>(id) >= row.sequences.size()) return damaged("a partition");
      type.floors[id] = reader.next<std::uint64_t>();
    }
  }
  bool good =
      reader.finish().has_value() && format == kFormat && trust >= 0 && trust <= static_cast<int>(Trust::kNobody);
  if (!good) return damaged("a partition");
  return row;
}

Bytes EntryRow::encode() const {
  check(numbers.size() <= kDrawnMax && updated.size() <= kDrawnMax, "an entry of a log has too many numbers");
  Bytes out;
  out.reserve(kHeaderBytes + (numbers.size() + updated.size()) * kNumberBytes + payload.size());
  out.push_back(kFormat);
  put(out, static_cast<std::uint16_t>(kind));
  put(out, static_cast<std::uint64_t>(workspace));
  put(out, static_cast<std::uint64_t>(at.time_since_epoch().count()));
  put(out, static_cast<std::uint16_t>(numbers.size()));
  put(out, static_cast<std::uint16_t>(updated.size()));
  put_drawn(out, numbers);
  put_drawn(out, updated);
  out.append(payload);
  return out;
}

Result<EntryRow> EntryRow::decode(BytesView value) {
  auto header = decode_header(value);
  if (!header) return damaged("an entry of a log");
  EntryRow row{header->kind, header->workspace, WallTime(Duration(header->at_ns)), {}, {}, {}};
  const char* p = value.data() + kHeaderBytes;
  row.numbers = drawn_at(p, header->numbers);
  row.updated = drawn_at(p + header->numbers * kNumberBytes, header->updated);
  row.payload = value.substr(kHeaderBytes + (header->numbers + header->updated) * kNumberBytes);
  return row;
}

bool EntryRow::decode_numbers(BytesView value, std::vector<SeqValue>& out) {
  out.clear();
  auto header = decode_header(value);
  if (!header) return false;
  for (std::size_t i = 0; i < header->numbers; ++i) {
    auto [seq, number] = number_at(value.data() + kHeaderBytes + i * kNumberBytes);
    out.push_back({{header->workspace, seq}, number});
  }
  return true;
}

Result<LogOffset> offset_of(const Place& place, BytesView key) {
  tuple::Reader reader(key);
  reader.skip_prefix(place.log);
  auto offset = reader.next<std::uint64_t>();
  if (!reader.finish()) return damaged("an entry of a log");
  return offset;
}

Bytes encode_number(std::uint64_t number) {
  Bytes out;
  put(out, number);
  return out;
}

std::uint64_t decode_number(Reader& reader, const std::optional<Bytes>& value) {
  if (!value) return 0;
  if (value->size() != 8) SystemAccess(reader).refuse(damaged("a number").error());
  return load_little<std::uint64_t>(value->data());
}

}  // namespace perdure::sequence
