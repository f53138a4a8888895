// One connection to NATS, as little of it as is needed: messages out, messages in, and whether it is there.
//
// libnats has threads of its own, and calls back on them. Nothing happens there but that `Listener` is called, which
// hands everything to the scheduler. A listener may still be called for a moment after `close`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::nats {

struct Message {
  std::string subject;
  std::string reply;
  std::string data;
  /// The headers Status, as in "503 no responders" or "100" for a heartbeat, and KV-Operation; empty without.
  std::string status;
  std::string operation;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Listener {
  std::function<void(Message)> replied;
  /// With the number that `deliver_to` was given.
  std::function<void(std::uint64_t, Message)> delivered;
  std::function<void()> lost;
  std::function<void()> restored;
};

class Link {
 public:
  /// Blocks. Errors: kUnavailable, kPermissionDenied, kInvalidArgument (the url).
  static Result<std::unique_ptr<Link>> connect(const std::string& url, const std::string& name, Duration timeout,
                                               Listener listener);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// A reply subject: what is sent there is told by `replied`.
  std::string reply_subject(std::uint64_t number) const { return inbox_ + "." + std::to_string(number); }
  /// Nothing is kept for later: without a connection it fails with kUnavailable.
  Result<void> publish(const std::string& subject, const std::string& reply, const Headers& headers,
                       const std::string& data);
  /// A new subject: what is sent there is told by `delivered`, with `number`. The one before is given up.
  Result<std::string> deliver_to(std::uint64_t number);
  /// Sends a request and waits for the answer. Blocks; for the start only.
  Result<Message> request(const std::string& subject, const std::string& data, Duration timeout);

 private:
  /// What libnats gave out; its header is included by nats_link.cc alone.
  struct Handles;
  Link(std::shared_ptr<const Listener> listener, std::unique_ptr<Handles> handles);

  const std::shared_ptr<const Listener> listener_;
  const std::unique_ptr<Handles> handles_;
  std::string inbox_;
};

}  // namespace perdure::nats
