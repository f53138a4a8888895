#include "http/push.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/rfc3339.h"
#include "http/http_test_server.h"
#include "http/webhook.h"

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

class PushTest : public ::testing::Test {
 protected:
  Io io;
  std::shared_ptr<Client> client = std::make_shared<Client>(io);
  std::unique_ptr<Node> node = *Node::open({.store = "memory:"});
  std::unique_ptr<Pushers> pushers = std::make_unique<Pushers>(*node, client);

  ~PushTest() override {
    pushers.reset();
    EXPECT_TRUE(node->close(20s));
    client->close();
  }

  static std::string text(const Url& url) { return to_string(url); }
  Result<void> set(std::string_view worker, const std::optional<PushSettings>& settings) {
    return node->store().transact([&](Transaction& txn) { pushers->set(txn, "default", worker, settings); });
  }
  std::optional<PushSettings> get(std::string_view worker) {
    return *node->store().read([&](Reader& reader) { return pushers->get(reader, "default", worker); });
  }
  /// One event, that is not tried again unless `retry` says so.
  Uuid emit(Value value = {}, RetryPolicy retry = {.max = 0}, std::string traceparent = {}) {
    return node->queue().emit("mail", std::move(value), {.retry = retry, .traceparent = std::move(traceparent)})->id;
  }
  EndedEvent ended(const Uuid& id) {
    auto end = node->queue().wait(id, 20s);
    if (end) return *end;
    ADD_FAILURE() << to_string(end.error());
    return {};
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
  /// The event, once it is in that state.
  Event await(const Uuid& id, EventState state, int attempts = 1) {
    Event event;
    EXPECT_TRUE(eventually([&] {
      auto found = node->queue().get(id);
      if (found) event = *found;
      return found && event.state == state && event.attempts >= attempts;
    })) << name_of(event.state)
        << " " << event.last_error;
    return event;
  }
  static Value body_of(const Request& request) { return Value::from_json(request.body).value_or(Value()); }
};

TEST_F(PushTest, AnEventIsPostedSignedAndCompletedWithTheAnswer) {
  TestServer server([](const Request&) { return test_reply(200, R"({"sent":true})"); });
  std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url("/hook")), .secret = secret}));
  constexpr const char* kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  Uuid id = emit(Value::Map{{"to", "ann"}}, {.max = 0}, kTrace);
  EndedEvent end = ended(id);
  EXPECT_EQ(end.how, EndedEvent::How::kCompleted);
  EXPECT_EQ(end.result, Value(Value::Map{{"sent", true}}));
  ASSERT_EQ(server.requests().size(), 1u);
  Request request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/hook");
  EXPECT_EQ(*request.headers.find("content-type"), "application/json");
  EXPECT_EQ(*request.headers.find("webhook-id"), to_string(id));
  EXPECT_EQ(*request.headers.find("traceparent"), kTrace);
  auto verified = verify_webhook(*webhook_key(secret), request.headers, request.body, node->now());
  EXPECT_TRUE(verified) << to_string(verified.error());
  Value body = body_of(request);
  EXPECT_EQ(*body.find("id"), Value(to_string(id)));
  EXPECT_EQ(*body.find("worker"), Value("mail"));
  EXPECT_EQ(*body.find("value"), Value(Value::Map{{"to", "ann"}}));
  EXPECT_EQ(*body.find("attempt"), Value(1));
  EXPECT_TRUE(parse_rfc3339(*body.find("enqueued_at")->as_text()));
  EXPECT_EQ(body.as_map()->size(), 5u);
}

TEST_F(PushTest, AnyTwoHundredCompletesAndABodyThatIsNotJsonIsNull) {
  std::atomic<int> count = 0;
  TestServer server([&](const Request&) {
    int n = ++count;
    if (n == 1) return test_reply(204);
    if (n == 2) return test_reply(202, "<p>fine</p>");
    return test_reply(200, "[" + std::string(kResultBytesMax, ' ') + "]");
  });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url())}));
  for (int i = 0; i < 3; ++i) {
    EndedEvent end = ended(emit());
    EXPECT_EQ(end.how, EndedEvent::How::kCompleted);
    EXPECT_EQ(end.result, Value()) << i;
  }
  EXPECT_EQ(server.requests()[0].headers.find("webhook-signature"), nullptr);
}

