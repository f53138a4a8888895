// Push workers: events that a daemon sends to a URL, instead of waiting until somebody claims them.
//
// The settings of a worker are a row of the store. Every daemon follows them, and serves each worker that has a URL as
// if it had a handler of its own: it claims events, POSTs them, and ends them by the answer. So whatever holds for
// workers holds for these, and a daemon that dies in the middle of a request has its events sent again by another.
//
//     2xx              completed; the result is the body, if that is JSON
//     429, 503         failed; tried again when Retry-After says, as often as the retry policy has it
//     410              a dead letter at once: nobody is there, and nobody will be
//     anything else    failed: "HTTP 500: ", and the beginning of the body
//
// An event may be sent twice. Its webhook-id, which is the id of the event, is the same each time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client.h"
#include "node/node.h"
#include "perdure/transaction.h"

namespace perdure::http {

struct PushSettings {
  std::string url;
  /// What requests are signed with, see http/webhook.h; empty for no signature. It is stored as it is.
  std::string secret = {};
  /// Requests at once, of each daemon; from 1 to 1,000.
  unsigned concurrency = 4;
  /// For one request; at most a day.
  Duration timeout = std::chrono::seconds(30);
  bool operator==(const PushSettings&) const = default;
};

/// The push workers of this process, from when it is made until it is stopped. Thread-safe.
class Pushers {
 public:
  /// `node` outlives it. To shut down: stop this, close the node, close the client.
  Pushers(Node& node, std::shared_ptr<Client> client);
  /// Stops it.
  ~Pushers();
  Pushers(const Pushers&) = delete;
  Pushers& operator=(const Pushers&) = delete;

  /// Errors: kInvalidArgument, naming the setting; kPermissionDenied for a URL that this daemon may not send to.
  [[nodiscard]] Result<void> check(const PushSettings& settings) const;
  /// Replaces the settings of a worker; nothing makes it a worker without a URL. What is wrong makes the transaction
  /// fail, with the errors of `check`.
  void set(Transaction& txn, std::string_view space, std::string_view worker,
           const std::optional<PushSettings>& settings) const;
  [[nodiscard]] std::optional<PushSettings> get(Reader& reader, std::string_view space, std::string_view worker) const;
  /// The push workers of a space by name, at most 1,000 at once.
  [[nodiscard]] std::vector<std::pair<std::string, PushSettings>> list(Reader& reader, std::string_view space,
                                                                       const PageOptions& page = {}) const;

  /// Sends no more events; requests that are under way come to their end. Idempotent. Not in a callback of the store.
  void stop();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

/// What a Retry-After header asks for: a number of seconds, or a date as RFC 9110 has servers write it, seen from
/// `now`; at most a day, at least nothing. Nothing if it says neither.
std::optional<Duration> parse_retry_after(std::string_view text, WallTime now);

/// The beginning of a body for an error: one line of UTF-8, 200 bytes at most.
std::string excerpt(std::string_view body);

}  // namespace perdure::http
