// A request as the handlers of the API see it, and what they answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "http/exchange.h"
#include "http/target.h"
#include "perdure/error.h"
#include "perdure/store.h"
#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure::http {

/// Shared by the steps of answering it; read by one thread at a time.
class Call {
 public:
  Call(std::shared_ptr<Exchange> exchange, Target target)
      : exchange_(std::move(exchange)), target_(std::move(target)) {}

  Exchange& exchange() const { return *exchange_; }
  const Request& request() const { return exchange_->request(); }
  const Target& target() const { return target_; }
  const std::string* header(std::string_view name) const { return request().headers.find(name); }

  /// What stood in the place of {name} in the path.
  const std::string& param(std::string_view name) const;
  const std::string& space() const { return param("space"); }
  /// Empty if it belongs to none.
  const std::string& space_or_none() const;
  std::optional<std::string_view> query(std::string_view name) const;
  /// The JSON that was sent, null if none was.
  Value body;
  std::vector<std::pair<std::string_view, std::string>> params;

  /// Of the query: `limit` (default 100, at most 1,000) and `after`. Errors: kInvalidArgument.
  struct Page {
    std::size_t limit = 100;
    std::string after;
  };
  Result<Page> page() const;
  /// Asked by handlers that wait for long: a client that hangs up is let go of, and counts no more against the bounds.
  void let_go_when_gone() { lets_go = true; }
  bool lets_go = false;
  Result<std::optional<Duration>> query_duration(std::string_view name) const;
  /// W3C trace context of the caller, empty if there is none that is well-formed.
  std::string traceparent() const;

 private:
  const std::shared_ptr<Exchange> exchange_;
  const Target target_;
};
using CallPtr = std::shared_ptr<Call>;

struct Answer {
  int status = 200;
  /// Nothing for an answer without a body.
  std::optional<Value> body = {};
  Headers headers = {};
  /// A body that is not JSON; the headers say what it is.
  std::string text = {};
  /// Where the version of the commit goes, if anywhere.
  enum class ShowVersion {
    kNo,
    kBody,
    kETag,
    kTokens,  ///< In the tokens of the events in "items", if this was kept: they were written before they were known.
  };
  ShowVersion show_version = ShowVersion::kNo;
  Version version = {};
};

/// The usual answers.
inline Answer ok(Value body) {
  return {.status = 200, .body = std::move(body)};
}
inline Answer created(Value body) {
  return {.status = 201, .body = std::move(body)};
}
inline Answer no_content() {
  return {.status = 204};
}
/// {"items": [...], "next": ...}; `next` is null if it is empty.
Answer list_answer(Value::List items, std::string next);

using Done = std::move_only_function<void(Result<Answer>)>;

/// What a handler does under overload: see admission.h.
enum class Load {
  kRead,  ///< Looks at something.
  kMore,  ///< Brings work.
  kLess,  ///< Ends work, or is an operator's: served when new work is refused already.
  kPoll,  ///< Waits for something, for long perhaps, and ends when Exchange::gone is given.
  kWait,  ///< Waits for something that it began and that goes on without it: told when the daemon stops.
};

/// A handler that is one transaction: what it changes and what it answers commit together, with the idempotency key of
/// the request.
struct InTransaction {
  std::function<Result<Answer>(Transaction&, const Call&)> run;
  perdure::Body body = perdure::Body::kOptimistic;
  Reserve reserve = Reserve::kKeepOut;
};
/// One that answers later. It must not block.
struct Asynchronous {
  std::function<void(CallPtr, Done)> run;
  /// Whose the idempotency key of a POST is. What is not a transaction has its answer kept right after it: only a crash
  /// between the two makes a repeat do it again.
  enum class Key { kKeptAfter, kItsOwn };
  Key key = Key::kKeptAfter;
};
/// One that is quicker where there is no idempotency key to see to.
struct WithOrWithoutKey {
  InTransaction with;
  Asynchronous without;
};
/// One that may block: it runs on a thread for such work.
struct Blocking {
  std::function<Result<Answer>(const Call&)> run;
};
/// One that answers in its own way.
struct Raw {
  std::function<void(CallPtr)> run;
};

struct Route {
  std::string method;
  /// "/v1/{space}/events/{id}"
  std::string pattern;
  Load load;
  std::variant<InTransaction, Asynchronous, WithOrWithoutKey, Blocking, Raw> handler;
  /// Its body is whatever it is, and its idempotency key is its own.
  bool takes_any_body = false;
  /// What it answers instead of a problem, with the status of that, whenever it is refused or fails.
  std::function<Response(int status)> when_refused = {};
};

}  // namespace perdure::http
