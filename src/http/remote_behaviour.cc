// What runs in the place of a handler: asks the URL of the kind, and does what it answers.
#include "http/push.h"
#include "http/remote_answer.h"
#include "http/remote_kind.h"

namespace perdure::http {
namespace {

/// A state of the largest size, and what JSON adds to it.
constexpr std::size_t kAnswerBytesMax = std::size_t{24} << 20;

struct Remote {
  Node& node;
  std::shared_ptr<Client> client;
  Url url;
  RemoteKind settings;

  struct Ask {
    std::string_view op;
    const ActorId& actor;
    const Value& state;
    int schema;
    const Value* message = nullptr;
    const Turn* turn = nullptr;
    std::optional<int> to_schema = {};
  };
  /// Errors: kInvalidArgument if it says that it does not take the message; else a failed attempt.
  Result<RemoteAnswer> ask(const Ask& ask, RemoteFields fields, const SendOptions& options) const;
  SendOptions options() const { return {.timeout = settings.timeout, .body_max = kAnswerBytesMax}; }
};

Error refused(const std::string& where, const Response& answer) {
  const std::string* type = answer.headers.find("content-type");
  if (answer.status == 400 && type && type->starts_with("application/problem+json")) {
    auto problem = Value::from_json(answer.body);
    const Value* detail = problem ? problem->find("detail") : nullptr;
    if (!detail && problem) detail = problem->find("title");
    const std::string* text = detail ? detail->as_text() : nullptr;
    return {ErrorCode::kInvalidArgument, where + " refused the message: " + excerpt(text ? *text : answer.body)};
  }
  std::string error = where + " answered HTTP " + std::to_string(answer.status);
  if (std::string text = excerpt(answer.body); !text.empty()) error += ": " + text;
  return {ErrorCode::kHandlerFailed, std::move(error)};
}

Result<RemoteAnswer> Remote::ask(const Ask& ask, RemoteFields fields, const SendOptions& options) const {
  const Turn* turn = ask.turn;
  Value::Map body{{"op", ask.op},
                  {"actor", Value::Map{{"space", ask.actor.space}, {"kind", ask.actor.kind}, {"id", ask.actor.id}}},
                  {"message", ask.message ? *ask.message : Value()},
                  {"state", ask.state},
                  {"schema", ask.schema},
                  {"from", turn && turn->from() ? Value(turn->from()->to_string()) : Value()},
                  {"attempt", turn ? turn->attempt() : 1}};
  if (ask.to_schema) body.emplace("to_schema", *ask.to_schema);
  Request request{.method = "POST",
                  .target = {},
                  .headers = {{"Content-Type", "application/json"}},
                  .body = Value(std::move(body)).to_json()};
  if (turn && !turn->traceparent().empty()) request.headers.add("traceparent", std::string(turn->traceparent()));
  auto answer = client->send_and_wait(url, std::move(request), options);
  if (!answer) return fail(ErrorCode::kHandlerFailed, to_string(answer.error()));
  std::string where = to_string(url);
  if (answer->status != 200) return std::unexpected(refused(where, *answer));
  auto read = read_remote_answer(answer->body, fields, ask.actor.space);
  if (!read) return fail(ErrorCode::kHandlerFailed, "the answer of " + where + " is wrong: " + read.error().message);
  return read;
}

class RemoteActivation final : public Activation {
 public:
  RemoteActivation(std::shared_ptr<const Remote> remote, ActorId actor, Value state)
      : remote_(std::move(remote)), actor_(std::move(actor)), state_(std::move(state)) {}

  Result<Handled> handle(MessageType type, const Value& message, Turn& turn) override {
    std::string_view op = type == MessageType::kCall ? "call" : type == MessageType::kCast ? "cast" : "info";
    return take(ask(op, message, turn, remote_->options()), turn);
  }
  Result<Handled> handle_locked(const Value& message, Turn& turn) override {
    SendOptions options = remote_->options();
    options.timeout = remote_->settings.locked_timeout;
    options.cancel = turn.cancel_signal();
    // It may have side effects: whoever closed a kept connection may have begun with it.
    options.resend = Resend::kNever;
    return take(ask("locked", message, turn, options), turn);
  }
  Value state() const override { return state_; }

