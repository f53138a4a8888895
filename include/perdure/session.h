// Sessions.
//
// A session is the presence of one process in a store. It is kept alive by a renewal, one small write per period
// however much it holds, and everything that it holds is free the moment it ends: by `stop`, by the death of the
// process (known at once where the engine can tell), or because others saw it unchanged for its whole TTL.
//
// No wall clock has a say. Others count on their own steady clock, and only time in which they themselves reached the
// store; the session counts from when it sent its last good renewal, and stops believing in itself first.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/lease.h"
#include "perdure/store.h"
#include "perdure/time.h"

namespace perdure {

/// Names a session for ever: the stamp of its opening.
struct PERDURE_EXPORT SessionId {
  Stamp stamp;
  auto operator<=>(const SessionId&) const = default;
  std::string to_string() const;
};

struct SessionOptions {
  /// How long others must have seen it unchanged before they may end it: between 10 ms and a day.
  Duration ttl = std::chrono::seconds(5);
  /// How often it is renewed; less than the TTL.
  Duration renew = std::chrono::milliseconds(1250);
  /// Shown to people, in listings and in messages about what it holds; host and process id by default.
  std::string name = {};
  /// Called once, on one of the store's threads, if the session is lost: it was ended by another, or could not be
  /// renewed in time. By then the cancel signals of its leases have been given. Not called by `stop`.
  std::function<void(const Error& why)> on_lost = {};
};

struct SessionInfo {
  SessionId id;
  std::string name;
  Duration ttl;
  std::uint64_t renewals = 0;
};

struct LeaseInfo {
  std::string name;
  Token token;
  SessionId session;
};

struct PageOptions {
  std::size_t limit = 100;
  /// Goes on after this one.
  std::string after = {};
};

class SessionImpl;

/// A session of this process. Movable; thread-safe. It keeps the store open. Dropping it without `stop` ends it as well
/// as that goes without waiting for the answer. The blocking calls are refused with kInvalidArgument in callbacks of
/// the store, which they would wait for.
class PERDURE_EXPORT Session {
 public:
  /// Blocks until the session is in the store.
  /// Errors: kInvalidArgument (the options), and those of a transaction.
  /// Crash: a session that nobody renews; others end it.
  [[nodiscard]] static Result<Session> open(Store store, SessionOptions options = {});
  /// The same without blocking; `done` is called once, on one of the store's threads (in this call if the options are
  /// refused). Keep a handle of the store until then.
  static void open_async(Store store, SessionOptions options, std::move_only_function<void(Result<Session>)> done);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  SessionId id() const;
  /// Whether it may be believed in; see Lease::held.
  bool alive() const;

  /// Takes the lease `name`, waiting for it for at most `timeout`: 0 only tries. Callers of one session get it in the
  /// order in which they asked; between sessions the first to commit does. Blocks.
  /// Errors: kDeadline if it is held by another, and the message says by whom; kInvalidArgument for the name;
  /// kStaleToken if the session is lost, kClosed if it was stopped; and those of a transaction.
  /// Crash: held by a session that nobody renews, and so free before long.
  [[nodiscard]] Result<Lease> acquire(std::string_view name, Duration timeout = Duration::zero());
  /// The same without blocking; `done` is called once, on one of the store's threads.
  void acquire_async(std::string_view name, Duration timeout, std::move_only_function<void(Result<Lease>)> done);

  /// Ends the session: gives the cancel signals, waits up to `grace` for its leases to be released, and frees what is
  /// left. Blocks. Idempotent.
  /// Errors: those of a transaction; the session then ends for the others when its TTL is over.
  [[nodiscard]] Result<void> stop(Duration grace = Duration::zero());
  void stop_async(Duration grace, std::move_only_function<void(Result<void>)> done);

  /// Opens a new session in the place of one that is lost, and ends the old one at once if it has not been ended yet.
  /// Errors: kInvalidArgument if this one is not lost, and those of `open`.
  [[nodiscard]] Result<Session> reopen();
  void reopen_async(std::move_only_function<void(Result<Session>)> done);

  /// The sessions of the store in the order of their opening, and those leases that one of them holds, by name. They
  /// are parts of the transaction that they are called in.
  [[nodiscard]] static std::vector<SessionInfo> list(Reader& reader, std::size_t limit = 1000);
  [[nodiscard]] static std::vector<LeaseInfo> leases_of(Reader& reader, SessionId session,
                                                        const PageOptions& page = {});
  /// Who holds `name`; nothing if it is free.
  [[nodiscard]] static std::optional<LeaseInfo> holder_of(Reader& reader, std::string_view name);

 private:
  friend class SessionImpl;
  friend struct SessionAccess;
  Session(Store store, std::shared_ptr<SessionImpl> impl);
  Store store_;
  std::shared_ptr<SessionImpl> impl_;
};

}  // namespace perdure
