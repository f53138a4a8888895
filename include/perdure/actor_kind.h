// A kind of actors as a plain class.
//
//     struct Add {
//       using Reply = std::int64_t;                             // What a call of it is answered with.
//       std::int64_t by = 1;
//       PERDURE_DESCRIBE(Add, by)
//     };
//
//     struct Counter {
//       static constexpr std::string_view kKind = "counter";
//       struct State {
//         std::int64_t count = 0;
//         PERDURE_DESCRIBE(State, count)
//       };
//       using Messages = MessageList<Add>;
//
//       Answer<std::int64_t> handle_call(const Add& add, State& state, Turn&) { return state.count += add.by; }
//       void handle_cast(const Add& add, State& state, Turn&) { state.count += add.by; }
//     };
//
// Only what it needs has to be there:
//
//     State init(const ActorId&)                                  or Result<State>; otherwise State{}
//     Answer<M::Reply> handle_call(const M&, State&, Turn&)       for the messages that can be called
//     Answer<> or void handle_cast(const M&, State&, Turn&)       for those that can be cast
//     Answer<> or void handle_info(const M&, State&, Turn&)       for infos; others are ignored
//     Answer<M::Reply> handle_locked(const M&, State&, Turn&)     for those that answer with take_lock
//     static constexpr int kSchema = 2                            otherwise 1
//     Result<Value> upgrade(int from_schema, Value old)           if there are states of older schemas
//
// Handlers change the State that they are given, which is a copy. One that throws has changed nothing. They may be run
// again for the same message, so they have no effects but those that they ask of the Turn. A kind may have members,
// a client of something for instance: each activation works with a copy of the object that was given to serve.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "perdure/behaviour.h"
#include "perdure/describe.h"

namespace perdure {

template <class... Ms>
struct MessageList {};

struct NoReply {};
struct LockAnswer {};
/// The reply comes later, by Turn::reply with the caller's From.
inline constexpr NoReply no_reply{};  // NOLINT(readability-identifier-naming): written like a value.
/// Asks for the lock: see Handled::Then::kLock.
inline constexpr LockAnswer take_lock{};  // NOLINT(readability-identifier-naming)

/// What a handler answers: a reply, no_reply, or take_lock; each but that may also stop the actor.
template <class Reply = void>
class Answer {
 public:
  template <class T>
    requires std::convertible_to<T, Reply>
  Answer(T&& reply) : handled_{.reply = to_value(Reply(std::forward<T>(reply)))} {}
  Answer(NoReply) {}
  Answer(LockAnswer) : handled_{.then = Handled::Then::kLock} {}
  /// The actor's state is kept, and the calls that wait for it are failed with `reason`.
  Answer and_stop(std::string reason) && {
    handled_.then = Handled::Then::kStop;
    handled_.reason = std::move(reason);
    return std::move(*this);
  }
  Handled take() && { return std::move(handled_); }

 private:
  Handled handled_;
};

template <>
class Answer<void> {
 public:
  /// Done; the reply to a call that has no Reply type is null.
  Answer() : handled_{.reply = Value()} {}
  Answer(NoReply) {}
  Answer(LockAnswer) : handled_{.then = Handled::Then::kLock} {}
  Answer and_stop(std::string reason) && {
    handled_.then = Handled::Then::kStop;
    handled_.reason = std::move(reason);
    return std::move(*this);
  }
  Handled take() && { return std::move(handled_); }

 private:
  Handled handled_;
};

namespace internal {

template <class M>
struct ReplyOf {
  using Type = void;
};
template <class M>
  requires requires { typename M::Reply; }
struct ReplyOf<M> {
  using Type = typename M::Reply;
};

/// The name and the fields of a message; nothing if it is not one.
PERDURE_EXPORT std::optional<std::pair<std::string_view, const Value*>> open_message(const Value& message);
PERDURE_EXPORT Error unknown_message(std::string_view kind, const Value& message, std::string_view known);
PERDURE_EXPORT Error not_taken(std::string_view kind, std::string_view message, std::string_view handler);

/// What a handler returned, void included, as Handled.
template <class F>
Handled handled_by(F&& call) {
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    call();
    return Answer<>().take();
  } else {
    return call().take();
  }
}

template <class K>
class KindActivation final : public Activation {
 public:
  using State = typename K::State;
  KindActivation(K kind, State state) : kind_(std::move(kind)), state_(std::move(state)) {}

