// Remote behaviours: kinds of actors whose code is a URL.
//
// The settings of a kind are a row of the store, which every daemon follows: each serves all of them. A message of such
// an actor is POSTed with the state, and the answer says what the new state is and what else is to happen, which
// perdure commits in one transaction together with the removal of the message, or not at all. So the one who answers
// needs no store, no lock and no memory; it may be asked again for the same message, and the answer that counts is the
// one that is committed.
//
//     {"op": "init" | "call" | "cast" | "info" | "locked" | "upgrade", "actor": {"space", "kind", "id"}, "message",
//      "state", "schema", "from", "attempt"}
//
// All fields are always there, null where there is nothing to say. `schema` is that of the state that is sent; an
// upgrade also has `to_schema`, and is answered with the state in that one. `init` is asked for the state of a new
// actor. Of these two only `state` may be answered.
//
//     200               with any of state (absent: unchanged), reply, noreply, lock, stop, emit, cast, touch, append,
//                       replies. A call that is answered with neither reply, noreply nor lock gets null
//     400               with Content-Type application/problem+json: the kind does not take that message. It is not
//     tried
//                       again; its caller gets invalid_argument and the problem's detail
//     anything else     a failed attempt, tried again with back-off; so are fields that nobody knows and wrong types,
//                       and whatever the store refuses of the effects
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client.h"
#include "node/node.h"
#include "perdure/transaction.h"

namespace perdure::http {

struct RemoteKind {
  struct Retry {
    /// So that 4 means five attempts.
    int max = 4;
    /// Before the first; doubles with each, up to the largest.
    Duration delay = std::chrono::milliseconds(100);
    Duration max_delay = std::chrono::seconds(10);
    bool operator==(const Retry&) const = default;
  };
  std::string url;
  /// For one request; at most an hour.
  Duration timeout = std::chrono::seconds(5);
  /// For one of `locked`, which may take its time: at most 7 days.
  Duration locked_timeout = std::chrono::hours(1);
  Retry retry = {};
  std::uint64_t mailbox_max = 100'000;
  /// Of the states that it answers; one that is stored in an older one is upgraded first.
  int schema = 1;
  bool operator==(const RemoteKind&) const = default;
};

/// The remote behaviours as this process serves them, from when it is made until it is stopped. Thread-safe.
class RemoteKinds {
 public:
  /// `node` outlives it. To shut down: stop this, close the node, close the client.
  RemoteKinds(Node& node, std::shared_ptr<Client> client);
  /// Stops it.
  ~RemoteKinds();
  RemoteKinds(const RemoteKinds&) = delete;
  RemoteKinds& operator=(const RemoteKinds&) = delete;

  /// Errors: kInvalidArgument, naming the setting; kPermissionDenied for a URL that this daemon may not send to.
  [[nodiscard]] Result<void> check(const RemoteKind& settings) const;
  /// Makes or replaces a kind. What is wrong makes the transaction fail, with the errors of `check`.
  void set(Transaction& txn, std::string_view space, std::string_view kind, const RemoteKind& settings) const;
  /// Errors: kNotFound.
  [[nodiscard]] Result<RemoteKind> get(Reader& reader, std::string_view space, std::string_view kind) const;
  /// By name, at most 1,000 at once.
  [[nodiscard]] std::vector<std::pair<std::string, RemoteKind>> list(Reader& reader, std::string_view space,
                                                                     const PageOptions& page = {}) const;
  /// Its actors stay, and their messages wait until somebody serves the kind again. Fails the transaction with
  /// kNotFound.
  void remove(Transaction& txn, std::string_view space, std::string_view kind) const;

  /// Whether this process serves the kind just now. Asks the store nothing.
  [[nodiscard]] bool serves(const std::string& space, const std::string& kind) const;

  /// Serves none of them any more; what is under way comes to its end. Idempotent. Not in a callback of the store.
  void stop();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

/// The code behind RemoteKinds, for one kind; `node` outlives it.
std::shared_ptr<Behaviour> make_remote_behaviour(Node& node, std::shared_ptr<Client> client, Url url,
                                                 const RemoteKind& settings);

}  // namespace perdure::http
