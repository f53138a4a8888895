#include "session/nats/nats_protocol.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <vector>

#include "session/rows.h"

namespace perdure::nats {
namespace {

using simdjson::dom::element;

/// Calls `read` with the parsed text; nothing if it is no JSON, or `read` finds something amiss.
template <class T, class F>
std::optional<T> parsed(std::string_view text, F read) {
  simdjson::dom::parser parser;
  element document;
  if (parser.parse(simdjson::padded_string(text)).get(document) != simdjson::SUCCESS) return std::nullopt;
  return read(document);
}

template <class T>
std::optional<T> field(element object, const char* path) {
  T value;
  if (object.at_pointer(path).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string ns(Duration duration) {
  return std::to_string(duration.count());
}

/// The value of a header in the block that begins with NATS/1.0.
std::string_view header(std::string_view block, std::string_view name) {
  std::size_t at = block.find("\r\n" + std::string(name) + ":");
  if (at == std::string_view::npos) return {};
  std::string_view rest = block.substr(at + 2 + name.size() + 1);
  rest = rest.substr(0, rest.find("\r\n"));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

bool only_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
  });
}

}  // namespace

std::optional<ApiError> error_of(std::string_view answer) {
  using Found = std::optional<ApiError>;
  auto found = parsed<Found>(answer, [](element document) -> Found {
    auto code = field<std::int64_t>(document, "/error/err_code");
    auto text = field<std::string_view>(document, "/error/description");
    if (!code && !text && !field<element>(document, "/error")) return std::nullopt;
    return ApiError{static_cast<int>(code.value_or(0)), std::string(text.value_or("an error without words"))};
  });
  if (!found) return ApiError{0, "an answer that is no JSON"};
  return *found;
}

std::optional<std::uint64_t> sequence_of(std::string_view answer) {
  return parsed<std::uint64_t>(answer, [](element document) { return field<std::uint64_t>(document, "/seq"); });
}

std::optional<BucketInfo> bucket_of(std::string_view stream_info) {
  return parsed<BucketInfo>(stream_info, [](element document) -> std::optional<BucketInfo> {
    auto age = field<std::int64_t>(document, "/config/max_age");
    if (!age) return std::nullopt;
    return BucketInfo{Duration(*age), field<bool>(document, "/config/allow_rollup_hdrs").value_or(false)};
  });
}

std::string create_stream(const NatsOptions& options) {
  // As the clients of NATS make a bucket with a history of one. Duplicates are not looked for longer than a key lives.
  return R"({"name":"KV_)" + options.bucket + R"(","subjects":["$KV.)" + options.bucket +
         R"(.>"],"retention":"limits","max_consumers":-1,"max_msgs_per_subject":1,"max_msgs":-1,"max_bytes":-1,)" +
         R"("max_msg_size":-1,"storage":"file","discard":"new","allow_rollup_hdrs":true,"deny_delete":true,)" +
         R"("allow_direct":true,"num_replicas":)" + std::to_string(options.replicas) + R"(,"max_age":)" +
         ns(options.max_age) + R"(,"duplicate_window":)" +
         ns(std::min(options.max_age, Duration(std::chrono::minutes(2)))) + "}";
}

std::string create_consumer(const NatsOptions& options, const std::string& deliver_subject, Duration heartbeat) {
  return R"({"stream_name":"KV_)" + options.bucket + R"(","config":{"deliver_subject":")" + deliver_subject +
         R"(","deliver_policy":"last_per_subject","ack_policy":"none","replay_policy":"instant","mem_storage":true,)" +
         R"("filter_subject":"$KV.)" + options.bucket + R"(.>","idle_heartbeat":)" + ns(heartbeat) +
         R"(,"inactive_threshold":)" + ns(heartbeat * 8) + "}}";
}

std::string last_message_of(const std::string& subject) {
  return R"({"last_by_subj":")" + subject + R"("})";
}

