#include "cli/daemon.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "runtime/latch.h"
#include "runtime/random.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

// How long a lost daemon may take to come back before a repeatable call is given up.
constexpr Duration kReturnTimeout = 10s;
constexpr std::string_view kStartOne = "start one with: perdure serve";

std::vector<std::string> sockets_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  // Not in a range-for, which throws what goes wrong on the way.
  for (std::filesystem::directory_iterator entry(directory, error), end; entry != end; entry.increment(error))
    if (entry->path().extension() == ".sock") paths.push_back(std::filesystem::absolute(entry->path(), error).string());
  std::ranges::sort(paths);
  return paths;
}

OrFailure<Answer> read_answer(http::Response response) {
  if (response.status < 200 || response.status > 299) return std::unexpected(failure_of(response));
  Answer answer{response.status, std::move(response.headers), std::move(response.body), {}};
  if (answer.text.empty()) return answer;
  auto body = Value::from_json(answer.text);
  if (!body) return give_up(kExitError, "the daemon answered something that is not JSON: " + body.error().message);
  answer.body = std::move(*body);
  return answer;
}

Duration retry_after(const http::Response& response) {
  const std::string* seconds = response.headers.find("Retry-After");
  if (seconds == nullptr || seconds->empty() || seconds->size() > 3) return 200ms;
  if (!std::ranges::all_of(*seconds, [](char c) { return c >= '0' && c <= '9'; })) return 200ms;
  return std::clamp<Duration>(std::chrono::seconds(std::stoi(*seconds)), 50ms, 10s);
}

}  // namespace

void pause_for(Duration duration) {
  Latch never;
  never.wait_for(duration);
}

std::string make_idempotency_key() {
  std::array<char, 40> text;
  int size = std::snprintf(text.data(), text.size(), "cli-%016" PRIx64 "%016" PRIx64, random_seed(), random_seed());
  return {text.data(), static_cast<std::size_t>(size)};
}

OrFailure<std::unique_ptr<http::BlockingClient>> find_daemon(const Places& places, Duration timeout) {
  std::vector<http::Url> candidates;
  if (places.url) {
    auto url = http::Url::parse(*places.url);
    if (!url) return usage(url.error().message, "as in --url http://127.0.0.1:7420 or unix:///run/perdure.sock");
    candidates.push_back(std::move(*url));
  } else {
    for (std::string& path : sockets_in(places.directory))
      candidates.push_back({http::Url::Scheme::kUnix, "", 0, std::move(path)});
    candidates.push_back(*http::Url::parse(places.otherwise));
  }
  std::string why;
  for (http::Url& url : candidates) {
    auto client = std::make_unique<http::BlockingClient>(std::move(url));
    auto connected = client->connect(timeout);
    if (connected) return client;
    why = connected.error().message;
  }
  if (places.url) return give_up(kExitUnavailable, why, std::string(kStartOne));
  return give_up(kExitUnavailable, "no daemon has a socket in " + places.directory + ", and " + why,
                 std::string(kStartOne));
}

OrFailure<void> Daemon::connect() {
  if (client_ != nullptr) return {};
  auto found = find_daemon(places_);
  if (!found) return std::unexpected(std::move(found.error()));
  client_ = std::move(*found);
  return {};
}

OrFailure<http::Url> Daemon::url() {
  if (auto connected = connect(); !connected) return std::unexpected(std::move(connected.error()));
  return client_->url();
}

http::Request Daemon::request_of(const Call& call) const {
  http::Request request{call.method, call.target, call.headers, call.body.value_or("")};
  request.headers.add("Accept", "application/json");
  if (call.body) request.headers.add("Content-Type", "application/json");
  if (token_) request.headers.add("Authorization", "Bearer " + *token_);
  if (traceparent_) request.headers.add("traceparent", *traceparent_);
  if (call.repeat == Repeat::kByKey) request.headers.add("Idempotency-Key", make_idempotency_key());
  return request;
}

OrFailure<http::Response> Daemon::send(const http::Request& request, const Call& call) {
  std::optional<SteadyTime> give_up_at;
  Duration wait = 50ms;
  while (true) {
    Failure failure;
    if (auto connected = connect(); !connected) {
      failure = std::move(connected.error());
    } else {
      auto response = client_->send(request, call.timeout);
      if (response) return std::move(*response);
      failure = failure_of(response.error());
      bool lost = response.error().code == ErrorCode::kCommitUnknown;
      client_.reset();
      if (lost && call.repeat != Repeat::kNever && !give_up_at) give_up_at = deadline_after(kReturnTimeout);
    }
    // Without a first loss, a daemon that is not there is not worth waiting for.
    if (!give_up_at || steady_now() >= *give_up_at) return std::unexpected(std::move(failure));
    pause_for(wait);
    wait = std::min<Duration>(wait * 2, 1s);
  }
}

OrFailure<Answer> Daemon::ask(const Call& call) {
  http::Request request = request_of(call);
  for (int retries = call.busy_retries;; --retries) {
    auto response = send(request, call);
    if (!response) return std::unexpected(std::move(response.error()));
    bool busy = response->status == 429 || response->status == 503 || response->status == 507;
    if (!busy || retries <= 0) return read_answer(std::move(*response));
    pause_for(retry_after(*response));
  }
}

OrFailure<http::Response> Daemon::stream(const Call& call, const http::BlockingClient::OnPiece& on_piece) {
  if (auto connected = connect(); !connected) return std::unexpected(std::move(connected.error()));
  std::string refusal;
  auto head = client_->stream(request_of(call), call.timeout, [&](const http::Response& seen, std::string_view piece) {
    if (seen.status == 200) return on_piece(seen, piece);
    refusal += piece;
    return http::BlockingClient::Next::kGoOn;
  });
  if (!head) {
    forget();
    return std::unexpected(failure_of(head.error()));
  }
  head->body = std::move(refusal);
  if (head->status != 200) return std::unexpected(failure_of(*head));
  return std::move(*head);
}

Target::Target(std::initializer_list<std::string_view> segments) {
  for (std::string_view segment : segments) text_ += "/" + http::percent_encode(segment);
}

Target& Target::query(std::string_view name, const std::optional<std::string>& value) {
  if (!value) return *this;
  text_ += text_.find('?') == std::string::npos ? '?' : '&';
  text_ += std::string(name) + "=" + http::percent_encode(*value);
  return *this;
}

}  // namespace perdure::cli
