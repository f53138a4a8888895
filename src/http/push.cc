#include "http/push.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/rfc3339.h"
#include "http/webhook.h"
#include "session/rows.h"
#include "session/settings_table.h"
#include "store/report.h"
#include "store/store_access.h"
#include "store/system_access.h"
#include "tuple/utf8.h"

namespace perdure::http {
namespace {

constexpr SettingsTable kTable("push");
constexpr int kFormat = 1;
constexpr unsigned kConcurrencyMax = 1'000;
constexpr Duration kDay = std::chrono::hours(24);
constexpr std::size_t kSecretBytesMax = 1'000;
constexpr std::size_t kUrlBytesMax = 4'000;
/// The queue gives a handler up only if the client has not: its own message says more.
constexpr Duration kSlack = std::chrono::seconds(10);

Bytes encode(const PushSettings& settings) {
  return tuple::pack(kFormat, settings.url, settings.secret, settings.concurrency,
                     static_cast<std::int64_t>(settings.timeout.count()));
}

Result<PushSettings> decode(BytesView row) {
  tuple::Reader reader(row);
  int format = reader.next<int>();
  PushSettings settings;
  settings.url = reader.next_text();
  settings.secret = reader.next_text();
  settings.concurrency = reader.next<unsigned>();
  settings.timeout = Duration(reader.next<std::int64_t>());
  if (!reader.ok() || format != kFormat)
    return fail(ErrorCode::kCorrupt, "the row of a push worker cannot be read; run verify");
  return settings;
}

Result<void> check_names(std::string_view space, std::string_view worker) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  return session::check_short_name(worker, "the worker");
}

bool is_printable(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// What one worker is pushed by; handlers that run keep theirs.
struct Pusher {
  Node& node;
  std::shared_ptr<Client> client;
  Url url;
  Bytes key;
  Duration timeout;

  Result<Value> push(Job& job) const;
  Result<Value> judge(Job& job, const Response& answer) const;
};

Result<Value> Pusher::push(Job& job) const {
  const Event& event = job.event();
  std::string id = to_string(event.id);
  Request request{.method = "POST", .target = {}, .headers = {{"Content-Type", "application/json"}}};
  request.body = Value(Value::Map{{"id", id},
                                  {"worker", event.worker},
                                  {"value", event.value},
                                  {"attempt", job.attempt()},
                                  {"enqueued_at", format_rfc3339(event.enqueued_at)}})
                     .to_json();
  add_webhook_headers(request.headers, key, id, node.now(), request.body);
  if (is_printable(event.traceparent)) request.headers.add("traceparent", event.traceparent);
  SendOptions options{
      .timeout = timeout, .body_max = kResultBytesMax, .when_larger = WhenLarger::kCut, .cancel = job.cancel_signal()};
  auto answer = client->send_and_wait(url, std::move(request), options);
  if (!answer) return std::unexpected(std::move(answer.error()));
  return judge(job, *answer);
}

Result<Value> Pusher::judge(Job& job, const Response& answer) const {
  if (answer.status >= 200 && answer.status < 300) {
    // One that was cut is not JSON any more.
    auto result = Value::from_json(answer.body);
    return result ? std::move(*result) : Value();
  }
  std::string error = "HTTP " + std::to_string(answer.status);
  if (answer.status >= 300 && answer.status < 400)
    error += ": redirects are not followed; set the URL that it leads to";
  if (std::string text = excerpt(answer.body); !text.empty()) error += ": " + text;
  if (answer.status == 410) job.give_up();
  if (answer.status == 429 || answer.status == 503)
    if (const std::string* after = answer.headers.find("retry-after"))
      if (auto delay = parse_retry_after(*after, node.now())) job.retry_in(*delay);
  return fail(ErrorCode::kHandlerFailed, std::move(error));
}

}  // namespace

std::string excerpt(std::string_view body) {
  constexpr std::size_t kBytesMax = 200;
  std::string text(body.substr(0, kBytesMax));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  for (auto bad = find_invalid_utf8(text); bad; bad = find_invalid_utf8(text)) {
    // A character that was cut, or else something that is no text.
    if (text.size() - *bad < 4 && body.size() > kBytesMax)
      text.resize(*bad);
    else
      text[*bad] = '?';
  }
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::optional<Duration> parse_retry_after(std::string_view text, WallTime now) {
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    std::uint64_t seconds = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || seconds > 86'400) return kDay;
    return std::chrono::seconds(seconds);
  }
  // "Sun, 06 Nov 1994 08:49:37 GMT"
  if (text.size() != 29 || text.substr(3, 2) != ", " || !text.ends_with(" GMT")) return std::nullopt;
  auto month = std::ranges::find(kMonths, text.substr(8, 3));
  if (month == kMonths.end()) return std::nullopt;
  std::string number = std::to_string(month - kMonths.begin() + 1);
  if (number.size() == 1) number.insert(0, 1, '0');
  std::string rfc3339 = std::string(text.substr(12, 4)) + "-" + number + "-" + std::string(text.substr(5, 2)) + "T" +
                        std::string(text.substr(17, 8)) + "Z";
  auto at = parse_rfc3339(rfc3339);
  if (!at) return std::nullopt;
  return std::clamp<Duration>(*at - now, Duration::zero(), kDay);
}

class Pushers::Impl {
 public:
  Impl(Node& node, std::shared_ptr<Client> client)
      : node_(node),
        client_(std::move(client)),
        follower_(std::make_shared<SettingsFollower>(
            node.store(), kTable, [this](const std::vector<SettingsTable::Setting>& settings) { serve(settings); })) {
    follower_->start();
  }

