// /v1/{space}/transact: any number of changes of any kind, all or none of them.
#include "http/api.h"
#include "http/append_json.h"
#include "http/bind.h"
#include "http/event_json.h"
#include "http/keys.h"
#include "http/units.h"

namespace perdure::http {
namespace {

constexpr std::size_t kItemsMax = 1'000;

/// One request, while its lists are gone through. What is wrong with an item names the list and its place in it.
class Doing {
 public:
  Doing(Node& node, Transaction& txn, const Call& call)
      : node_(node), txn_(txn), call_(call), fields_(call.body, "the request") {}

  Result<Answer> run() {
    // Reading goes before writing: what was written has no version before the commit.
    each("check", [this](Fields& item, Value::Map&) { check(item); });
    each("complete", [this](Fields& item, Value::Map& out) { end(item, out, true); });
    each("fail", [this](Fields& item, Value::Map& out) { end(item, out, false); });
    each("append", [this](Fields& item, Value::Map& out) { append(item, out); });
    each("touch", [this](Fields& item, Value::Map& out) { touch(item, out); });
    each("cast", [this](Fields& item, Value::Map&) { cast(item); });
    emit();
    each("set", [this](Fields& item, Value::Map& out) { set(item, out); });
    clear();
    if (auto good = fields_.finish(); !good) return wrong(good);
    if (error_) return std::unexpected(std::move(*error_));
    return Answer{.body = std::move(out_), .show_version = Answer::ShowVersion::kBody};
  }

 private:
  template <class F>
  void each(const char* name, F act) {
    const Value::List* list = fields_.list(name);
    if (!list || !count(list->size())) return;
    Value::List answers;
    for (std::size_t i = 0; i < list->size() && !error_; ++i) {
      Fields item((*list)[i], std::string(name) + " " + std::to_string(i + 1));
      Value::Map answer;
      act(item, answer);
      if (auto good = item.finish(); !good) refuse(std::move(good.error()));
      answers.emplace_back(std::move(answer));
    }
    out_[name] = std::move(answers);
  }

  bool count(std::size_t items) {
    items_ += items;
    if (items_ > kItemsMax) refuse({ErrorCode::kTooLarge, "a transaction has at most 1000 items; this one has more"});
    return !error_;
  }
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  /// Whether the fields that were read so far are good, so that there is something to act upon.
  bool good(Fields& item) {
    auto result = item.finish();
    if (!result) refuse(std::move(result.error()));
    return !error_;
  }

  void check(Fields& item) {
    std::string key = item.required_text("key");
    auto version = item.text("version");
    if (!good(item)) return;
    auto found = get_key(txn_, call_.space(), key);
    if (!found) return refuse(std::move(found.error()));
    if (!version && !*found) return;
    auto wanted = version ? parse_version(*version) : Result<Version>(Version());
    if (!wanted) return refuse(std::move(wanted.error()));
    if (*found ? (*found)->version != *wanted : version.has_value())
      refuse({ErrorCode::kWrongState, "the key '" + key + "' is not at the version that was asked for; read it again"});
  }

  void end(Fields& item, Value::Map& out, bool complete) {
    auto id = item.uuid("id");
    auto token = item.token("token");
    if (!id) item.refuse("id", "is missing");
    if (!token) item.refuse("token", "is missing");
    const Value* result = complete ? item.any("result") : nullptr;
    std::string error = complete ? "" : item.text("error").value_or("failed without saying why");
    FailOptions options = complete ? FailOptions() : read_fail_options(item);
    if (!good(item)) return;
    Queue queue = node_.queue().in(call_.space());
    if (complete)
      queue.complete(txn_, *id, *token, result ? *result : Value());
    else
      queue.fail(txn_, *id, *token, std::move(error), options);
    out.emplace("id", to_string(*id));
  }

  void append(Fields& item, Value::Map& out) {
    std::string partition = item.required_text("partition");
    Append event = read_append(item);
    if (!good(item)) return;
    Value made = appended_json(node_.sequences().in(call_.space()).append(txn_, partition, event));
    out = std::move(*made.as_map());
  }

  void touch(Fields& item, Value::Map& out) {
    std::string debouncer = item.required_text("debouncer");
    std::string key = item.required_text("key");
    const Value* payload = item.any("payload");
    if (!good(item)) return;
    Window window = node_.debouncers().in(call_.space()).touch(txn_, debouncer, key, payload ? *payload : Value());
    out = {{"fires_at", format_time(window.fires_at)}, {"count", number_value(window.count)}};
  }

  void cast(Fields& item) {
    std::string kind = item.required_text("kind");
    std::string id = item.required_text("id");
    const Value* message = item.any("message");
    Duration delay = item.duration("delay").value_or(Duration::zero());
    if (!good(item)) return;
    node_.actors()
        .in(call_.space())
        .actor(kind, id)
        .cast(txn_, message ? *message : Value(), delay, call_.traceparent());
  }

  void emit() {
    const Value::List* list = fields_.list("emit");
    if (!list || !count(list->size()) || list->empty()) return;
    std::vector<NewEvent> events;
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto event = read_event((*list)[i], "emit " + std::to_string(i + 1));
      if (!event) return refuse(std::move(event.error()));
      event->options.traceparent = call_.traceparent();
      events.push_back(std::move(*event));
    }
    Value::List answers;
    for (const Emitted& each : node_.queue().in(call_.space()).emit_many(txn_, std::move(events))) {
      Value::Map answer{{"id", to_string(each.id)}};
      if (each.duplicate) answer.emplace("duplicate", true);
      answers.emplace_back(std::move(answer));
    }
    out_["emit"] = std::move(answers);
  }

  void set(Fields& item, Value::Map& out) {
    std::string key = item.required_text("key");
    const Value* value = item.any("value");
    if (!good(item)) return;
    if (auto valid = check_app_key(key); !valid) return refuse(std::move(valid.error()));
    if (auto done = set_key(txn_, call_.space(), key, value ? *value : Value()); !done)
      return refuse(std::move(done.error()));
    out.emplace("key", key);
  }

  void clear() {
    const Value::List* list = fields_.list("clear");
    if (!list || !count(list->size())) return;
    Value::List answers;
    for (const Value& each : *list) {
      const Value* named = each.is_map() ? each.find("key") : &each;
      const std::string* key = named ? named->as_text() : nullptr;
      if (!key) return refuse({ErrorCode::kInvalidArgument, "'clear' must be an array of keys"});
      if (auto valid = check_app_key(*key); !valid) return refuse(std::move(valid.error()));
      clear_key(txn_, call_.space(), *key);
      answers.emplace_back(Value::Map{{"key", *key}});
    }
    out_["clear"] = std::move(answers);
  }

  Node& node_;
  Transaction& txn_;
  const Call& call_;
  Fields fields_;
  Value out_ = Value::Map();
  std::size_t items_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::vector<Route> transact_routes(Node& node) {
  auto run = [](Node& at, Transaction& txn, const Call& call) { return Doing(at, txn, call).run(); };
  return {{"POST", "/v1/{space}/transact", Load::kMore, changes(node, run, Reserve::kKeepOut)}};
}

}  // namespace perdure::http
