// Transactions.
//
// A transaction is a plain function, the body, that reads and writes through the Transaction it is given. Bodies are
// optimistic: they read from a snapshot without locking anything, and the commit validates that nothing they read has
// changed since, ranges included. If something has, the body is run again. So a body may run several times, must be
// free of side effects, and sees its own writes; what it returns is handed out only once its writes are durable.
//
// Reads return plain values. When the store cannot answer, or the body is known to be beaten already, a read leaves the
// body by an exception that Store::transact catches: a body that swallows it still does not commit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/export.h"
#include "perdure/key_range.h"
#include "perdure/stamped.h"
#include "perdure/time.h"
#include "perdure/version.h"

namespace perdure {

/// What the store refuses to hold, with ErrorCode::kTooLarge. Engines may state less than these defaults.
struct Limits {
  std::size_t key_bytes_max = 480;
  /// Rows of perdure's own, which have such a value and something besides, may be a quarter larger.
  std::size_t value_bytes_max = 1 << 20;
  std::size_t transaction_bytes_max = 10 << 20;
  std::size_t clear_range_rows_max = 10'000;
};

struct Row {
  Bytes key;
  Bytes value;
  Version version;  ///< Of the transaction that last wrote the key.
  bool operator==(const Row&) const = default;
};

enum class Direction { kForward, kReverse };

struct RangeOptions {
  /// Rows at most; all by default, so give one where there may be many.
  std::size_t limit = SIZE_MAX;
  Direction direction = Direction::kForward;
};

struct RangeRead {
  KeyRange range;
  RangeOptions options = {};
};

class TransactionState;
class WatchState;

/// Reads at one consistent point of the store's history, the transaction's own writes included.
/// A reader is valid only inside the body that it was given to, on the thread that runs the body.
class PERDURE_EXPORT Reader {
 public:
  /// The value of `key`, or nothing if there is none.
  std::optional<Bytes> get(BytesView key);
  /// The same for many keys at once, in their order: one round trip on engines across a network.
  std::vector<std::optional<Bytes>> get_many(std::span<const Bytes> keys);
  /// The rows of `range` in key order (or its reverse), at most `limit` of them.
  std::vector<Row> get_range(const KeyRange& range, const RangeOptions& options = {});
  /// Several ranges at once, in their order.
  std::vector<std::vector<Row>> get_ranges(std::span<const RangeRead> reads);

 protected:
  friend class Transaction;
  friend class TransactionState;
  friend class SystemAccess;
  enum class Conflicts { kRecorded, kIgnored };
  Reader(TransactionState& state, Conflicts conflicts) : state_(&state), conflicts_(conflicts) {}

  TransactionState* state_;
  Conflicts conflicts_;
};

/// Fires once when a key changes after the transaction that made it has committed. It never misses a change, also one
/// that is changed back at once, and may fire without one. Copies share one watch. Thread-safe.
/// Crash: a watch lives in this process only, and costs the store nothing.
class PERDURE_EXPORT Watch {
 public:
  Watch() = default;
  /// Blocks until it has fired (true) or `timeout` has passed (false).
  [[nodiscard]] bool wait(Duration timeout = Duration::max());
  /// Runs `callback` once, on one of the store's threads, when the watch fires; at once if it has already fired. It
  /// should not block, and must not throw. Dropped when the store is closed.
  /// Replaces an earlier callback. Never runs after `cancel` has returned, unless it is running by then.
  void then(std::move_only_function<void()> callback);
  /// Forgets the watch; `wait` returns true, as it does when the store is closed, and in a child of fork().
  void cancel();

 private:
  friend class TransactionState;
  explicit Watch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {}
  std::shared_ptr<WatchState> state_;
};

class PERDURE_EXPORT Transaction : public Reader {
 public:
  /// Reads that conflict with nobody: for looking for work, for bounds and for hints. Follow up with
  /// `add_read_conflict` on what the decision really hangs on.
  Reader snapshot() { return Reader(*state_, Conflicts::kIgnored); }
  /// Makes the commit fail if `key`, or anything in `range`, changes before it: as if it had been read.
  void add_read_conflict(BytesView key);
  void add_read_conflict(const KeyRange& range);

  /// Writes take effect at the commit, all or none. A key or value over the limits fails the commit with kTooLarge.
  void set(BytesView key, BytesView value);
  void clear(BytesView key);
  /// Clears all keys of `range`, at most Limits::clear_range_rows_max of them; Store::clear_in_batches has no bound.
  void clear_range(const KeyRange& range);
  /// Adds `delta` to the counter at `key`, eight bytes little-endian, 0 if absent, wrapping around. Conflicts with
  /// nobody who only adds. A value that is not eight bytes long fails the commit with kInvalidArgument.
  void add(BytesView key, std::int64_t delta);

  /// As `set`, where the commit fills the hole in the key, the value or both with its stamp. A transaction cannot read
  /// what has no stamp yet: that fails it with kInvalidArgument.
  void set_stamped(const Stamped& key, BytesView value);
  void set_stamped(BytesView key, const Stamped& value);
  void set_stamped(const Stamped& key, const Stamped& value);

  /// A watch on `key` as this transaction leaves it. It is armed when the transaction commits, and cancelled when it
  /// fails.
  [[nodiscard]] Watch watch(BytesView key);

 private:
  friend class TransactionState;
  explicit Transaction(TransactionState& state) : Reader(state, Conflicts::kRecorded) {}
};

/// A counter as `Transaction::add` keeps it; nothing (absent) is 0, and so is anything but eight bytes.
PERDURE_EXPORT std::int64_t decode_counter(const std::optional<Bytes>& value);
PERDURE_EXPORT Bytes encode_counter(std::int64_t value);

}  // namespace perdure