TEST_F(PushTest, AFailureSaysTheStatusAndTheBeginningOfTheBody) {
  std::string body(300, 'x');
  TestServer server([&](const Request& request) {
    Value value = *body_of(request).find("value");
    return test_reply(static_cast<int>(*value.as_integer()), body, "Location: http://10.0.0.1/\r\n");
  });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url())}));
  EXPECT_EQ(await(emit(500), EventState::kDead).last_error, "HTTP 500: " + std::string(200, 'x'));
  EXPECT_EQ(await(emit(404), EventState::kDead).last_error.substr(0, 10), "HTTP 404: ");
  Event moved = await(emit(301), EventState::kDead);
  EXPECT_NE(moved.last_error.find("redirects are not followed"), std::string::npos) << moved.last_error;
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(PushTest, TheWebhookIdStaysOverRetriesAndTheAttemptGrows) {
  std::atomic<int> count = 0;
  TestServer server([&](const Request&) { return test_reply(++count < 3 ? 500 : 200); });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url())}));
  Uuid id = emit({}, {.delay = 0ms, .max = 2});
  EXPECT_EQ(ended(id).attempts, 3);
  auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*requests[i].headers.find("webhook-id"), to_string(id));
    EXPECT_EQ(*body_of(requests[i]).find("attempt"), Value(i + 1));
  }
}

TEST_F(PushTest, RetryAfterIsHonouredForTooManyAndUnavailable) {
  TestServer server([&](const Request& request) {
    Value value = *body_of(request).find("value");
    return test_reply(static_cast<int>(*value.as_integer()), "busy", "Retry-After: 3600\r\n");
  });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url())}));
  for (int status : {429, 503}) {
    Event event = await(emit(status, {.delay = 1min, .max = 2}), EventState::kScheduled);
    auto wait = event.delay_until - std::chrono::floor<std::chrono::milliseconds>(node->now());
    EXPECT_GT(wait, 50min) << status;
    EXPECT_LE(wait, 61min) << status;
  }
  // For others it is the policy's.
  Event event = await(emit(500, {.delay = 1min, .max = 2}), EventState::kScheduled);
  EXPECT_LE(event.delay_until - std::chrono::floor<std::chrono::milliseconds>(node->now()), 2min);
}

TEST_F(PushTest, GoneIsADeadLetterAtOnce) {
  TestServer server([](const Request&) { return test_reply(410, "moved away"); });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url())}));
  Event event = await(emit({}, {.delay = 0ms, .max = 5}), EventState::kDead);
  EXPECT_EQ(event.attempts, 1);
  EXPECT_EQ(event.last_error, "HTTP 410: moved away");
}

TEST_F(PushTest, NoAnswerInTimeFailsTheAttempt) {
  TestServer server([](const Request&) { return TestReply{"", TestReply::Then::kHang}; });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url()), .timeout = 30ms}));
  Event event = await(emit(), EventState::kDead);
  EXPECT_NE(event.last_error.find("within 30 ms"), std::string::npos) << event.last_error;
}

TEST_F(PushTest, ACancelledEventAbandonsItsRequest) {
  TestServer server([](const Request&) { return TestReply{"", TestReply::Then::kHang}; });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url()), .concurrency = 1, .timeout = 1h}));
  Uuid id = emit();
  server.await_requests(1);
  ASSERT_TRUE(node->queue().cancel(id, Queue::Force::kYes));
  EXPECT_TRUE(eventually([&] { return node->queue().activity().running == 0; }));
}

TEST_F(PushTest, ConcurrencyBoundsTheRequestsThatAreUnderWay) {
  TestServer server([](const Request&) { return TestReply{"", TestReply::Then::kHang}; });
  ASSERT_TRUE(set("mail", PushSettings{.url = text(server.url()), .concurrency = 3, .timeout = 1h}));
  for (int i = 0; i < 10; ++i) emit();
  server.await_requests(3);
  EXPECT_TRUE(eventually([&] { return node->queue().activity().running == 3; }));
  EXPECT_EQ(server.requests().size(), 3u);
  server.let_go();
}

