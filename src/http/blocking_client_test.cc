#include "http/blocking_client.h"

#include <gtest/gtest.h>

#include "http/http_test_daemon.h"
#include "runtime/latch.h"

namespace perdure::http {
namespace {

using namespace std::chrono_literals;
using Wire = HttpTestServer::Wire;

Url at(const std::string& text) {
  return *Url::parse(text);
}

Response parsed(std::string_view text) {
  ResponseParser parser;
  for (char c : text) EXPECT_TRUE(parser.feed({&c, 1})) << "byte by byte, " << text;
  if (!parser.done()) {
    EXPECT_TRUE(parser.end()) << text;
  }
  EXPECT_TRUE(parser.done()) << text;
  return parser.response();
}

TEST(ResponseParser, ReadsEveryKindOfBody) {
  EXPECT_EQ(parsed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").body, "hello");
  EXPECT_EQ(parsed("HTTP/1.1 204 No Content\r\n\r\n").status, 204);
  EXPECT_EQ(parsed("HTTP/1.1 200 OK\r\n\r\nto the end").body, "to the end");
  EXPECT_EQ(
      parsed("HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n")
          .body,
      "abc0123456789");
  EXPECT_EQ(parsed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nX-Y: z \r\nContent-Length: 0\r\n\r\n").status, 404);
}

TEST(ResponseParser, RefusesWhatIsNotHttp) {
  for (std::string bad :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"}) {
    ResponseParser parser;
    EXPECT_FALSE(parser.feed(bad)) << bad;
  }
  ResponseParser endless;
  EXPECT_FALSE(endless.feed("HTTP/1.1 200 OK\r\nX: " + std::string(ResponseParser::kHeadMax, 'x')));
  ResponseParser cut;
  EXPECT_TRUE(cut.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"));
  EXPECT_FALSE(cut.end());
}

TEST(BlockingClient, KeepsItsConnection) {
  HttpTestServer server([](const Request& request, Wire&) { return Response{200, {}, request.body + "!"}; });
  BlockingClient client(at(server.url()));
  for (std::string body : {"a", "b", "c"}) {
    auto answer = client.send({"POST", "/x", {{"X", "y"}}, body}, 5s);
    ASSERT_TRUE(answer) << to_string(answer.error());
    EXPECT_EQ(answer->body, body + "!");
  }
  EXPECT_EQ(server.connection_count(), 1u);
  EXPECT_EQ(server.asked(), (std::vector<std::string>{"POST /x a", "POST /x b", "POST /x c"}));
}

TEST(BlockingClient, ReplacesAConnectionThatWasClosed) {
  HttpTestServer server([](const Request&, Wire& wire) -> std::optional<Response> {
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    return {};
  });
  BlockingClient client(at(server.url()));
  EXPECT_TRUE(client.send({"GET", "/1"}, 5s));
  // The server closes right behind its answer, so the second request may meet the closing half: then it is told so.
  auto again = client.send({"GET", "/2"}, 5s);
  if (!again) again = client.send({"GET", "/2"}, 5s);
  EXPECT_TRUE(again);
}

TEST(BlockingClient, SpeaksOverAUnixSocketAndUnderAPrefix) {
  auto handler = [](const Request&, Wire&) { return Response{200, {}, "ok"}; };
  std::string path = testing::TempDir() + "perdure_client_" + std::to_string(::getpid()) + ".sock";
  HttpTestServer by_socket(handler, path), by_port(handler);
  BlockingClient local(at(by_socket.url())), prefixed(at(by_port.url() + "/behind/"));
  EXPECT_TRUE(local.connect(5s));
  EXPECT_TRUE(local.send({"GET", "/v1/x"}, 5s));
  EXPECT_EQ(by_socket.asked().at(0), "GET /v1/x");
  EXPECT_EQ(*by_socket.requests().at(0).headers.find("Host"), "localhost");
  EXPECT_TRUE(prefixed.send({"GET", "/v1/x"}, 5s));
  EXPECT_EQ(by_port.asked().at(0), "GET /behind/v1/x");
}

TEST(BlockingClient, SaysWhetherAnythingWasSent) {
  BlockingClient nobody(at("unix:///nowhere/perdure.sock"));
  auto refused = nobody.send({"GET", "/"}, 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find("unix:///nowhere/perdure.sock"), std::string::npos);
  EXPECT_FALSE(nobody.connect(5s));

  HttpTestServer rude([](const Request&, Wire&) -> std::optional<Response> { return {}; });
  auto lost = BlockingClient(at(rude.url())).send({"POST", "/", {}, "{}"}, 5s);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kCommitUnknown);

  Latch asked_enough;
  HttpTestServer mute([&](const Request&, Wire&) {
    asked_enough.wait();
    return Response{200, {}, ""};
  });
  auto late = BlockingClient(at(mute.url())).send({"GET", "/"}, 20ms);
  asked_enough.set();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kCommitUnknown);
  EXPECT_NE(late.error().message.find("in time"), std::string::npos);
}

TEST(BlockingClient, SendsAndReadsMoreThanASocketHolds) {
  HttpTestServer server([](const Request& request, Wire&) { return Response{200, {}, request.body}; });
  std::string large(5'000'000, 'x');
  auto answer = BlockingClient(at(server.url())).send({"POST", "/", {}, large}, 30s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, large);
}

TEST(BlockingClient, StreamsPieceByPieceUntilToldToStop) {
  HttpTestServer server([](const Request&, Wire& wire) -> std::optional<Response> {
    wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; ++i) wire.send("8\r\ndata: x\n\r\n");
    return Response{200, {}, ""};  // The stream itself has no end.
  });
  std::string got;
  auto head = BlockingClient(at(server.url())).stream({"GET", "/stream"}, 5s, [&](const Response& seen, auto piece) {
    EXPECT_EQ(*seen.headers.find("content-type"), "text/event-stream");
    got += piece;
    return got.size() < 800 ? BlockingClient::Next::kGoOn : BlockingClient::Next::kStop;
  });
  ASSERT_TRUE(head) << to_string(head.error());
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(got.size(), 800u);
}

}  // namespace
}  // namespace perdure::http
