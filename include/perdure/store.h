// The store: ordered bytes with strictly serializable transactions.
//
//   auto store = Store::open("lmdb:./data");
//   auto left = store->transact([](Transaction& txn) { ... return 7; });   // Result<int>
//
// Everything else in perdure is a set of transactions on this.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/log.h"
#include "perdure/metrics.h"
#include "perdure/time.h"
#include "perdure/transaction.h"

namespace perdure {

class ManualExecutor;
class TestClock;

/// What becomes of the process when its store has failed for good.
enum class WhenFailed {
  kAbort,  ///< It ends by abort(), see perdure/fatal.h: what is durable is safe, and starting again is the tested way
           ///< on.
  kRefuseCalls,  ///< It goes on without the store: every later call fails with kStoreFailed, and close() works.
};

struct StoreOptions {
  /// Threads for bodies and callbacks; 0 takes one per core, at least two. Commits have a thread of their own.
  unsigned threads = 0;
  /// Transactions that may be waiting for their commit at once; more are refused with kLimitExceeded.
  std::size_t pending_max = 65'536;
  std::size_t watches_max = 1'000'000;
  /// LMDB only: the address space reserved for the file, and so the most that it can hold.
  std::size_t map_bytes = std::size_t{1} << 40;
  /// LMDB only: with less room than this left, transactions of Reserve::kKeepOut are refused with kStoreFull, so that
  /// those that free space still fit.
  std::size_t reserve_bytes = std::size_t{16} << 20;
  /// Servers across a network only: how much of the store this process keeps in memory, so as not to ask for it again.
  std::size_t cache_bytes = std::size_t{128} << 20;
  /// Called once, on the commit thread, when the store has failed for good (a failed sync, say): to report it, before
  /// what `when_failed` says. It must not use the store, nor throw.
  std::function<void(const Error&)> on_fatal = {};
  WhenFailed when_failed = WhenFailed::kAbort;
  /// Instead of threads: bodies and callbacks run where the host polls. See perdure/manual_executor.h.
  std::shared_ptr<ManualExecutor> executor = {};
  /// Where the store reports what it does, and what it counts and measures; nowhere by default.
  LogSink log = {};
  std::shared_ptr<MetricsSink> metrics = {};
  /// For tests: store time is what this says, and stands still until it is moved. See perdure/test_clock.h.
  std::shared_ptr<TestClock> clock = {};
  /// The feed of changes: what each event, worker, actor, debouncer, schedule and partition became is written down in
  /// the transaction that made it so, and kept for so long. Zero writes nothing. See perdure/changes.h.
  Duration changes_kept = Duration::zero();
};

/// How a body may be run.
enum class Body {
  kOptimistic,  ///< On a thread of the pool or the caller's, from a snapshot, validated at the commit.
  /// A promise that the body is short and waits for nothing: no lock, no I/O, no other transaction. It may then be run
  /// on the commit thread, on top of the writes of the batch that it joins, and so never loses to its neighbours.
  kShort,
};

/// Whether a transaction may use the space that is kept back when the disk is nearly full.
enum class Reserve { kKeepOut, kMayUse };

struct TransactOptions {
  /// After this long the call is answered, whatever happens: kDeadline or kUnavailable if it surely had no effect,
  /// kCommitUnknown if its commit was under way.
  Duration timeout = std::chrono::seconds(5);
  Body body = Body::kOptimistic;
  Reserve reserve = Reserve::kKeepOut;
};

/// What a commit says of itself. A transaction that wrote nothing has no version of its own: 0.
struct Receipt {
  Version version;
  /// The stamp that filled the holes with this order.
  Stamp stamp(std::uint32_t order = 0) const { return {version, order}; }
};

struct VerifyReport {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t problem_count = 0;
  std::vector<std::string> problems;  ///< The first hundred, each naming the place.
  bool ok() const { return problem_count == 0; }
};

class StoreImpl;
class Engine;
class Scheduler;

/// A handle on an open store; copies share it. Thread-safe. The store closes when the last copy is gone, which waits
/// for what is under way without a bound, and must not be in one of its own callbacks, bodies or sinks: that aborts.
///
/// fork(): a child cannot use the stores of its parent. There every call fails with kInvalidArgument, watches count as
/// cancelled, and handles are dropped without touching anything of the parent's, which goes on undisturbed. The child
/// may open the same directory anew. fork() in the body of a transaction is for children that exec or _exit there.
class PERDURE_EXPORT Store {
 public:
  /// Opens, and makes if it is not there, the store that `url` names: "lmdb:DIR" (a directory of this machine, which
  /// several processes may have open at once), "memory:" (gone with the handle), "postgres://…" or "etcd://…" (a server
  /// that several machines share; loads perdure_postgres.so or perdure_etcd.so). Blocks.
  /// Errors: kInvalidArgument, kPermissionDenied, kUnsupportedFormat, kCorrupt, kUnavailable, kStoreFull, kStoreFailed,
  /// kLimitExceeded (too many processes).
  /// Crash: an interrupted first opening is completed by the next.
  [[nodiscard]] static Result<Store> open(std::string_view url, StoreOptions options = {});

  /// Runs `body` in a transaction until it commits, fails or runs out of time; blocks. `body` takes a Transaction& and
  /// returns void, a value, or a Result of one; an error that it returns ends the transaction without effect and is
  /// returned. An exception becomes kHandlerFailed.
  /// Crash: what was acknowledged is durable; a call that never returned took effect wholly or not at all.
  template <class F>
  [[nodiscard]] auto transact(F&& body, const TransactOptions& options = {}, Receipt* receipt = nullptr);

