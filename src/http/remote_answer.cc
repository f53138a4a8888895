#include "http/remote_answer.h"

#include <charconv>
#include <cmath>

#include "perdure/describe.h"

namespace perdure::http {
namespace {

// As they stand in the answer.
struct EmitItem {
  std::string worker;
  Value value;
  Value delay;
  PERDURE_DESCRIBE(EmitItem, worker, value, delay)
};
struct CastItem {
  std::string kind;
  std::string id;
  Value message;
  Value delay;
  PERDURE_DESCRIBE(CastItem, kind, id, message, delay)
};
struct TouchItem {
  std::string debouncer;
  std::string key;
  Value payload;
  PERDURE_DESCRIBE(TouchItem, debouncer, key, payload)
};
struct AppendItem {
  std::string partition;
  std::string type;
  std::uint64_t workspace = 0;
  std::vector<std::string> next;
  Value payload;
  PERDURE_DESCRIBE(AppendItem, partition, type, workspace, next, payload)
};
struct ReplyItem {
  std::string from;
  Value reply;
  PERDURE_DESCRIBE(ReplyItem, from, reply)
};
struct Answered {
  Value state;
  Value reply;
  bool noreply = false;
  bool lock = false;
  std::optional<std::string> stop;
  std::vector<EmitItem> emit;
  std::vector<CastItem> cast;
  std::vector<TouchItem> touch;
  std::vector<AppendItem> append;
  std::vector<ReplyItem> replies;
  PERDURE_DESCRIBE(Answered, state, reply, noreply, lock, stop, emit, cast, touch, append, replies)
};

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kHandlerFailed, std::move(message));
}

std::string place(std::string_view list, std::size_t index, std::string_view field) {
  return std::string(list) + "[" + std::to_string(index) + "]." + std::string(field);
}

/// A hundred years: what is longer is a mistake.
constexpr double kSecondsMax = 100.0 * 365 * 86'400;

/// "250ms", "5s", "5m", "24h", "7d", or a number of seconds; null is none.
std::optional<Duration> duration_of(const Value& value) {
  double number = 0, unit = 1;
  if (value.is_null()) return Duration::zero();
  if (const auto* integer = value.as_integer()) {
    number = static_cast<double>(*integer);
  } else if (const auto* seconds = value.as_double()) {
    number = *seconds;
  } else if (const auto* text = value.as_text()) {
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number, std::chars_format::fixed);
    std::string_view name(end, text->data() + text->size());
    if (error != std::errc()) return std::nullopt;
    if (name == "ms")
      unit = 1e-3;
    else if (name == "m")
      unit = 60;
    else if (name == "h")
      unit = 3'600;
    else if (name == "d")
      unit = 86'400;
    else if (name != "s")
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (!(number >= 0) || number * unit > kSecondsMax) return std::nullopt;
  return std::chrono::round<Duration>(std::chrono::duration<double>(number * unit));
}

/// Errors: kHandlerFailed.
Result<Duration> delay_of(const Value& value, std::string_view list, std::size_t index) {
  if (auto delay = duration_of(value)) return *delay;
  return wrong(place(list, index, "delay") +
               ": expected \"250ms\", \"5s\", \"5m\", \"24h\", \"7d\" or a number of "
               "seconds, found " +
               describe_found(value));
}

/// The one of `names` that is not there.
Result<void> need(std::string_view list, std::size_t index,
                  std::initializer_list<std::pair<std::string_view, const std::string*>> names) {
  for (const auto& [name, text] : names)
    if (text->empty()) return wrong(place(list, index, name) + " is missing");
  return {};
}

template <class T>
Result<void> few(const std::vector<T>& list, std::string_view name) {
  if (list.size() <= kRemoteItemsMax) return {};
  return wrong(std::string(name) + " has " + std::to_string(list.size()) + " items; at most " +
               std::to_string(kRemoteItemsMax) + " are allowed");
}

