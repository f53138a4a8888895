// Commands as they are typed, with the calls that they make and what they print.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "cli/cli_test_world.h"
#include "cli/event_stream.h"
#include "perdure/store.h"

namespace perdure::cli {
namespace {

using Args = std::vector<std::string>;

// The calls that `args` makes of a daemon which answers every one with `status` and `body`.
struct Dialogue {
  Dialogue(Args args, int status, std::string body, TestWorld world = {}) : server(always(status, std::move(body))) {
    world.variables["PERDURE_URL"] = server.url();
    printed = world.run(args);
    asked = server.asked();
  }
  HttpTestServer server;
  Printed printed;
  Args asked;
};

void expect_call(Args args, const std::string& call, int status = 200, const std::string& body = "{}") {
  Dialogue it(args, status, body);
  EXPECT_EQ(it.asked, Args{call}) << args[0] << ": " << it.printed.err;
  EXPECT_EQ(it.printed.exit_code, 0) << args[0] << ": " << it.printed.err;
}

TEST(CliDialogue, EveryCommandMakesItsCall) {
  const std::string list = R"({"items":[],"next":null})";
  expect_call({"events", "mail", "--state", "dead"}, "GET /v1/default/events?worker=mail&state=dead&limit=100", 200,
              list);
  expect_call({"event", "a b/c"}, "GET /v1/default/events/a%20b%2Fc");
  expect_call({"why", "e1"}, "GET /v1/default/events/e1/why");
  expect_call({"history", "e1", "--wait", "20s"}, "GET /v1/default/history/e1?wait=20s");
  expect_call({"cancel", "e1", "--force"}, "DELETE /v1/default/events/e1?force=true", 204, "");
  expect_call({"cancel", "--worker", "mail", "--state", "ready", "--yes"},
              "DELETE /v1/default/workers/mail/events?state=ready", 200, R"({"cancelled":3})");
  expect_call({"dead", "mail"}, "GET /v1/default/workers/mail/dead?limit=100", 200, list);
  expect_call({"redrive", "mail", "--all", "--rate", "10/s"},
              R"(POST /v1/default/workers/mail/dead/redrive {"all":true,"rate":"10/s"})");
  expect_call({"redrive", "mail", "a", "b"}, R"(POST /v1/default/workers/mail/dead/redrive {"ids":["a","b"]})");
  expect_call({"pause", "mail", "--reason", "r", "--until", "t"},
              R"(POST /v1/default/workers/mail/pause {"reason":"r","until":"t"})");
  expect_call({"unblock", "mail"}, "POST /v1/default/workers/mail/unblock {}");
  expect_call({"worker", "show", "mail"}, "GET /v1/default/workers/mail");
  expect_call({"kind", "set", "counter", R"({"url":"http://x/"})"},
              R"(PUT /v1/default/kinds/counter {"url":"http://x/"})");
  expect_call({"schedule", "rm", "daily", "--yes"}, "DELETE /v1/default/schedules/daily", 204, "");
  expect_call({"debouncer", "ls", "--limit", "7"}, "GET /v1/default/debouncers?limit=7", 200, list);
  expect_call({"call", "counter", "c", "1", "--timeout", "2s"}, "POST /v1/default/actors/counter/c/call?timeout=2s 1");
  expect_call({"cast", "counter", "c", "1", "--priority"}, "POST /v1/default/actors/counter/c/priority_cast 1", 202);
  expect_call({"actors", "counter", "--prefix", "a"}, "GET /v1/default/actors/counter?prefix=a&limit=100", 200, list);
  expect_call({"actor", "counter", "c"}, "GET /v1/default/actors/counter/c");
  expect_call({"kill", "counter", "c", "--yes"}, "DELETE /v1/default/actors/counter/c", 204, "");
  expect_call({"unlock", "counter", "c"}, "POST /v1/default/actors/counter/c/unlock {}");
  expect_call({"touch", "build", "repo"}, "POST /v1/default/debouncers/build/keys/repo null", 202);
  expect_call({"append", "p", R"({"next":[]})"}, R"(POST /v1/default/partitions/p/append {"next":[]})", 201);
  expect_call({"log", "p", "--after", "40"}, "GET /v1/default/partitions/p/log?limit=100&after=40", 200, list);
  expect_call({"numbers", "p", "7"}, "GET /v1/default/partitions/p/numbers?workspace=7");
  expect_call({"key", "set", "k", "1", "--if-match", "v1"}, "PUT /v1/default/keys/k 1");
  expect_call({"status"}, "GET /v1/_/status");
  expect_call({"hold"}, "POST /v1/_/hold {}");
  expect_call({"release"}, "POST /v1/_/release {}");
  expect_call({"clock", "advance", "5m"}, R"(POST /v1/_/clock {"advance":"5m"})", 200, R"({"now":"t"})");
}

TEST(CliDialogue, ListsPageUpToTheLimit) {
  std::atomic<int> page = 0;
  HttpTestServer server([&](const Request&, Wire&) {
    int number = ++page;
    std::string items;
    for (int i = 0; i < 2; ++i)
      items += (i == 0 ? "" : ",") + std::string(R"({"id":"e)") + std::to_string(number) + std::to_string(i) + R"("})";
    return Response{200, {}, R"({"items":[)" + items + R"(],"next":)" + (number < 3 ? "\"c d\"" : "null") + "}"};
  });
  TestWorld world;
  Printed it = world.run({"events", "--limit", "0", "--json", "--url", server.url()});
  EXPECT_EQ(
      it.out,
      "{\"id\":\"e10\"}\n{\"id\":\"e11\"}\n{\"id\":\"e20\"}\n{\"id\":\"e21\"}\n{\"id\":\"e30\"}\n{\"id\":\"e31\"}\n");
  EXPECT_EQ(server.asked().at(1), "GET /v1/default/events?limit=1000&after=c%20d");
  page = 0;
  it = world.run({"events", "--limit", "4", "--url", server.url()});
  EXPECT_NE(it.err.find("--limit 0"), std::string::npos);
  EXPECT_EQ(std::ranges::count(it.out, '\n'), 5) << it.out;
}

TEST(CliDialogue, ATableIsTheSameInAPipeButForColour) {
  std::string body = R"({"items":[{"worker":"mail","state":"pause","counts":{"ready":3}}],"next":null})";
  TestWorld terminal;
  terminal.out_is_terminal = true;
  std::string plain = Dialogue({"worker", "ls"}, 200, body).printed.out;
  EXPECT_TRUE(plain.starts_with("WORKER  STATE  READY"));
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(Dialogue({"worker", "ls"}, 200, body, terminal).printed.out.find("\x1b[33mpause\x1b[0m"),
            std::string::npos);
  terminal.variables["NO_COLOR"] = "1";
  EXPECT_EQ(Dialogue({"worker", "ls"}, 200, body, terminal).printed.out.find('\x1b'), std::string::npos);
}

TEST(CliDialogue, PrintsDataAndSaysMessages) {
  Printed call = Dialogue({"call", "counter", "c", "1"}, 200, R"({"reply":{"n":7}})").printed;
  EXPECT_EQ(call.out, "{\"n\":7}\n");
  EXPECT_EQ(Dialogue({"call", "counter", "c", "1", "--json"}, 200, R"({"reply":7})").printed.out, "{\"reply\":7}\n");
  EXPECT_EQ(Dialogue({"why", "e"}, 200, R"({"why":"paused by user","reasons":[]})").printed.out, "paused by user\n");
  EXPECT_EQ(Dialogue({"append", "p", "{}"}, 201, R"({"offset":43,"numbers":[14,15]})").printed.out,
            "OFFSET  NUMBERS\n    43  [14,15]\n");
  Printed paused = Dialogue({"pause", "mail"}, 200, R"({"worker":"mail"})").printed;
  EXPECT_EQ(paused.out, "");
  EXPECT_EQ(paused.err, "mail: paused\n");
  EXPECT_EQ(Dialogue({"pause", "mail", "--json"}, 200, R"({"worker":"mail"})").printed.out, "{\"worker\":\"mail\"}\n");
  EXPECT_EQ(Dialogue({"numbers", "p", "7"}, 200, R"({"invoice":14,"order":1000})").printed.out,
            "invoice  14\norder    1000\n");
}

TEST(CliDialogue, ErrorsOfTheDaemonDecideTheExitCode) {
  Printed it = Dialogue({"event", "e"}, 404, problem(404, "not_found", "there is no event e")).printed;
  EXPECT_EQ(it.exit_code, 3);
  EXPECT_TRUE(it.err.starts_with("perdure: there is no event e\n")) << it.err;
  EXPECT_NE(it.err.find("perdure history e"), std::string::npos);
  EXPECT_EQ(it.out, "");
  EXPECT_EQ(Dialogue({"cancel", "e"}, 409, problem(409, "wrong_state", "it runs")).printed.exit_code, 4);
  EXPECT_EQ(Dialogue({"hold"}, 503, problem(503, "unavailable", "x")).printed.exit_code, 5);
  EXPECT_EQ(Dialogue({"kind", "set", "k", "{}"}, 400, problem(400, "invalid_argument", "x")).printed.exit_code, 2);
  EXPECT_EQ(Dialogue({"call", "k", "i", "1"}, 502, problem(502, "handler_failed", "x")).printed.exit_code, 1);
}

TEST(CliDialogue, WhatCannotBeUndoneIsAskedForOrSaid) {
  for (Args args : {Args{"kill", "k", "i"}, {"worker", "rm", "w"}, {"key", "rm", "k"}, {"cancel", "--worker", "w"}}) {
    Dialogue refused(args, 204, "");
    EXPECT_EQ(refused.printed.exit_code, 2) << args[0];
    EXPECT_NE(refused.printed.err.find("--yes"), std::string::npos);
    EXPECT_TRUE(refused.asked.empty());
    TestWorld terminal;
    terminal.in_is_terminal = terminal.err_is_terminal = true;
    terminal.input = "n\n";
    Dialogue denied(args, 200, "{}", terminal);
    EXPECT_EQ(denied.printed.exit_code, 1);
    EXPECT_TRUE(denied.asked.empty());
    terminal.input = "y\n";
    EXPECT_EQ(Dialogue(args, 200, "{}", terminal).asked.size(), 1u);
  }
}

TEST(CliDialogue, TokenAndTraceGoAlong) {
  TestWorld world;
  world.variables["PERDURE_TOKEN"] = "secret";
  world.variables["TRACEPARENT"] = "00-1-2-01";
  world.variables["PERDURE_SPACE"] = "shop";
  Dialogue it({"event", "e"}, 200, "{}", world);
  EXPECT_EQ(*it.server.requests().at(0).headers.find("Authorization"), "Bearer secret");
  EXPECT_EQ(*it.server.requests().at(0).headers.find("traceparent"), "00-1-2-01");
  EXPECT_EQ(it.asked.at(0), "GET /v1/shop/events/e");
}

TEST(CliDialogue, KeysCarryTheirVersion) {
  HttpTestServer server([](const Request&, Wire&) { return Response{200, {{"ETag", "\"v7\""}}, R"({"a":1})"}; });
  TestWorld world;
  world.variables["PERDURE_URL"] = server.url();
  EXPECT_EQ(world.run({"key", "get", "k"}).out, "{\"a\":1}\n");
  EXPECT_EQ(world.run({"key", "get", "k", "--json"}).out, R"({"key":"k","value":{"a":1},"version":"v7"})"
                                                          "\n");
  world.run({"key", "set", "k", "2", "--if-match", "v7"});
  EXPECT_EQ(*server.requests().back().headers.find("If-Match"), "\"v7\"");
}

TEST(CliDialogue, ReadsJsonFromStdin) {
  TestWorld world;
  world.input = "{\n  \"url\": \"http://x/\"\n}\n";
  Dialogue it({"kind", "set", "k", "-"}, 200, "{}", world);
  EXPECT_EQ(it.asked.at(0), "PUT /v1/default/kinds/k " + world.input);
}

TEST(CliDaemon, IsFoundByTheFirstSocketThatAnswers) {
  std::string directory = testing::TempDir() + "perdure_cli_find_" + std::to_string(::getpid());
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/a.sock") << "not a socket";
  HttpTestServer server(always(200, "{}"), directory + "/b.sock");
  TestWorld world;
  world.variables["PERDURE_STORE"] = "lmdb:" + directory;
  EXPECT_EQ(world.run({"status"}).exit_code, 0);
  EXPECT_EQ(server.asked(), Args{"GET /v1/_/status"});
  std::filesystem::remove_all(directory);
}

TEST(CliMessages, WhatWasSaidIsPrintedWithoutWhatATerminalWouldObey) {
  const std::string body = R"({"items":[{"uuid":"u","is_user":true,"created_at":"t","thinking":"h\u009b1m",)"
                           R"("body":"a\u001b[2J\nb\u009b2Jü","tools":[{"name":"Ba\u009bsh",)"
                           R"("input":{"command":"\u009b2J"},"output":"\u0085x"}]}],"next":null})";
  Dialogue it({"messages", "s"}, 200, body);
  EXPECT_EQ(it.printed.out,
            "user  t\n  h\\x9b1m\n  a\\x1b[2J\n  b\\x9b2Jü\n"
            "  > Ba\\x9bsh {\"command\":\"\\x9b2J\"}\n    \\x85x\n\n");
}

TEST(CliMessages, WhatIsLongIsCutBetweenCharacters) {
  std::string name, output;
  for (int i = 0; i < 300; ++i) name += "ä", output += "€";
  const std::string body = R"({"items":[{"uuid":"u","is_user":false,"created_at":"t","body":"","tools":[{"name":")" +
                           name + R"(","input":{},"output":")" + output + R"("}]}],"next":null})";
  Dialogue it({"messages", "s"}, 200, body);
  std::string line = "  > ", answer;
  for (int i = 0; i < 195; ++i) line += "ä";
  for (int i = 0; i < 199; ++i) answer += "€";
  EXPECT_EQ(it.printed.out, "assistant  t\n" + line + "…\n    " + answer + "…\n\n");
}

