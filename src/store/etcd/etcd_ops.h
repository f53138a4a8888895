// What is asked of etcd, without a word of gRPC: operations, and the one kind of request that they come in.
//
// A Txn compares, and then does either the one or the other list of operations, as one step. Everything here is a Txn,
// for also many reads at one moment are one.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/transaction.h"

namespace perdure::etcd {

/// What the server takes in one Txn, unless it was started with --max-txn-ops.
inline constexpr std::size_t kOpsMax = 128;

/// The numbers that etcd counts its changes with; not to be mixed up with the versions of the log.
using Revision = std::int64_t;

struct KeyValue {
  Bytes key;
  Bytes value;
  Revision mod_revision = 0;
};

/// Without an end it is one key.
struct Range {
  Bytes key;
  Bytes end = {};
  std::size_t limit = 0;  ///< 0: all.
  Direction direction = Direction::kForward;
  Revision revision = 0;  ///< 0: the newest.
};

struct Put {
  Bytes key;
  Bytes value;
};

/// Without an end it is one key.
struct Delete {
  Bytes key;
  Bytes end = {};
};

using Op = std::variant<Range, Put, Delete>;

struct Compare {
  Bytes key;
  std::optional<Bytes> value;  ///< Nothing: that the key is absent.
};

struct Txn {
  std::vector<Compare> compares = {};
  std::vector<Op> then = {};
  std::vector<Op> otherwise = {};
};

struct RangeAnswer {
  std::vector<KeyValue> rows;
  bool more = false;  ///< The limit cut it short.
};

struct TxnAnswer {
  Revision revision = 0;
  bool succeeded = false;
  /// One for each operation that was done; empty for one that writes.
  std::vector<RangeAnswer> answers = {};
  /// The revision that was asked for is gone; there is nothing else in here.
  bool compacted = false;
};

}  // namespace perdure::etcd
