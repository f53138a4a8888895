// The rows of sequences, all of them among perdure's own keys; see docs/internals/key_layout.md.
//
//     ("partition", space, name)                            -> types, sequences, trust
//     ("sequence", space, name, "o")                        -> the offset up to which the log is in the numbers
//     ("sequence", space, name, "n", workspace, seq)        -> the last number
//     ("sequence", space, name, "l", offset)                -> an entry of the log
//     ("sequence", space, name, "r", workspace, seq, n)     -> a record
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/sequence.h"
#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "store/ranges.h"

namespace perdure::sequence {

inline Bytes partition_key(std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "partition", space, name);
}
inline Bytes partitions_prefix(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "partition", space);
}

/// What all rows of a partition but its specification begin with.
inline Bytes rows_prefix(std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "sequence", space, name);
}

/// The name of a partition, and what its keys begin with.
struct Place {
  Place(std::string_view space, std::string_view name);

  std::string space;
  std::string name;
  /// Who has it for himself holds this lease.
  std::string lease;
  Bytes spec;
  Bytes offset;
  Bytes log;
  Bytes numbers;
  Bytes records;

  Bytes log_key(LogOffset at) const { return tuple::pack_onto(log, at); }
  Bytes number_key(const SeqKey& key) const {
    return tuple::pack_onto(numbers, static_cast<std::uint64_t>(key.workspace), static_cast<std::uint16_t>(key.seq));
  }
  Bytes record_key(const SeqKey& key, Number number) const {
    return tuple::pack_onto(records, static_cast<std::uint64_t>(key.workspace), static_cast<std::uint16_t>(key.seq),
                            number);
  }
  /// The entries from `first` on.
  KeyRange log_from(LogOffset first) const { return {log_key(first), tuple::extensions(log).end}; }
};

/// Names have ids, which are their places in these, and stay for ever: entries of the log have them.
struct PartitionRow {
  struct Type {
    std::string name;
    std::map<SeqId, Number> floors = {};
  };
  Trust trust = Trust::kGuardAll;
  std::vector<std::string> sequences;
  std::vector<Type> types;

  std::optional<SeqId> seq(std::string_view sequence) const;
  std::optional<WorkspaceKind> kind(std::string_view type) const;
  /// Null if there is none.
  const std::string* name_of(SeqId seq) const;
  const Type* type(WorkspaceKind kind) const;
  PartitionSpec spec() const;
  /// Adds what it has not. Errors: kInvalidArgument.
  Result<void> take(const PartitionSpec& spec);

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<PartitionRow> decode(BytesView value);
};

using Drawn = std::vector<std::pair<SeqId, Number>>;

/// An entry of the log, of which the payload is in other hands.
struct EntryRow {
  WorkspaceKind kind;
  WorkspaceId workspace;
  WallTime at;
  Drawn numbers;
  Drawn updated;
  BytesView payload;

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<EntryRow> decode(BytesView value);
  /// Only the numbers that it drew, in the place of what is in `out`. False if it is damaged.
  static bool decode_numbers(BytesView value, std::vector<SeqValue>& out);
};

/// The offset in the key of an entry. Errors: kCorrupt.
Result<LogOffset> offset_of(const Place& place, BytesView key);

/// Offsets and numbers.
Bytes encode_number(std::uint64_t number);
/// 0 if there is none. What is damaged makes the transaction fail: taken for nothing, numbers would begin anew.
std::uint64_t decode_number(Reader& reader, const std::optional<Bytes>& value);
inline std::uint64_t read_number(Reader& reader, BytesView key) {
  return decode_number(reader, reader.get(key));
}

/// Numbers in one entry: of each sort, for they are counted in 16 bits.
inline constexpr std::size_t kDrawnMax = 65'535;

}  // namespace perdure::sequence