TEST_F(PushTest, SettingsAreFollowed) {
  TestServer one([](const Request&) { return test_reply(200, "1"); });
  TestServer two([](const Request&) { return test_reply(200, "2"); });
  Uuid early = emit();
  ASSERT_TRUE(set("mail", PushSettings{.url = text(one.url())}));
  EXPECT_EQ(ended(early).result, Value(1)) << "it was there before";
  ASSERT_TRUE(set("mail", PushSettings{.url = text(two.url())}));
  EXPECT_TRUE(eventually([&] { return ended(emit()).result == Value(2); }));
  ASSERT_TRUE(set("mail", std::nullopt));
  EXPECT_TRUE(eventually([&] { return node->queue().worker("mail")->served_by == 0; }));
  std::size_t before = one.requests().size() + two.requests().size();
  Uuid waiting = emit();
  EXPECT_EQ(node->queue().get(waiting)->state, EventState::kReady);
  EXPECT_EQ(one.requests().size() + two.requests().size(), before);
  EXPECT_EQ(get("mail"), std::nullopt);
}

TEST_F(PushTest, SettingsAreReadBackAndListed) {
  PushSettings settings{.url = "http://127.0.0.1:9/x", .secret = "s", .concurrency = 7, .timeout = 3s};
  ASSERT_TRUE(set("b", settings));
  ASSERT_TRUE(set("a", PushSettings{.url = "http://localhost/"}));
  EXPECT_EQ(get("b"), settings);
  auto list = *node->store().read([&](Reader& reader) { return pushers->list(reader, "default", {.limit = 1}); });
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].first, "a");
  list = *node->store().read([&](Reader& reader) { return pushers->list(reader, "default", {.after = "a"}); });
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0], std::pair(std::string("b"), settings));
}

TEST_F(PushTest, WrongSettingsAreRefusedAndNothingChanges) {
  PushSettings good{.url = "http://127.0.0.1:9/"};
  auto code = [&](std::string_view worker, const PushSettings& settings) -> std::optional<ErrorCode> {
    auto done = set(worker, settings);
    if (done) return std::nullopt;
    return done.error().code;
  };
  EXPECT_EQ(code("a/b", good), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("mail", {.url = "nowhere"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("mail", {.url = "http://10.0.0.1/"}), ErrorCode::kPermissionDenied);
  EXPECT_EQ(code("mail", {.url = good.url, .secret = "whsec_?"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("mail", {.url = good.url, .concurrency = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("mail", {.url = good.url, .concurrency = 1001}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("mail", {.url = good.url, .timeout = 0s}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(get("mail"), std::nullopt);
}

TEST(RetryAfter, IsSecondsOrADate) {
  WallTime now = *parse_rfc3339("1994-11-06T08:49:07Z");
  EXPECT_EQ(parse_retry_after("120", now), 2min);
  EXPECT_EQ(parse_retry_after("0", now), 0s);
  EXPECT_EQ(parse_retry_after("99999999999999999999999", now), 24h);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), 30s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:40:00 GMT", now), 0s) << "it has passed";
  for (std::string_view bad :
       {"", "-1", "1.5", "soon", "Sun, 06 Nix 1994 08:49:37 GMT", "Sun, 36 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(parse_retry_after(bad, now), std::nullopt) << bad;
}

TEST(Excerpt, IsOneLineOfText) {
  EXPECT_EQ(excerpt("  a\r\nb\tc \n"), "a  b c");
  EXPECT_EQ(excerpt(std::string(199, 'x') + "\xc3\xa4"), std::string(199, 'x')) << "no half of a character";
  EXPECT_EQ(excerpt("\xff\xfe."), "??.");
  EXPECT_EQ(excerpt(""), "");
}

}  // namespace
}  // namespace perdure::http