std::optional<Entry> entry_of(std::string_view answer) {
  return parsed<Entry>(answer, [](element document) -> std::optional<Entry> {
    auto sequence = field<std::uint64_t>(document, "/message/seq");
    auto time = field<std::string_view>(document, "/message/time");
    auto headers = decode_base64(field<std::string_view>(document, "/message/hdrs").value_or(""));
    auto data = decode_base64(field<std::string_view>(document, "/message/data").value_or(""));
    auto written = time ? parse_time(*time) : std::nullopt;
    if (!sequence || !written || !headers || !data) return std::nullopt;
    return Entry{*sequence, is_marker(header(*headers, "KV-Operation")), std::move(*data), *written};
  });
}

std::string value_of(const std::string& instance_id, LeaderStatus status) {
  return R"({"instance_id":")" + instance_id + R"(","status":")" + std::string(name_of(status)) + R"("})";
}

KeyValue parse_value(std::string_view value) {
  auto read = parsed<KeyValue>(value, [](element document) -> std::optional<KeyValue> {
    auto owner = field<std::string_view>(document, "/instance_id");
    auto status = field<std::string_view>(document, "/status");
    if (!owner) return std::nullopt;
    return KeyValue{std::string(*owner), parse_leader_status(status.value_or("")).value_or(LeaderStatus::kWaiting)};
  });
  return read.value_or(KeyValue{});
}

bool is_marker(std::string_view operation) {
  return operation == "DEL" || operation == "PURGE";
}

std::optional<Delivery> delivery_of(std::string_view reply_subject) {
  // $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>; newer servers put a domain
  // and an account before the stream, and may add to the end.
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= reply_subject.size();) {
    std::size_t dot = std::min(reply_subject.find('.', at), reply_subject.size());
    parts.push_back(reply_subject.substr(at, dot - at));
    at = dot + 1;
  }
  if (parts.size() < 9 || parts[0] != "$JS" || parts[1] != "ACK") return std::nullopt;
  std::size_t shift = parts.size() >= 11 ? 2 : 0;
  auto stream = number(parts[5 + shift]), consumer = number(parts[6 + shift]);
  if (!stream || !consumer) return std::nullopt;
  return Delivery{*stream, *consumer};
}

std::optional<WallTime> parse_time(std::string_view text) {
  auto digits = [&](std::size_t at, std::size_t count) -> std::optional<int> {
    if (text.size() < at + count) return std::nullopt;
    auto value = number(text.substr(at, count));
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  auto year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
  auto hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
  if (!year || !month || !day || !hour || !minute || !second || !text.ends_with('Z')) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                   std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  std::int64_t fraction = 0;
  if (text.size() > 20) {
    std::string rest(text.substr(20, text.size() - 21));
    rest.resize(9, '0');
    auto value = number(rest);
    if (text[19] != '.' || !value) return std::nullopt;
    fraction = static_cast<std::int64_t>(*value);
  }
  Duration since = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                   std::chrono::minutes(*minute) + std::chrono::seconds(*second) + Duration(fraction);
  return WallTime(since);
}

std::optional<std::string> decode_base64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

Result<void> check_options(const NatsOptions& options) {
  auto wrong = [](std::string what) { return fail(ErrorCode::kInvalidArgument, std::move(what)); };
  if (options.url.empty()) return wrong("the url of NATS is empty; say where the server is, as nats://127.0.0.1:4222");
  if (options.bucket.empty() || options.bucket.size() > 64 || !only_of(options.bucket, "_-"))
    return wrong("the bucket '" + printable(options.bucket) + "' is not a name: 1 to 64 of A-Za-z0-9_-");
  if (options.max_age < std::chrono::milliseconds(200)) return wrong("max_age must be at least 200 ms");
  if (options.replicas < 1 || options.replicas > 5) return wrong("replicas must be from 1 to 5");
  if (options.connect_timeout <= Duration::zero()) return wrong("connect_timeout must be more than nothing");
  if (!options.instance_id.empty()) return session::check_short_name(options.instance_id, "the instance_id");
  return {};
}

Result<void> check_key(std::string_view key) {
  bool good = !key.empty() && key.size() <= 120 && only_of(key, "-/_=.") && !key.starts_with('.') &&
              !key.ends_with('.') && key.find("..") == key.npos;
  if (good) return {};
  return fail(ErrorCode::kInvalidArgument,
              "the key '" + printable(key) + "' is not one of NATS: 1 to 120 of A-Za-z0-9-/_=. without an empty part");
}

}  // namespace perdure::nats