  /// The same without blocking: the body runs on one of the store's threads, and right in this call if it is made from
  /// a callback of the store. `done` takes the Result, and a Receipt as well if it likes; it is called once, on one of
  /// the store's threads, should not block and must not throw; on a
  /// closed store it is called at once, in this call.
  template <class F, class Done>
  void transact_async(F&& body, Done&& done, const TransactOptions& options = {});

  /// A transaction that only reads.
  template <class F>
  [[nodiscard]] auto read(F&& body, const TransactOptions& options = {});

  /// Clears `range` in transactions of a thousand rows each; answers how many rows went. Blocks. Not atomic.
  /// Crash: some of the rows are gone, the rest are there; call it again.
  [[nodiscard]] Result<std::uint64_t> clear_in_batches(const KeyRange& range);

  /// Walks everything that is stored, structure and checksums. Blocks, for long on a large store; `progress` gets the
  /// share done, from 0 to 1. An error means that the walk itself could not be done.
  [[nodiscard]] Result<VerifyReport> verify(std::function<void(double)> progress = {});

  /// Writes a consistent copy of the whole store to a new file, while others go on working. Blocks.
  /// Crash: `path` does not exist, or is whole; a leftover `path`.partial may be deleted.
  [[nodiscard]] Result<void> backup(const std::string& path);

  const Limits& limits() const;

  /// Refuses new work with kClosed, waits for what is under way, and releases the files. Idempotent, and good in any
  /// thread but a callback, body or sink of the store. With an executor, call it on the thread that polls: it runs what
  /// is left to run.
  /// Errors: kDeadline if calls are still under way after `grace`: the store stays closed for new ones, and a later
  /// close, or the end of the last handle, finishes it. kInvalidArgument in a callback, body or sink, and in a child of
  /// fork(): nothing has happened.
  Result<void> close(Duration grace = std::chrono::seconds(30));

  /// For tests and for the parts of perdure that bring their own: a store on a given engine and scheduler, which must
  /// outlive it.
  [[nodiscard]] static Result<Store> on_engine(std::unique_ptr<Engine> engine, Scheduler& scheduler,
                                               StoreOptions options = {});

 private:
  friend struct StoreAccess;
  explicit Store(std::shared_ptr<StoreImpl> impl) : impl_(std::move(impl)) {}

  using ErasedBody = std::move_only_function<Result<void>(Transaction&)>;
  Result<Receipt> run(ErasedBody body, const TransactOptions& options);
  void run_async(ErasedBody body, std::move_only_function<void(Result<Receipt>)> done, const TransactOptions& options);

  std::shared_ptr<StoreImpl> impl_;
};

namespace internal {

/// What a body's return type R makes of the whole call: Result<R>, and R itself if it is a Result already.
template <class R>
struct BodyResult {
  using Value = R;
};
template <class T>
struct BodyResult<Result<T>> {
  using Value = T;
};

/// Calls `body` and keeps what it returned in `out`, so that the store need not know its type.
template <class Value, class F, class Txn>
Result<void> call_body(F& body, Txn& txn, std::shared_ptr<std::optional<Value>> out) {
  using R = std::invoke_result_t<F&, Txn&>;
  if constexpr (std::is_void_v<R>) {
    body(txn);
    return {};
  } else {
    R returned = body(txn);
    if constexpr (std::is_same_v<R, Result<void>>) {
      return returned;
    } else if constexpr (std::is_same_v<R, Value>) {
      out->emplace(std::move(returned));
      return {};
    } else {
      if (!returned) return std::unexpected(std::move(returned.error()));
      out->emplace(std::move(*returned));
      return {};
    }
  }
}

struct Nothing {};
template <class Value>
using Kept = std::conditional_t<std::is_void_v<Value>, Nothing, Value>;

template <class Value>
Result<Value> take_result(Result<Receipt> receipt, std::optional<Kept<Value>>& out) {
  if (!receipt) return std::unexpected(std::move(receipt.error()));
  if constexpr (std::is_void_v<Value>)
    return {};
  else
    return std::move(*out);
}

}  // namespace internal

template <class F>
auto Store::transact(F&& body, const TransactOptions& options, Receipt* receipt) {
  using T = typename internal::BodyResult<std::invoke_result_t<F&, Transaction&>>::Value;
  using Kept = internal::Kept<T>;
  auto out = std::make_shared<std::optional<Kept>>();
  Result<Receipt> done =
      run([&body, out](Transaction& txn) { return internal::call_body<Kept>(body, txn, out); }, options);
  if (receipt && done) *receipt = *done;
  return internal::take_result<T>(std::move(done), *out);
}

template <class F, class Done>
void Store::transact_async(F&& body, Done&& done, const TransactOptions& options) {
  using T = typename internal::BodyResult<std::invoke_result_t<F&, Transaction&>>::Value;
  using Kept = internal::Kept<T>;
  auto out = std::make_shared<std::optional<Kept>>();
  run_async([body = std::forward<F>(body),
             out](Transaction& txn) mutable { return internal::call_body<Kept>(body, txn, out); },
            [done = std::forward<Done>(done), out](Result<Receipt> receipt) mutable {
              Receipt committed = receipt.value_or(Receipt{});
              Result<T> result = internal::take_result<T>(std::move(receipt), *out);
              if constexpr (std::is_invocable_v<Done&, Result<T>, Receipt>)
                done(std::move(result), committed);
              else
                done(std::move(result));
            },
            options);
}

template <class F>
auto Store::read(F&& body, const TransactOptions& options) {
  return transact([&body](Transaction& txn) { return body(static_cast<Reader&>(txn)); }, options);
}

}  // namespace perdure
