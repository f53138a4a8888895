// Finding the daemon, and asking it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "http/blocking_client.h"
#include "perdure/value.h"

namespace perdure::cli {

/// Where a daemon may be.
struct Places {
  /// What --url or PERDURE_URL says; then nothing else is tried.
  std::optional<std::string> url = {};
  /// The directory whose sockets are tried, in the order of their names.
  std::string directory = "perdure-data";
  std::string otherwise = "http://127.0.0.1:7420";
};

/// A client connected to the first that answers; `timeout` is for each of them. Errors: exit code 5, saying how to
/// start one; 2 for a bad URL.
OrFailure<std::unique_ptr<http::BlockingClient>> find_daemon(const Places& places,
                                                             Duration timeout = std::chrono::seconds(5));

/// Whether a call may be made again when nobody knows what became of it.
enum class Repeat {
  kNever,
  kSafe,   ///< It changes nothing, or the same thing.
  kByKey,  ///< It carries an Idempotency-Key, which makes it safe.
};

struct Call {
  std::string method;
  std::string target;
  std::optional<std::string> body = {};
  http::Headers headers = {};
  Duration timeout = std::chrono::seconds(30);
  Repeat repeat = Repeat::kNever;
  /// How often it is made again if the daemon says that it is busy.
  int busy_retries = 0;
};

struct Answer {
  int status = 200;
  http::Headers headers = {};
  std::string text = {};
  /// Null if there is no body.
  Value body = {};
};

/// Not thread-safe.
class Daemon {
 public:
  Daemon(Places places, std::optional<std::string> token, std::optional<std::string> traceparent)
      : places_(std::move(places)), token_(std::move(token)), traceparent_(std::move(traceparent)) {}

  /// Makes a call and reads its answer. A call that may be repeated is, for some seconds, if the connection is lost.
  /// Errors: as the answer or the connection says.
  OrFailure<Answer> ask(const Call& call);
  /// An answer that comes in pieces.
  OrFailure<http::Response> stream(const Call& call, const http::BlockingClient::OnPiece& on_piece);

  /// Connects if need be. For those who make their own connections.
  OrFailure<http::Url> url();
  /// Looks for a daemon anew the next time.
  void forget() { client_.reset(); }
  /// With the headers that every call has.
  http::Request request_of(const Call& call) const;

 private:
  OrFailure<void> connect();
  OrFailure<http::Response> send(const http::Request& request, const Call& call);

  Places places_;
  std::optional<std::string> token_;
  std::optional<std::string> traceparent_;
  std::unique_ptr<http::BlockingClient> client_;
};

/// "/v1/mail%20box/events?state=dead": segments and values are encoded here.
class Target {
 public:
  Target(std::initializer_list<std::string_view> segments);
  /// Leaves it out if there is no value.
  Target& query(std::string_view name, const std::optional<std::string>& value);
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "/v1";
};

/// Different each time, for Idempotency-Key.
std::string make_idempotency_key();
/// Blocks for so long.
void pause_for(Duration duration);

}  // namespace perdure::cli