TEST(CliDaemon, NobodyThereIsExitCodeFive) {
  Printed it = TestWorld().run({"status", "--url", "unix:///nowhere/x.sock"});
  EXPECT_EQ(it.exit_code, 5);
  EXPECT_NE(it.err.find("nothing answers at unix:///nowhere/x.sock"), std::string::npos) << it.err;
  EXPECT_NE(it.err.find("perdure serve"), std::string::npos);
  EXPECT_EQ(TestWorld().run({"status", "--url", "ftp://x"}).exit_code, 2);
}

TEST(CliStream, ReadsEventsInAnyPieces) {
  std::string text = ": hello\nid: 1\nevent: ready\ndata: {\"a\":1}\n\ndata: x\r\ndata: y\r\n\r\nid: 3\n\n";
  std::vector<StreamedEvent> whole = EventStreamParser().feed(text), pieces;
  EventStreamParser parser;
  for (char c : text)
    for (StreamedEvent& event : parser.feed({&c, 1})) pieces.push_back(std::move(event));
  for (const auto& events : {whole, pieces}) {
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].event + events[0].id + events[0].data, "ready1{\"a\":1}");
    EXPECT_EQ(events[1].event + events[1].id + events[1].data, "message1x\ny");
  }
}

TEST(CliStream, GoesOnWhereItWasCutOff) {
  std::atomic<int> count = 0;
  HttpTestServer server([&](const Request&, Wire& wire) -> std::optional<Response> {
    std::string id = std::to_string(++count);
    wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: " + id +
              "\nevent: ready\ndata: {\"n\":" + id + "}\n\n");
    return {};
  });
  Printed it = TestWorld().run({"stream", "--worker", "mail", "--count", "2", "--json", "--url", server.url()});
  EXPECT_EQ(it.exit_code, 0) << it.err;
  EXPECT_EQ(
      it.out,
      "{\"data\":{\"n\":1},\"event\":\"ready\",\"id\":\"1\"}\n{\"data\":{\"n\":2},\"event\":\"ready\",\"id\":\"2\"}\n");
  EXPECT_EQ(server.asked().at(0), "GET /v1/default/stream?worker=mail");
  EXPECT_EQ(*server.requests().at(1).headers.find("Last-Event-ID"), "1");
}

TEST(CliStream, ARefusalIsFinal) {
  EXPECT_EQ(Dialogue({"stream"}, 400, problem(400, "invalid_argument", "no")).printed.exit_code, 2);
}

TEST(CliStore, BacksUpAndVerifiesOnlyWhatIsThere) {
  std::string directory = testing::TempDir() + "perdure_cli_store_" + std::to_string(::getpid());
  EXPECT_EQ(TestWorld().run({"verify", "--store", "lmdb:" + directory}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(directory));
  ASSERT_TRUE(Store::open("lmdb:" + directory));
  Printed it = TestWorld().run({"verify", "--store", "lmdb:" + directory});
  EXPECT_EQ(it.exit_code, 0) << it.err;
  EXPECT_NE(it.out.find("problem_count  0"), std::string::npos) << it.out;
  EXPECT_EQ(TestWorld().run({"backup", directory + "/copy", "--store", "lmdb:" + directory}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(directory + "/copy"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace perdure::cli
