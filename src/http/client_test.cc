#include "http/client.h"

#include <gtest/gtest.h>

#include "http/http_test_server.h"
#include "session/cancel_source.h"

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

class ClientTest : public ::testing::Test {
 protected:
  Io io;

  static Request get(const std::string& target = {}) { return {.method = "GET", .target = target}; }
  static std::optional<ErrorCode> code_of(const Result<Response>& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
};

/// An answer that comes later.
struct Later {
  Latch latch;
  std::optional<Result<Response>> result;
};
std::shared_ptr<Later> send_later(Client& client, const Url& url, Request request, const SendOptions& options = {}) {
  auto later = std::make_shared<Later>();
  client.send(url, std::move(request), options, [later](Result<Response> result) {
    later->result.emplace(std::move(result));
    later->latch.set();
  });
  return later;
}

TEST_F(ClientTest, SendsWhatItIsGivenAndReadsTheAnswer) {
  TestServer server([](const Request&) { return test_reply(201, "made", "X-Thing: 7\r\n"); });
  Client client(io);
  auto answer = client.send_and_wait(server.url("/a?b=c"),
                                     {.method = "POST", .target = {}, .headers = {{"X-Who", "me"}}, .body = "{}"}, {});
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "made");
  EXPECT_EQ(*answer->headers.find("x-thing"), "7");
  Request seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/a?b=c");
  EXPECT_EQ(seen.body, "{}");
  EXPECT_EQ(*seen.headers.find("x-who"), "me");
  EXPECT_EQ(*seen.headers.find("host"), "127.0.0.1:" + std::to_string(server.port()));
}

TEST_F(ClientTest, AConnectionIsUsedAgain) {
  TestServer server([](const Request&) { return test_reply(200, "ok"); });
  Client client(io);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.send_and_wait(server.url(), get(), {}));
  EXPECT_EQ(server.connections(), 1u);
}

TEST_F(ClientTest, AConnectionThatTheServerWillCloseIsNotUsedAgain) {
  TestServer server([](const Request&) { return test_reply(200, "ok", "Connection: close\r\n"); });
  Client client(io);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.send_and_wait(server.url(), get(), {}));
  EXPECT_EQ(server.connections(), 3u);
}

TEST_F(ClientTest, ChunkedAnswersAndThoseThatEndWithTheConnectionAreRead) {
  TestServer server([](const Request& request) -> TestReply {
    if (request.target == "/chunked")
      return {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"};
    if (request.target == "/continued") return {"HTTP/1.1 100 Continue\r\n\r\n" + test_reply(200, "after").bytes};
    return {"HTTP/1.1 200 OK\r\n\r\nto the end", TestReply::Then::kClose};
  });
  Client client(io);
  EXPECT_EQ(client.send_and_wait(server.url("/chunked"), get(), {})->body, "abcde");
  EXPECT_EQ(client.send_and_wait(server.url("/continued"), get(), {})->body, "after");
  EXPECT_EQ(client.send_and_wait(server.url("/closed"), get(), {})->body, "to the end");
}

TEST_F(ClientTest, ADeadKeptConnectionIsReplacedOnceAndNotTwice) {
  std::atomic<int> count = 0;
  std::atomic<bool> always = false;
  TestServer server([&](const Request&) -> TestReply {
    // The second request is read, and its connection closed without a byte of an answer.
    if (++count == 2 || always) return {"", TestReply::Then::kClose};
    return test_reply(200, "ok");
  });
  Client client(io);
  ASSERT_TRUE(client.send_and_wait(server.url(), get(), {}));
  auto second = client.send_and_wait(server.url(), get(), {});
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ(count, 3);
  EXPECT_EQ(server.connections(), 2u);
  always = true;
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {})), ErrorCode::kUnavailable);
  EXPECT_EQ(count, 5);
  // On a new connection nothing is sent twice, and not at all if that is asked for.
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {})), ErrorCode::kUnavailable);
  EXPECT_EQ(count, 6);
}

