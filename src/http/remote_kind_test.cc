#include "http/remote_kind.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "http/http_test_server.h"

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

class RemoteKindTest : public ::testing::Test {
 protected:
  Io io;
  std::shared_ptr<Client> client = std::make_shared<Client>(io);
  std::unique_ptr<Node> node = *Node::open({.store = "memory:"});
  std::unique_ptr<RemoteKinds> kinds = std::make_unique<RemoteKinds>(*node, client);

  ~RemoteKindTest() override {
    kinds.reset();
    EXPECT_TRUE(node->close(20s));
    client->close();
  }

  /// What an endpoint answers: a status, and a body.
  using Endpoint = std::function<TestReply(const Value& asked)>;
  std::unique_ptr<TestServer> serve(Endpoint endpoint, RemoteKind settings = {}) {
    auto server = std::make_unique<TestServer>(
        [endpoint](const Request& request) { return endpoint(Value::from_json(request.body).value_or(Value())); });
    settings.url = to_string(server->url("/actor"));
    EXPECT_TRUE(set("thing", settings));
    EXPECT_TRUE(eventually([&] { return node->actors().actor("thing", "probe").info(Value()).has_value(); }));
    return server;
  }
  Result<void> set(std::string_view kind, const RemoteKind& settings) {
    return node->store().transact([&](Transaction& txn) { kinds->set(txn, "default", kind, settings); });
  }
  static std::string op(const Value& asked) { return *asked.find("op")->as_text(); }
  static TestReply json(const Value& body) { return test_reply(200, body.to_json()); }
  static RemoteKind quick(int retries = 4) {
    return {.url = {}, .retry = {.max = retries, .delay = 1ms, .max_delay = 2ms}};
  }
  Actor thing(std::string_view id) { return node->actors().actor("thing", id); }
  static std::optional<ErrorCode> code_of(const auto& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  std::vector<DeadLetter> dead(std::string_view id) {
    return *node->store().read([&](Reader& reader) { return thing(id).dead_letters(reader); });
  }
  template <class F>
  bool eventually(F holds) {
    for (int i = 0; i < 500'000; ++i) {
      if (holds()) return true;
      (void)node->store().read([](Reader& reader) { return reader.get("nothing"); });
      std::this_thread::yield();
    }
    return false;
  }

  static TestReply count(const Value& asked) {
    if (op(asked) == "init") return json(Value::Map{{"state", Value::Map{{"count", 0}}}});
    std::int64_t next = *asked.find("state")->find("count")->as_integer() + 1;
    return json(Value::Map{{"state", Value::Map{{"count", next}}}, {"reply", next}});
  }
};

TEST_F(RemoteKindTest, AHundredConcurrentCallsCountToAHundred) {
  auto server = serve([](const Value& asked) { return count(asked); });
  struct All {
    std::atomic<int> left = 100;
    std::atomic<int> failed = 0;
    Latch done;
  };
  auto all = std::make_shared<All>();
  for (int i = 0; i < 100; ++i)
    thing("a").call_async(Value("add"), {.timeout = 60s}, [all](Result<Value> reply) {
      if (!reply) ++all->failed;
      if (--all->left == 0) all->done.set();
    });
  all->done.wait();
  EXPECT_EQ(all->failed, 0);
  EXPECT_EQ(*thing("a").inspect()->state->find("count"), Value(100));
}

TEST_F(RemoteKindTest, ARequestSaysAllThatTheContractNames) {
  std::vector<Value> asked;
  Mutex mutex;
  auto server = serve([&](const Value& each) {
    MutexLock lock(mutex);
    if (*each.find("actor")->find("id") == Value("a")) asked.push_back(each);
    return count(each);
  });
  EXPECT_EQ(thing("a").call(Value::Map{{"x", 1}}).value(), Value(1));
  MutexLock lock(mutex);
  ASSERT_EQ(asked.size(), 2u);
  Value actor = Value::Map{{"space", "default"}, {"kind", "thing"}, {"id", "a"}};
  EXPECT_EQ(asked[0], Value(Value::Map{{"op", "init"},
                                       {"actor", actor},
                                       {"message", Value()},
                                       {"state", Value()},
                                       {"schema", 1},
                                       {"from", Value()},
                                       {"attempt", 1}}));
  Value from = *asked[1].find("from");
  ASSERT_TRUE(from.is_text());
  EXPECT_EQ(From::parse(*from.as_text())->actor.id, "a");
  EXPECT_EQ(asked[1], Value(Value::Map{{"op", "call"},
                                       {"actor", actor},
                                       {"message", Value::Map{{"x", 1}}},
                                       {"state", Value::Map{{"count", 0}}},
                                       {"schema", 1},
                                       {"from", from},
                                       {"attempt", 1}}));
}

TEST_F(RemoteKindTest, AnAbsentStateIsUnchangedAndAnAbsentReplyNull) {
  auto server = serve([](const Value& asked) {
    if (op(asked) == "init") return json(Value::Map{{"state", "begin"}});
    return json(Value::Map{});
  });
  EXPECT_EQ(thing("a").call(Value("x")).value(), Value());
  EXPECT_EQ(thing("a").inspect()->state, Value("begin"));
}

TEST_F(RemoteKindTest, EffectsCommitWithTheStateOrNotAtAll) {
  ASSERT_TRUE(node->debouncers().set("rebuild", {.quiet = 1h}));
  ASSERT_TRUE(node->sequences().set("billing", {.types = {{"shop", {{"invoice", 10}}}}}));
  auto server = serve(
      [](const Value& asked) {
        if (op(asked) != "call") return json(Value::Map{});
        Value message = *asked.find("message");
        // The partition that a bad order is appended to does not exist.
        const char* partition = message == Value("bad") ? "nowhere" : "billing";
        return json(
            Value::Map{{"state", message},
                       {"reply", "fine"},
                       {"emit", Value::List{Value::Map{{"worker", "mail"}, {"value", message}, {"delay", "1h"}}}},
                       {"cast", Value::List{Value::Map{{"kind", "other"}, {"id", "b"}, {"message", message}}}},
                       {"touch", Value::List{Value::Map{{"debouncer", "rebuild"}, {"key", "k"}, {"payload", 1}}}},
                       {"append", Value::List{Value::Map{{"partition", partition},
                                                         {"type", "shop"},
                                                         {"workspace", 7},
                                                         {"next", Value::List{"invoice"}},
                                                         {"payload", message}}}}});
      },
      quick(1));
  EXPECT_EQ(code_of(thing("a").call(Value("bad"))), ErrorCode::kHandlerFailed);
  EXPECT_EQ(node->queue().worker("mail")->total, 0u);
  EXPECT_EQ(node->debouncers().key("rebuild", "k")->status, KeyStatus::kIdle);
  EXPECT_EQ(code_of(node->actors().actor("other", "b").inspect()), ErrorCode::kNotFound);
  ASSERT_EQ(thing("a").call(Value("good")).value(), Value("fine"));
  EXPECT_EQ(thing("a").inspect()->state, Value("good"));
  EXPECT_EQ(node->queue().worker("mail")->scheduled, 1u);
  EXPECT_EQ(node->debouncers().key("rebuild", "k")->window->count, 1u);
  EXPECT_EQ(node->actors().actor("other", "b").inspect()->mailbox_length, 1u);
  auto log = node->sequences().log("billing");
  ASSERT_EQ(log->size(), 1u);
  EXPECT_EQ((*log)[0].numbers[0].second, 10u);
}

TEST_F(RemoteKindTest, AFailingEndpointIsTriedAgainAndThenDeadLetters) {
  std::vector<std::int64_t> attempts;
  Mutex mutex;
  auto server = serve(
      [&](const Value& asked) {
        if (op(asked) == "init") return json(Value::Map{});
        if (op(asked) == "info") return json(Value::Map{});
        MutexLock lock(mutex);
        attempts.push_back(*asked.find("attempt")->as_integer());
        return test_reply(500, "out of order");
      },
      quick(2));
  auto reply = thing("a").call(Value("x"), {.timeout = 60s});
  ASSERT_EQ(code_of(reply), ErrorCode::kHandlerFailed);
  EXPECT_NE(reply.error().message.find("HTTP 500: out of order"), std::string::npos) << reply.error().message;
  ASSERT_EQ(dead("a").size(), 1u);
  EXPECT_EQ(dead("a")[0].attempts, 3);
  MutexLock lock(mutex);
  // The first try is made before the message is stored, and is not one of those that are counted.
  ASSERT_GE(attempts.size(), 3u);
  EXPECT_EQ(attempts.back(), 3);
}

TEST_F(RemoteKindTest, AnEndpointThatRecoversHandlesTheMessageOnce) {
  std::atomic<int> calls = 0;
  auto server = serve(
      [&](const Value& asked) {
        if (op(asked) != "call") return op(asked) == "init" ? count(asked) : json(Value::Map{});
        return ++calls < 3 ? test_reply(503, "later") : count(asked);
      },
      quick());
  EXPECT_EQ(thing("a").call(Value("add"), {.timeout = 60s}).value(), Value(1));
  EXPECT_EQ(*thing("a").inspect()->state->find("count"), Value(1));
}

TEST_F(RemoteKindTest, AWrongAnswerFailsAndNamesTheField) {
  auto server = serve(
      [](const Value& asked) { return json(op(asked) == "call" ? Value::Map{{"stat", 1}} : Value::Map{}); }, quick(0));
  auto reply = thing("a").call(Value("x"), {.timeout = 60s});
  ASSERT_EQ(code_of(reply), ErrorCode::kHandlerFailed);
  EXPECT_NE(reply.error().message.find("stat"), std::string::npos) << reply.error().message;
}

TEST_F(RemoteKindTest, AProblemOfStatus400RefusesTheMessageAtOnce) {
  std::atomic<int> calls = 0;
  auto server = serve(
      [&](const Value& asked) {
        if (op(asked) != "call") return json(Value::Map{});
        ++calls;
        return test_reply(400, R"({"title":"Bad","detail":"no such message"})",
                          "Content-Type: application/problem+json\r\n");
      },
      quick());
  auto reply = thing("a").call(Value("x"), {.timeout = 60s});
  ASSERT_EQ(code_of(reply), ErrorCode::kInvalidArgument);
  EXPECT_NE(reply.error().message.find("no such message"), std::string::npos) << reply.error().message;
  EXPECT_EQ(calls, 1);
}

TEST_F(RemoteKindTest, ALockedMessageRunsOutsideAndThenCommits) {
  std::binary_semaphore began{0}, go_on{0};
  auto server = serve([&](const Value& asked) {
    if (op(asked) == "init") return json(Value::Map{{"state", 0}});
    if (op(asked) == "locked") {
      began.release();
      go_on.acquire();
      return json(Value::Map{{"state", 2}, {"reply", "done"}});
    }
    if (op(asked) == "call" && *asked.find("message") == Value("slow"))
      return json(Value::Map{{"state", 1}, {"lock", true}});
    return json(Value::Map{{"reply", *asked.find("state")}});
  });
  Latch done;
  std::optional<Result<Value>> slow;
  thing("a").call_async(Value("slow"), {.timeout = 60s}, [&](Result<Value> reply) {
    slow.emplace(std::move(reply));
    done.set();
  });
  began.acquire();
  EXPECT_TRUE(thing("a").inspect()->locked);
  EXPECT_EQ(thing("a").call(Value("look"), {.way = Way::kPriority}).value(), Value(1));
  go_on.release();
  done.wait();
  EXPECT_EQ(slow->value(), Value("done"));
  EXPECT_EQ(thing("a").call(Value("look")).value(), Value(2));
}

TEST_F(RemoteKindTest, ACallMayBeRepliedToLater) {
  auto server = serve([](const Value& asked) {
    if (op(asked) == "init") return json(Value::Map{{"state", Value()}});
    if (*asked.find("message") == Value("ask"))
      return json(Value::Map{{"state", *asked.find("from")}, {"noreply", true}});
    if (*asked.find("message") == Value("tell"))
      return json(
          Value::Map{{"state", Value()},
                     {"replies", Value::List{Value::Map{{"from", *asked.find("state")}, {"reply", "at last"}}}}});
    return json(Value::Map{});
  });
  Latch done;
  std::optional<Result<Value>> answer;
  thing("a").call_async(Value("ask"), {.timeout = 60s}, [&](Result<Value> reply) {
    answer.emplace(std::move(reply));
    done.set();
  });
  EXPECT_TRUE(eventually([&] {
    auto info = thing("a").inspect();
    return info && info->state && info->state->is_text();
  }));
  EXPECT_FALSE(done.is_set());
  ASSERT_TRUE(thing("a").cast(Value("tell")));
  done.wait();
  EXPECT_EQ(answer->value(), Value("at last"));
}

TEST_F(RemoteKindTest, AnOlderStateIsUpgradedFirst) {
  auto server = serve([](const Value& asked) {
    if (op(asked) == "init") return json(Value::Map{{"state", "old"}});
    if (op(asked) == "upgrade")
      return json(
          Value::Map{{"state", "from " + asked.find("schema")->to_json() + " to " + asked.find("to_schema")->to_json() +
                                   " " + *asked.find("actor")->find("id")->as_text()}});
    return json(Value::Map{{"reply", *asked.find("state")}});
  });
  EXPECT_EQ(thing("a").call(Value("x")).value(), Value("old"));
  RemoteKind newer{.url = to_string(server->url("/actor")), .schema = 2};
  ASSERT_TRUE(set("thing", newer));
  EXPECT_TRUE(eventually([&] { return thing("a").call(Value("x")).value_or(Value()) == Value("from 1 to 2 a"); }));
  EXPECT_EQ(thing("a").inspect()->schema, 2);
}

TEST_F(RemoteKindTest, WithoutItsRowAKindIsServedByNobody) {
  auto server = serve([](const Value& asked) { return count(asked); });
  EXPECT_EQ(thing("a").call(Value("x")).value(), Value(1));
  auto remove = [&] {
    return node->store().transact([&](Transaction& txn) { kinds->remove(txn, "default", "thing"); });
  };
  ASSERT_TRUE(remove());
  EXPECT_EQ(code_of(remove()), ErrorCode::kNotFound);
  EXPECT_TRUE(eventually([&] { return code_of(thing("probe").info(Value())) == ErrorCode::kInvalidArgument; }));
  std::size_t before = server->requests().size();
  ASSERT_TRUE(thing("a").cast(Value("x")));
  EXPECT_EQ(thing("a").inspect()->mailbox_length, 1u);
  EXPECT_EQ(server->requests().size(), before);
  ASSERT_TRUE(set("thing", {.url = to_string(server->url())}));
  EXPECT_TRUE(eventually([&] { return *thing("a").inspect()->state->find("count") == Value(2); }));
}

TEST_F(RemoteKindTest, SettingsAreReadBackListedAndChecked) {
  RemoteKind kind{.url = "http://127.0.0.1:9/x",
                  .timeout = 1s,
                  .locked_timeout = 2h,
                  .retry = {.max = 7, .delay = 1s, .max_delay = 2s},
                  .mailbox_max = 5,
                  .schema = 3};
  ASSERT_TRUE(set("b", kind));
  auto get = [&](std::string_view name) {
    return node->store().read([&](Reader& reader) { return kinds->get(reader, "default", name); });
  };
  EXPECT_EQ(get("b").value(), kind);
  EXPECT_EQ(code_of(get("c")), ErrorCode::kNotFound);
  auto list = *node->store().read([&](Reader& reader) { return kinds->list(reader, "default"); });
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].first, "b");
  auto refused = [&](auto change) {
    RemoteKind wrong = kind;
    change(wrong);
    return code_of(set("c", wrong));
  };
  EXPECT_EQ(refused([](RemoteKind& k) { k.url = "http://10.1.1.1/"; }), ErrorCode::kPermissionDenied);
  EXPECT_EQ(refused([](RemoteKind& k) { k.url = "x"; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.timeout = 0s; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.locked_timeout = 24h * 8; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.retry.max = -1; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.retry.delay = 3s; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.mailbox_max = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused([](RemoteKind& k) { k.schema = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(set("a b", kind)), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::http