  Result<Handled> handle(MessageType type, const Value& message, Turn& turn) override {
    return each(typename K::Messages{}, type == MessageType::kInfo ? Unknown::kIgnored : Unknown::kRefused, message,
                [&]<class M>(const M& m) -> Result<Handled> { return call_handler(type, m, turn); });
  }
  Result<Handled> handle_locked(const Value& message, Turn& turn) override {
    return each(typename K::Messages{}, Unknown::kRefused, message, [&]<class M>(const M& m) -> Result<Handled> {
      if constexpr (requires { kind_.handle_locked(m, state_, turn); })
        return handled_by([&] { return kind_.handle_locked(m, state_, turn); });
      else
        return std::unexpected(not_taken(K::kKind, described_name<M>(), "handle_locked"));
    });
  }
  Value state() const override { return to_value(state_); }

 private:
  enum class Unknown { kIgnored, kRefused };

  template <class M>
  Result<Handled> call_handler(MessageType type, const M& m, Turn& turn) {
    switch (type) {
      case MessageType::kCall:
        if constexpr (requires { kind_.handle_call(m, state_, turn); })
          return handled_by([&] { return kind_.handle_call(m, state_, turn); });
        return std::unexpected(not_taken(K::kKind, described_name<M>(), "handle_call"));
      case MessageType::kCast:
        if constexpr (requires { kind_.handle_cast(m, state_, turn); })
          return handled_by([&] { return kind_.handle_cast(m, state_, turn); });
        return std::unexpected(not_taken(K::kKind, described_name<M>(), "handle_cast"));
      case MessageType::kInfo:
        if constexpr (requires { kind_.handle_info(m, state_, turn); })
          return handled_by([&] { return kind_.handle_info(m, state_, turn); });
        return Handled{.reply = Value()};
    }
    std::unreachable();
  }

  /// Calls `f` with the message as the C++ type that its name stands for.
  template <class... Ms, class F>
  Result<Handled> each(MessageList<Ms...>, Unknown unknown, const Value& message, F f) {
    auto opened = open_message(message);
    std::optional<Result<Handled>> result;
    if (opened) (void)(try_one<Ms>(opened->first, *opened->second, result, f) || ...);
    if (result) return std::move(*result);
    if (unknown == Unknown::kIgnored) return Handled{.reply = Value()};
    std::string known;
    ((known += (known.empty() ? "" : ", ") + std::string(described_name<Ms>())), ...);
    return std::unexpected(unknown_message(K::kKind, message, known));
  }
  template <class M, class F>
  bool try_one(std::string_view name, const Value& fields, std::optional<Result<Handled>>& result, F& f) {
    if (name != described_name<M>()) return false;
    auto m = from_value<M>(fields);
    if (m)
      result.emplace(f(*m));
    else
      result.emplace(std::unexpected(std::move(m.error())));
    return true;
  }

  K kind_;
  State state_;
};

template <class K>
class KindBehaviour final : public Behaviour {
 public:
  using State = typename K::State;
  explicit KindBehaviour(K kind) : kind_(std::move(kind)) {}

  int schema() const override {
    if constexpr (requires { K::kSchema; })
      return K::kSchema;
    else
      return 1;
  }
  Result<Value> init(const ActorId& actor) override {
    if constexpr (requires(K k) {
                    { k.init(actor) } -> std::convertible_to<Result<State>>;
                  }) {
      Result<State> state = K(kind_).init(actor);
      if (!state) return std::unexpected(std::move(state.error()));
      return to_value(*state);
    } else {
      return to_value(State{});
    }
  }
  Result<Value> upgrade(int from_schema, Value state) override {
    if constexpr (requires(K k) { k.upgrade(from_schema, std::move(state)); })
      return K(kind_).upgrade(from_schema, std::move(state));
    else
      return Behaviour::upgrade(from_schema, std::move(state));
  }
  Result<std::unique_ptr<Activation>> activate(const ActorId&, const Value& state) override {
    // A field that the class no longer has is no reason to refuse a state.
    auto typed = from_value<State>(state, UnknownFields::kIgnore);
    if (!typed) return std::unexpected(std::move(typed.error()));
    return std::make_unique<KindActivation<K>>(kind_, std::move(*typed));
  }

 private:
  const K kind_;
};

}  // namespace internal
}  // namespace perdure
