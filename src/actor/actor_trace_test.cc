// The trace context that a sender gives, on every way that a message can take.
#include <map>
#include <mutex>

#include "actor/actor_fixture.h"

namespace perdure::actor {
namespace {

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// By message, with what each was traced. Messages are texts; those with ">" are passed on, those with "!" ask for the
/// lock, and "fail" fails.
struct Traces {
  void add(const std::string& message, std::string_view trace) {
    std::lock_guard lock(mutex_);
    seen_[message] = trace;
  }
  std::optional<std::string> of(const std::string& message) {
    std::lock_guard lock(mutex_);
    auto found = seen_.find(message);
    return found == seen_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> seen_;
};

class TracedActivation final : public Activation {
 public:
  explicit TracedActivation(Traces& traces) : traces_(traces) {}
  Result<Handled> handle(MessageType, const Value& message, Turn& turn) override {
    const std::string& text = *message.as_text();
    if (text == "fail") return fail(ErrorCode::kHandlerFailed, "as it was told to");
    traces_.add(text, turn.traceparent());
    if (text.starts_with(">")) {
      turn.cast({"default", "traced", "next"}, Value(text.substr(1)));
      turn.cast({"default", "traced", "later"}, Value(text.substr(1) + " later"), 1ms);
    }
    return Handled{.reply = Value(), .then = text.starts_with("!") ? Handled::Then::kLock : Handled::Then::kGoOn};
  }
  Result<Handled> handle_locked(const Value& message, Turn& turn) override {
    traces_.add(*message.as_text() + " locked", turn.traceparent());
    return Handled{.reply = Value()};
  }
  Value state() const override { return {}; }

 private:
  Traces& traces_;
};

class Traced final : public Behaviour {
 public:
  explicit Traced(Traces& traces) : traces_(traces) {}
  Result<Value> init(const ActorId&) override { return Value(); }
  Result<std::unique_ptr<Activation>> activate(const ActorId&, const Value&) override {
    return std::make_unique<TracedActivation>(traces_);
  }

 private:
  Traces& traces_;
};

class ActorTraceTest : public ActorFixture {
 protected:
  Traces traces;
  Actors actors = serving();
  Actor actor = actors.actor("traced", "a");
  const std::string trace{kTrace};

  Actors serving() {
    Actors made = open();
    KindOptions options = quick();
    options.attempts_max = 1;
    EXPECT_TRUE(made.serve("traced", std::make_shared<Traced>(traces), options));
    return made;
  }
  void expect_traced(const std::string& message) {
    EXPECT_TRUE(eventually([&] { return traces.of(message).has_value(); })) << message;
    EXPECT_EQ(traces.of(message), trace) << message;
  }
};

TEST_F(ActorTraceTest, GoesWithAMessageOnEveryWay) {
  ASSERT_TRUE(actor.call("call", {.traceparent = trace}));
  ASSERT_TRUE(actor.call("priority", {.way = Way::kPriority, .traceparent = trace}));
  ASSERT_TRUE(actor.cast("cast", {.traceparent = trace}));
  ASSERT_TRUE(actor.cast("delayed", {.delay = 1ms, .traceparent = trace}));
  ASSERT_TRUE(open().actor("traced", "a").call("through the store", {.traceparent = trace}));
  ASSERT_TRUE(actor.call("! call", {.traceparent = trace}));
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    actor.cast(txn, "cast in a transaction", {}, trace);
    actor.cast(txn, "delayed in a transaction", 1ms, trace);
    actor.cast_many(txn, {"one", "two"}, trace);
    (void)actor.call(txn, "call in a transaction", ReplyRows::kKeep, trace);
  }));
  for (const char* message :
       {"call", "priority", "cast", "delayed", "through the store", "! call", "! call locked", "cast in a transaction",
        "delayed in a transaction", "one", "two", "call in a transaction"})
    expect_traced(message);
}

TEST_F(ActorTraceTest, IsCarriedOnByCasts) {
  ASSERT_TRUE(actor.call(">on", {.traceparent = trace}));
  expect_traced("on");
  expect_traced("on later");
}

TEST_F(ActorTraceTest, IsNothingWithoutOne) {
  ASSERT_TRUE(actor.call(">on"));
  EXPECT_EQ(traces.of(">on"), "");
  EXPECT_TRUE(eventually([&] { return traces.of("on later").has_value(); }));
  EXPECT_EQ(traces.of("on later"), "");
}

TEST_F(ActorTraceTest, StaysWithADeadLetter) {
  EXPECT_EQ(code_of(open().actor("traced", "a").call("fail", {.traceparent = trace})), ErrorCode::kHandlerFailed);
  auto dead = rows(dead_key(prefix_of({"default", "traced", "a"})));
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(DeadRow::decode(dead[0].value)->message.traceparent, trace);
}

TEST_F(ActorTraceTest, HasAForm) {
  for (const std::string& wrong : {std::string(513, 'x'), std::string("a\r\nb"), std::string("\xff")}) {
    EXPECT_EQ(code_of(actor.call("wrong", {.traceparent = wrong})), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code_of(actor.cast("wrong", {.delay = 1ms, .traceparent = wrong})), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code_of(store.transact([&](Transaction& txn) { actor.cast_many(txn, {"wrong"}, wrong); })),
              ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(traces.of("wrong"), std::nullopt);
}

}  // namespace
}  // namespace perdure::actor