  const Client& client() const { return *client_; }

  void stop() {
    follower_->stop();
    // Nobody else touches it any more.
    for (const auto& [name, row] : std::exchange(served_, {})) node_.queue().in(name.first).stop_working(name.second);
  }

 private:
  using Name = std::pair<std::string, std::string>;

  void serve(const std::vector<SettingsTable::Setting>& settings) {
    std::map<Name, Bytes> wanted;
    for (const auto& each : settings) wanted.emplace(Name(each.space, each.name), each.value);
    for (const auto& [name, row] : served_)
      if (!wanted.contains(name)) node_.queue().in(name.first).stop_working(name.second);
    for (const auto& [name, row] : wanted)
      if (auto before = served_.find(name); before == served_.end() || before->second != row) begin(name, row);
    served_ = std::move(wanted);
  }

  void begin(const Name& name, const Bytes& row) {
    auto settings = decode(row);
    auto url = settings ? Url::parse(settings->url) : std::unexpected(settings.error());
    auto key = settings && !settings->secret.empty() ? webhook_key(settings->secret) : Bytes();
    if (!url || !key) return complain(name, url ? key.error() : url.error());
    auto pusher = std::make_shared<Pusher>(Pusher{node_, client_, std::move(*url), std::move(*key), settings->timeout});
    auto begun = node_.queue()
                     .in(name.first)
                     .work(name.second, [pusher](Job& job) { return pusher->push(job); },
                           {.concurrency = settings->concurrency, .timeout = settings->timeout + kSlack});
    if (!begun && begun.error().code != ErrorCode::kClosed) complain(name, begun.error());
  }

  void complain(const Name& name, const Error& error) {
    log(StoreAccess::impl(node_.store()).options(), LogLevel::kWarning, "push",
        "a worker cannot be served: " + error.message, {{"space", name.first}, {"worker", name.second}});
  }

  Node& node_;
  const std::shared_ptr<Client> client_;
  /// The row that each was begun with. The follower's alone, until that is stopped.
  std::map<Name, Bytes> served_;
  const std::shared_ptr<SettingsFollower> follower_;
};

Pushers::Pushers(Node& node, std::shared_ptr<Client> client) : impl_(std::make_shared<Impl>(node, std::move(client))) {}

Pushers::~Pushers() {
  stop();
}

void Pushers::stop() {
  impl_->stop();
}

Result<void> Pushers::check(const PushSettings& settings) const {
  auto wrong = [](std::string_view what) { return fail(ErrorCode::kInvalidArgument, std::string(what)); };
  if (settings.url.size() > kUrlBytesMax) return wrong("url has more than 4000 bytes");
  if (auto good = tuple::check_text(settings.url, "url"); !good) return good;
  if (auto good = tuple::check_text(settings.secret, "secret"); !good) return good;
  auto url = Url::parse(settings.url);
  if (!url) return std::unexpected(std::move(url.error()));
  if (auto allowed = impl_->client().allowed().check(*url); !allowed) return allowed;
  if (settings.secret.size() > kSecretBytesMax) return wrong("secret has more than 1000 bytes");
  if (!settings.secret.empty()) {
    auto key = webhook_key(settings.secret);
    if (!key) return std::unexpected(std::move(key.error()));
  }
  if (settings.concurrency < 1 || settings.concurrency > kConcurrencyMax)
    return wrong("concurrency must be from 1 to 1000");
  if (settings.timeout <= Duration::zero() || settings.timeout > kDay)
    return wrong("timeout must be more than nothing, and at most a day");
  return {};
}

void Pushers::set(Transaction& txn, std::string_view space, std::string_view worker,
                  const std::optional<PushSettings>& settings) const {
  in_txn(txn, check_names(space, worker));
  if (settings) in_txn(txn, check(*settings));
  kTable.write(txn, space, worker, settings ? std::optional(encode(*settings)) : std::nullopt);
}

std::optional<PushSettings> Pushers::get(Reader& reader, std::string_view space, std::string_view worker) const {
  auto row = kTable.read(reader, space, worker);
  if (!row) return std::nullopt;
  return in_txn(reader, decode(*row));
}

std::vector<std::pair<std::string, PushSettings>> Pushers::list(Reader& reader, std::string_view space,
                                                                const PageOptions& page) const {
  std::vector<std::pair<std::string, PushSettings>> settings;
  for (const auto& each : kTable.list(reader, space, page))
    settings.emplace_back(each.name, in_txn(reader, decode(each.value)));
  return settings;
}

}  // namespace perdure::http
