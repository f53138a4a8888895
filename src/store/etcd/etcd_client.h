// A client of an etcd cluster: one call at a time on one of its endpoints, and the next endpoint when that is of no
// use.
//
// A read is repeated on other endpoints, each once. A write is sent once and never again, since nobody can tell whether
// the first one is still on its way: gRPC's own repeating is off as well. Before a write, the connection is seen to be
// there, so that a server which is down costs no unknown outcome.
//
// Every request asks the member whether it knows of a leader. One that does not refuses at once, instead of holding the
// request until its leader is back: so a member that is cut off is left soon.
//
// When all endpoints have failed, calls fail at once for a moment that doubles up to a second.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perdure/log.h"
#include "runtime/mutex.h"
#include "store/etcd/etcd_errors.h"
#include "store/etcd/etcd_ops.h"
#include "store/etcd/etcd_url.h"

namespace perdure::etcd {

/// Thread-safe. Errors: kUnavailable, kPermissionDenied, kInvalidArgument, and what etcd_errors.cc lists.
class Client {
 public:
  /// Errors: kInvalidArgument for a file of the url that cannot be read. Nothing is sent yet.
  static Result<std::unique_ptr<Client>> make(const Url& url, LogSink log);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// For a Txn that writes nothing. It sees all that was acknowledged before.
  Result<TxnAnswer> read(const Txn& txn) PERDURE_EXCLUDES(mutex_);
  /// Errors: also kCommitUnknown; and after kStoreFull it may have been done, though it will not be any more.
  Result<TxnAnswer> write(const Txn& txn) PERDURE_EXCLUDES(mutex_);
  /// Lets go of what is older than `revision`, for everybody on this etcd. Nothing hangs on its success.
  void compact(Revision revision) PERDURE_EXCLUDES(mutex_);

  /// Blocks while a stream tells of the keys from `first` to `last`: `heard` gets nothing once it is set up, and then
  /// each new row. Returns when the stream has ended, with the reason. One call at a time.
  Error watch(const Bytes& first, const Bytes& last, const std::function<void(const KeyValue*)>& heard)
      PERDURE_EXCLUDES(mutex_);
  /// Ends the stream that there is and every later one.
  void stop_watching() PERDURE_EXCLUDES(mutex_);

 private:
  /// What gRPC needs is known to etcd_client.cc alone: a member of the cluster, a connection to it, and a call.
  struct Endpoint;
  struct Link;
  struct Context;
  /// With what a call can be made.
  struct Ready {
    std::shared_ptr<Link> link = {};
    std::string token = {};  ///< Empty without authentication.
  };
  struct Reached {
    std::size_t index;
    Ready ready;
  };

  Client(const Url& url, LogSink log);
  Result<void> make_endpoints();

  /// An endpoint that is ready, the current one if it is.
  Result<Reached> reach() PERDURE_EXCLUDES(mutex_);
  /// Sees to it that there is a connection to a server of today and, if there is a user, a token; nothing if all is
  /// well.
  std::optional<Verdict> make_ready(Endpoint& endpoint, Ready& ready) PERDURE_EXCLUDES(mutex_);
  std::optional<Verdict> connect(Endpoint& endpoint, Ready& ready);
  std::optional<Verdict> authenticate(Ready& ready) PERDURE_EXCLUDES(mutex_);
  Result<TxnAnswer> call(Purpose purpose, const Txn& txn) PERDURE_EXCLUDES(mutex_);
  Error stream(Link& link, Context& context, const Bytes& first, const Bytes& last,
               const std::function<void(const KeyValue*)>& heard);

  void failed(std::size_t index, const std::string& why) PERDURE_EXCLUDES(mutex_);
  void answered() PERDURE_EXCLUDES(mutex_);
  void forget_token(const std::string& token) PERDURE_EXCLUDES(mutex_);
  void say(LogLevel level, std::string_view message, std::string_view why) const;

  const Url url_;
  const LogSink log_;
  const std::string place_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;

  Mutex mutex_;
  std::size_t current_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::string token_ PERDURE_GUARDED_BY(mutex_);
  /// Endpoints that have failed one after another, since anything was answered.
  std::size_t failures_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Until something was answered, whoever opens the store is told what is wrong, and not the log.
  bool known_ PERDURE_GUARDED_BY(mutex_) = false;
  /// The log was told so.
  bool away_ PERDURE_GUARDED_BY(mutex_) = false;
  SteadyTime away_until_ PERDURE_GUARDED_BY(mutex_) = {};
  std::string why_away_ PERDURE_GUARDED_BY(mutex_);

  /// Which endpoint `watch` tries next; only its caller's.
  std::size_t watch_next_ = 0;
  /// Never locked together with `mutex_`.
  Mutex watch_mutex_;
  /// The stream of `watch`, while there is one.
  Context* watching_ PERDURE_GUARDED_BY(watch_mutex_) = nullptr;
  bool watching_stopped_ PERDURE_GUARDED_BY(watch_mutex_) = false;
};

}  // namespace perdure::etcd