TEST_F(ClientTest, ARequestThatMustNotBeRepeatedIsNot) {
  std::atomic<int> count = 0;
  TestServer server([&](const Request&) -> TestReply {
    return ++count == 2 ? TestReply{"", TestReply::Then::kClose} : test_reply(200);
  });
  Client client(io);
  ASSERT_TRUE(client.send_and_wait(server.url(), get(), {}));
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {.resend = Resend::kNever})), ErrorCode::kUnavailable);
  EXPECT_EQ(count, 2);
}

TEST_F(ClientTest, AnAnswerThatBreaksOffIsNotAskedForAgain) {
  std::atomic<int> count = 0;
  TestServer server([&](const Request&) -> TestReply {
    if (++count == 1) return test_reply(200);
    return {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", TestReply::Then::kClose};
  });
  Client client(io);
  ASSERT_TRUE(client.send_and_wait(server.url(), get(), {}));
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {})), ErrorCode::kUnavailable);
  EXPECT_EQ(count, 2);
}

TEST_F(ClientTest, ConnectionsAreBoundedAndSoAreThoseWhoWait) {
  TestServer server([](const Request&) { return TestReply{"", TestReply::Then::kHang}; });
  Client client(io, {.connections_max = 2, .waiting_max = 3});
  std::vector<std::shared_ptr<Later>> sent;
  for (int i = 0; i < 5; ++i) sent.push_back(send_later(client, server.url(), get()));
  server.await_requests(2);
  auto refused = client.send_and_wait(server.url(), get(), {});
  EXPECT_EQ(code_of(refused), ErrorCode::kLimitExceeded);
  EXPECT_EQ(server.connections(), 2u);
  client.close();
  for (const auto& each : sent) {
    ASSERT_TRUE(each->latch.is_set());
    EXPECT_EQ(code_of(*each->result), ErrorCode::kClosed);
  }
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {})), ErrorCode::kClosed);
}

TEST_F(ClientTest, ThoseWhoWaitAreServedWhenAConnectionIsFree) {
  TestServer server([](const Request&) { return test_reply(200, "ok"); });
  Client client(io, {.connections_max = 3});
  std::vector<std::shared_ptr<Later>> sent;
  for (int i = 0; i < 200; ++i) sent.push_back(send_later(client, server.url(), get()));
  for (const auto& each : sent) {
    each->latch.wait();
    EXPECT_TRUE(*each->result);
  }
  EXPECT_LE(server.connections(), 3u);
}

