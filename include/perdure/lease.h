// Leases.
//
// A lease is a name that one session holds at a time. Who holds it may be wrong about that for a moment (a pause, a
// slow network), so holding is never enough to write: each acquisition gets a token, larger than all before it, and
// every transaction on behalf of the lease checks its token.
//
//     auto lease = session->acquire("reports/nightly");
//     store->transact([&](Transaction& txn) {
//       lease->fence(txn);                       // Does not commit unless the lease is still ours.
//       txn.set("reports/last", today);
//     });
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perdure/cancel.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/time.h"
#include "perdure/transaction.h"

namespace perdure {

/// The proof that a lease was taken, at the moment of its stamp, in one particular store.
struct PERDURE_EXPORT Token {
  Stamp stamp;
  std::uint64_t store = 0;
  bool operator==(const Token&) const = default;

  /// An opaque string of 41 characters; those of one store sort in the order of time.
  std::string to_string() const;
  /// Errors: kInvalidArgument.
  [[nodiscard]] static Result<Token> parse(std::string_view text);
};

/// The longest name of a lease, in bytes. Names are UTF-8 without control characters.
inline constexpr std::size_t kLeaseNameMax = 200;

/// Lets `txn` commit only if `name` is held with `token` at that moment: for whoever was handed the token, in this
/// process or another. The holder itself uses Lease::fence.
/// Otherwise leaves the body, and the transaction fails: kStaleToken; kInvalidArgument for a token of another store or
/// a name that cannot be.
PERDURE_EXPORT void fence(Transaction& txn, std::string_view name, const Token& token);

class LeaseState;
class Session;

/// A lease that was acquired. Copies share it. Thread-safe. Dropping the last copy does not release it: that is
/// `release`, or the end of the session.
class PERDURE_EXPORT Lease {
 public:
  const std::string& name() const;
  const Token& token() const;

  /// Whether this process may still believe in it. It stops before any other can take the lease, counting from when the
  /// last good renewal of the session was sent; true is a good reason to go on, but only `fence` is a proof.
  bool held() const;
  /// Given when the lease is lost, before any other can take it, and when the session is asked to stop. Not any more
  /// once it was released: what then waits for it is forgotten.
  const CancelSignal& cancel_signal() const;

  /// Lets `txn` commit only if the lease is held at that moment; otherwise leaves the body, and the transaction fails
  /// with kStaleToken. A lease that is no longer believed in is refused without a look at the store.
  void fence(Transaction& txn) const;

  /// Gives it back; blocks. Whoever waits for it is woken by the commit. Releasing it again is fine.
  /// Errors: kStaleToken if it is not held any more, and nothing was written; kCommitUnknown, kUnavailable and the like
  /// if it could not be found out, and then the session goes on trying.
  /// Crash: it is held or free, and the death of the process frees it.
  [[nodiscard]] Result<void> release();
  /// The same without blocking; `done` is called once, on one of the store's threads.
  void release_async(std::move_only_function<void(Result<void>)> done);

 private:
  friend class Leases;
  explicit Lease(std::shared_ptr<LeaseState> state) : state_(std::move(state)) {}
  std::shared_ptr<LeaseState> state_;
};

}  // namespace perdure