 private:
  Result<RemoteAnswer> ask(std::string_view op, const Value& message, const Turn& turn, const SendOptions& options) {
    return remote_->ask({op, actor_, state_, remote_->settings.schema, &message, &turn}, RemoteFields::kAll, options);
  }
  Result<Handled> take(Result<RemoteAnswer> answer, Turn& turn);
  void add_effects(RemoteAnswer& answer, Turn& turn) const;

  const std::shared_ptr<const Remote> remote_;
  const ActorId actor_;
  Value state_;
};

Result<Handled> RemoteActivation::take(Result<RemoteAnswer> answer, Turn& turn) {
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->state) state_ = std::move(*answer->state);
  for (RemoteCast& cast : answer->cast)
    turn.cast({actor_.space, std::move(cast.kind), std::move(cast.id)}, std::move(cast.message), cast.delay);
  for (RemoteReply& reply : answer->replies) turn.reply(std::move(reply.from), std::move(reply.reply));
  add_effects(*answer, turn);
  Handled handled;
  if (answer->lock) {
    handled.then = Handled::Then::kLock;
    return handled;
  }
  if (!answer->noreply) handled.reply = answer->reply ? std::move(*answer->reply) : Value();
  if (answer->stop) {
    handled.then = Handled::Then::kStop;
    handled.reason = std::move(*answer->stop);
  }
  return handled;
}

void RemoteActivation::add_effects(RemoteAnswer& answer, Turn& turn) const {
  Node& node = remote_->node;
  for (RemoteEmit& emit : answer.emit) {
    std::string what = "emit to " + emit.worker;
    turn.add({std::move(what),
              [&node, space = actor_.space, emit = std::move(emit),
               traceparent = std::string(turn.traceparent())](Transaction& txn) -> Result<void> {
                EmitOptions options{.delay = emit.delay, .traceparent = traceparent};
                node.queue().in(space).emit(txn, emit.worker, emit.value, options);
                return {};
              }});
  }
  for (RemoteTouch& touch : answer.touch) {
    std::string what = "touch of " + touch.debouncer;
    turn.add(
        {std::move(what), [&node, space = actor_.space, touch = std::move(touch)](Transaction& txn) -> Result<void> {
           node.debouncers().in(space).touch(txn, touch.debouncer, touch.key, touch.payload);
           return {};
         }});
  }
  for (RemoteAppend& append : answer.append)
    turn.add(node.sequences().in(actor_.space).append_effect(append.partition, std::move(append.event)));
}

class RemoteBehaviour final : public Behaviour {
 public:
  explicit RemoteBehaviour(Remote remote) : remote_(std::make_shared<const Remote>(std::move(remote))) {}

  int schema() const override { return remote_->settings.schema; }
  Result<Value> init(const ActorId& actor) override { return state_of({"init", actor, Value(), schema()}, Value()); }
  Result<Value> upgrade_of(const ActorId& actor, int from_schema, Value state) override {
    return state_of({.op = "upgrade", .actor = actor, .state = state, .schema = from_schema, .to_schema = schema()},
                    state);
  }
  Result<std::unique_ptr<Activation>> activate(const ActorId& actor, const Value& state) override {
    return std::make_unique<RemoteActivation>(remote_, actor, state);
  }

 private:
  Result<Value> state_of(const Remote::Ask& ask, const Value& otherwise) const {
    auto answer = remote_->ask(ask, RemoteFields::kState, remote_->options());
    if (!answer) return std::unexpected(std::move(answer.error()));
    return answer->state.value_or(otherwise);
  }

  const std::shared_ptr<const Remote> remote_;
};

}  // namespace

std::shared_ptr<Behaviour> make_remote_behaviour(Node& node, std::shared_ptr<Client> client, Url url,
                                                 const RemoteKind& settings) {
  return std::make_shared<RemoteBehaviour>(Remote{node, std::move(client), std::move(url), settings});
}

}  // namespace perdure::http