Result<void> take_lists(Answered& from, RemoteAnswer& to) {
  for (std::size_t i = 0; i < from.emit.size(); ++i) {
    EmitItem& item = from.emit[i];
    if (auto good = need("emit", i, {{"worker", &item.worker}}); !good) return good;
    auto delay = delay_of(item.delay, "emit", i);
    if (!delay) return std::unexpected(std::move(delay.error()));
    to.emit.push_back({std::move(item.worker), std::move(item.value), *delay});
  }
  for (std::size_t i = 0; i < from.cast.size(); ++i) {
    CastItem& item = from.cast[i];
    if (auto good = need("cast", i, {{"kind", &item.kind}, {"id", &item.id}}); !good) return good;
    auto delay = delay_of(item.delay, "cast", i);
    if (!delay) return std::unexpected(std::move(delay.error()));
    to.cast.push_back({std::move(item.kind), std::move(item.id), std::move(item.message), *delay});
  }
  for (std::size_t i = 0; i < from.touch.size(); ++i) {
    TouchItem& item = from.touch[i];
    if (auto good = need("touch", i, {{"debouncer", &item.debouncer}, {"key", &item.key}}); !good) return good;
    to.touch.push_back({std::move(item.debouncer), std::move(item.key), std::move(item.payload)});
  }
  for (std::size_t i = 0; i < from.append.size(); ++i) {
    AppendItem& item = from.append[i];
    if (auto good = need("append", i, {{"partition", &item.partition}, {"type", &item.type}}); !good) return good;
    to.append.push_back({std::move(item.partition),
                         {std::move(item.type), item.workspace, std::move(item.next), std::move(item.payload)}});
  }
  return {};
}

Result<void> take_replies(Answered& from, RemoteAnswer& to, std::string_view space) {
  for (std::size_t i = 0; i < from.replies.size(); ++i) {
    ReplyItem& item = from.replies[i];
    if (auto good = need("replies", i, {{"from", &item.from}}); !good) return good;
    auto caller = From::parse(item.from);
    if (!caller) return wrong(place("replies", i, "from") + ": " + caller.error().message);
    if (caller->actor.space != space)
      return wrong(place("replies", i, "from") + " names a caller in the space " + caller->actor.space +
                   ", and the actor is in " + std::string(space));
    to.replies.push_back({std::move(*caller), std::move(item.reply)});
  }
  return {};
}

}  // namespace

Result<RemoteAnswer> read_remote_answer(std::string_view body, RemoteFields fields, std::string_view space) {
  auto pass_on = [](auto& failed) { return std::unexpected(std::move(failed.error())); };
  auto value = Value::from_json(body);
  if (!value) return wrong(value.error().message);
  if (!value->is_map()) return wrong("expected an object, found " + describe_found(*value));
  if (fields == RemoteFields::kState)
    for (const auto& [name, entry] : *value->as_map())
      if (name != "state") return wrong(name + ": only state may be answered here");
  auto answered = from_value<Answered>(*value);
  if (!answered) return wrong(answered.error().message);
  RemoteAnswer answer{.state = {},
                      .reply = {},
                      .noreply = answered->noreply,
                      .lock = answered->lock,
                      .stop = {},
                      .emit = {},
                      .cast = {},
                      .touch = {},
                      .append = {},
                      .replies = {}};
  if (value->find("state")) answer.state = std::move(answered->state);
  if (value->find("reply")) answer.reply = std::move(answered->reply);
  answer.stop = std::move(answered->stop);
  if (answer.reply && answer.noreply) return wrong("noreply: true contradicts reply");
  if (answer.lock && (answer.reply || answer.stop))
    return wrong("lock: true contradicts " + std::string(answer.reply ? "reply" : "stop") +
                 "; what runs under the lock says that");
  if (auto good = few(answered->emit, "emit"); !good) return pass_on(good);
  if (auto good = few(answered->cast, "cast"); !good) return pass_on(good);
  if (auto good = few(answered->touch, "touch"); !good) return pass_on(good);
  if (auto good = few(answered->append, "append"); !good) return pass_on(good);
  if (auto good = few(answered->replies, "replies"); !good) return pass_on(good);
  if (auto good = take_lists(*answered, answer); !good) return pass_on(good);
  if (auto good = take_replies(*answered, answer, space); !good) return pass_on(good);
  return answer;
}

}  // namespace perdure::http