TEST_F(ClientTest, TheTimeoutHoldsForTheWholeRequest) {
  TestServer server([](const Request& request) -> TestReply {
    if (request.target == "/slow") return {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", TestReply::Then::kHang};
    return {"", TestReply::Then::kHang};
  });
  Client client(io, {.connections_max = 1});
  auto first = send_later(client, server.url("/slow"), get(), {.timeout = 50ms});
  auto waiting = send_later(client, server.url(), get(), {.timeout = 20ms});
  for (const auto& each : {waiting, first}) {
    each->latch.wait();
    EXPECT_EQ(code_of(*each->result), ErrorCode::kDeadline);
  }
  EXPECT_NE(first->result->error().message.find("within 50 ms"), std::string::npos) << first->result->error().message;
}

TEST_F(ClientTest, ACancelledRequestIsAbandoned) {
  TestServer server([](const Request&) { return TestReply{"", TestReply::Then::kHang}; });
  Client client(io);
  CancelSource cancel;
  auto sent = send_later(client, server.url(), get(), {.timeout = 1h, .cancel = cancel.signal()});
  server.await_requests(1);
  cancel.cancel();
  sent->latch.wait();
  EXPECT_EQ(code_of(*sent->result), ErrorCode::kClosed);
  auto late = client.send_and_wait(server.url(), get(), {.timeout = 1h, .cancel = cancel.signal()});
  EXPECT_EQ(code_of(late), ErrorCode::kClosed);
}

TEST_F(ClientTest, AnswersThatAreTooLargeAreRefusedOrCut) {
  std::string big(100'000, 'x');
  TestServer server([&](const Request& request) -> TestReply {
    if (request.target == "/headers") return test_reply(200, "", "X-Long: " + big + "\r\n");
    if (request.target == "/promise")
      return {"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nabcdefghijkl", TestReply::Then::kHang};
    if (request.target == "/chunked")
      return {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n" + big + "\r\n0\r\n\r\n"};
    return test_reply(200, big);
  });
  Client client(io);
  for (const char* path : {"/headers", "/promise", "/chunked", "/plain"})
    EXPECT_EQ(code_of(client.send_and_wait(server.url(path), get(), {.body_max = 99'999})), ErrorCode::kTooLarge)
        << path;
  EXPECT_EQ(client.send_and_wait(server.url("/plain"), get(), {.body_max = 100'000})->body, big);
  SendOptions cut{.body_max = 10, .when_larger = WhenLarger::kCut};
  EXPECT_EQ(client.send_and_wait(server.url("/plain"), get(), cut)->body, "xxxxxxxxxx");
  EXPECT_EQ(client.send_and_wait(server.url("/promise"), get(), cut)->body, "abcdefghij");
}

TEST_F(ClientTest, RedirectsAreNotFollowed) {
  TestServer server([](const Request&) { return test_reply(302, "", "Location: /elsewhere\r\n"); });
  Client client(io);
  EXPECT_EQ(client.send_and_wait(server.url(), get(), {})->status, 302);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(ClientTest, WhatIsNotLoopbackIsRefusedWithoutAConnection) {
  Client client(io);
  // Nobody answers there: whoever tried to connect would wait until the timeout.
  auto refused = client.send_and_wait(*Url::parse("http://192.0.2.1:9/x"), get(), {.timeout = 1h});
  ASSERT_EQ(code_of(refused), ErrorCode::kPermissionDenied);
  EXPECT_NE(refused.error().message.find("--allow-url http://192.0.2.1:9/"), std::string::npos);
  EXPECT_EQ(code_of(client.send_and_wait(*Url::parse("unix:///run/x.sock"), get(), {})), ErrorCode::kPermissionDenied);
}

TEST_F(ClientTest, ANameIsJudgedByItsAddress) {
  TestServer server([](const Request&) { return test_reply(200, "ok"); });
  Client client(io);
  auto local = client.send_and_wait(*Url::parse("http://localhost:" + std::to_string(server.port()) + "/"), get(), {});
  EXPECT_TRUE(local) << to_string(local.error());
  // The resolver takes it for 10.0.0.1; it is not written as an address is.
  auto other = client.send_and_wait(*Url::parse("http://167772161:9/"), get(), {.timeout = 1h});
  ASSERT_EQ(code_of(other), ErrorCode::kPermissionDenied);
  EXPECT_NE(other.error().message.find("10.0.0.1"), std::string::npos) << other.error().message;
}

TEST_F(ClientTest, FailuresToConnectAndAnswersThatAreNotHttpAreUnavailable) {
  std::uint16_t free_port;
  {
    TestServer gone([](const Request&) { return test_reply(200); });
    free_port = gone.port();
  }
  Client client(io);
  auto refused = client.send_and_wait(*Url::parse("http://127.0.0.1:" + std::to_string(free_port) + "/"), get(), {});
  EXPECT_EQ(code_of(refused), ErrorCode::kUnavailable);
  TestServer server([](const Request&) { return TestReply{"SSH-2.0-OpenSSH\r\n\r\n", TestReply::Then::kClose}; });
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get(), {})), ErrorCode::kUnavailable);
}

TEST_F(ClientTest, NoLineBreakGetsIntoTheHead) {
  TestServer server([](const Request&) { return test_reply(200); });
  Client client(io);
  Request split{.method = "GET", .target = {}, .headers = {{"traceparent", "a\r\nX-Admin: yes"}}};
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), split, {})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(client.send_and_wait(server.url(), get("/x HTTP/1.1\r\n\r\n"), {})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(server.requests().size(), 0u);
}

}  // namespace
}  // namespace perdure::http
