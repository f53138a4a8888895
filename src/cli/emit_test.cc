#include <gtest/gtest.h>

#include <atomic>

#include "cli/cli_test_world.h"

namespace perdure::cli {
namespace {

// Answers emits as the API does: e1, e2, ... for each event.
class EmitServer {
 public:
  std::vector<std::size_t> batches;

 private:
  std::optional<Response> answer(const Request& request) {
    Value body = *Value::from_json(request.body);
    if (!body.is_list()) return Response{201, {}, R"({"id":"e1"})"};
    batches.push_back(body.as_list()->size());
    Value::List items;
    for (std::size_t i = 0; i < body.as_list()->size(); ++i)
      items.push_back(Value::Map{{"id", "e" + std::to_string(++count_)}});
    return Response{201, {}, Value(Value::Map{{"items", std::move(items)}}).to_json()};
  }
  std::size_t count_ = 0;

 public:
  HttpTestServer server{[this](const Request& request, Wire&) { return answer(request); }};
};

TEST(CliEmit, PrintsTheIdAndSendsTheValueAsTyped) {
  EmitServer fake;
  TestWorld world;
  Printed it = world.run({"emit", "mail", R"({ "n": 18446744073709551616, "x": 1.50 })", "--url", fake.server.url(),
                          "--delay", "5m", "--unique", "k", "--priority", "3", "--space", "shop"});
  EXPECT_EQ(it.exit_code, 2) << "a number that no one can hold";
  it = world.run({"emit", "mail", R"({ "x": 1.50 })", "--url", fake.server.url(), "--delay", "5m", "--unique", "k",
                  "--unique-for", "60", "--priority", "3", "--space", "shop"});
  EXPECT_EQ(it.exit_code, 0) << it.err;
  EXPECT_EQ(it.out, "e1\n");
  EXPECT_EQ(it.err, "");
  EXPECT_EQ(fake.server.asked().at(0),
            R"(POST /v1/shop/events {"delay":"5m","priority":3,"unique":{"for":60,"key":"k"},"worker":"mail",)"
            R"("value":{ "x": 1.50 }})");
  Request request = fake.server.requests().at(0);
  EXPECT_NE(request.headers.find("Idempotency-Key"), nullptr);
  EXPECT_EQ(*request.headers.find("Content-Type"), "application/json");
}

TEST(CliEmit, JsonIsTheAnswer) {
  EmitServer fake;
  EXPECT_EQ(TestWorld().run({"emit", "mail", "1", "--json", "--url", fake.server.url()}).out, "{\"id\":\"e1\"}\n");
}

TEST(CliEmit, SaysThatThereIsADuplicate) {
  HttpTestServer server(always(200, R"({"id":"e1","duplicate":true})"));
  Printed it = TestWorld().run({"emit", "mail", "1", "--unique", "k", "--url", server.url()});
  EXPECT_EQ(it.out, "e1\n");
  EXPECT_NE(it.err.find("already"), std::string::npos);
}

TEST(CliEmit, LinesGoInBatchesOfAThousand) {
  EmitServer fake;
  TestWorld world;
  for (int i = 0; i < 2500; ++i) world.input += std::to_string(i) + (i % 2 == 0 ? "\n" : "\n\n");
  Printed it = world.run({"emit", "mail", "-", "--url", fake.server.url()});
  EXPECT_EQ(it.exit_code, 0);
  EXPECT_EQ(fake.batches, (std::vector<std::size_t>{1000, 1000, 500}));
  EXPECT_TRUE(it.out.starts_with("e1\ne2\n"));
  EXPECT_TRUE(it.out.ends_with("e2500\n"));
  EXPECT_EQ(it.err, "emitted 2,500 events\n");
  EXPECT_TRUE(fake.server.requests().at(0).body.starts_with(R"([{"worker":"mail","value":0},{"worker":"mail")"));
}

TEST(CliEmit, LargeValuesMakeSmallBatches) {
  EmitServer fake;
  TestWorld world;
  for (int i = 0; i < 10; ++i) world.input += "\"" + std::string(900'000, 'x') + "\"\n";
  EXPECT_EQ(world.run({"emit", "mail", "-", "--url", fake.server.url()}).exit_code, 0);
  EXPECT_EQ(fake.batches, (std::vector<std::size_t>{5, 5}));
}

TEST(CliEmit, WhatComesSlowlyIsNotKeptWaiting) {
  EmitServer fake;
  TestWorld world;
  world.input = "1\n2\n3\n";
  world.in_is_ready = [] { return false; };
  world.run({"emit", "mail", "-", "--url", fake.server.url()});
  EXPECT_EQ(fake.batches, (std::vector<std::size_t>{1, 1, 1}));
}

TEST(CliEmit, NamesTheLineThatIsNotJsonAndWhatWasEmitted) {
  EmitServer fake;
  TestWorld world;
  for (int i = 1; i <= 2344; ++i) world.input += std::to_string(i) + "\n";
  world.input += "{oops\n7\n";
  Printed it = world.run({"emit", "mail", "-", "--url", fake.server.url()});
  EXPECT_EQ(it.exit_code, 2);
  EXPECT_NE(it.err.find("line 2345 is not JSON"), std::string::npos) << it.err;
  EXPECT_NE(it.err.find("2,000 events up to line 2000; go on with line 2001"), std::string::npos) << it.err;
  EXPECT_EQ(fake.batches, (std::vector<std::size_t>{1000, 1000}));
}

TEST(CliEmit, ShowsItsProgressOnATerminal) {
  EmitServer fake;
  TestWorld world;
  world.err_is_terminal = true;
  world.input = "1\n2\n3\n4\n";
  world.in_size = 8;
  world.in_is_ready = [] { return false; };
  Printed it = world.run({"emit", "mail", "-", "--url", fake.server.url()});
  EXPECT_NE(it.err.find("[###############...............] 50%  2 events"), std::string::npos) << it.err;
  EXPECT_TRUE(it.err.ends_with("\r\x1b[Kemitted 4 events\n"));
}

TEST(CliEmit, ALostConnectionIsMadeGoodWithTheSameKey) {
  std::atomic<int> count = 0;
  HttpTestServer server([&](const Request&, Wire&) -> std::optional<Response> {
    if (count++ == 0) return {};
    return Response{201, {}, R"({"id":"e1"})"};
  });
  Printed it = TestWorld().run({"emit", "mail", "1", "--url", server.url()});
  EXPECT_EQ(it.exit_code, 0) << it.err;
  auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(*requests[0].headers.find("Idempotency-Key"), *requests[1].headers.find("Idempotency-Key"));
  EXPECT_EQ(requests[0].body, requests[1].body);
}

TEST(CliEmit, ABusyDaemonIsAskedAgainByBatches) {
  std::atomic<int> count = 0;
  HttpTestServer server([&](const Request&, Wire&) {
    if (count++ < 2) return Response{429, {{"Retry-After", "0"}}, problem(429, "limit_exceeded", "full")};
    return Response{201, {}, R"({"items":[{"id":"e1"}]})"};
  });
  TestWorld world;
  world.input = "1\n";
  EXPECT_EQ(world.run({"emit", "mail", "-", "--url", server.url()}).exit_code, 0);
  count = 0;
  EXPECT_EQ(world.run({"emit", "mail", "1", "--url", server.url()}).exit_code, 5) << "a single one is told at once";
}

}  // namespace
}  // namespace perdure::cli
