#include "http/remote_answer.h"

#include <gtest/gtest.h>

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

Result<RemoteAnswer> read(std::string_view body, RemoteFields fields = RemoteFields::kAll) {
  return read_remote_answer(body, fields, "default");
}

TEST(RemoteAnswer, EverythingThatItMaySayIsRead) {
  From from{{"default", "k", "1"}, 7, Stamp{}, 3};
  auto answer = read(R"({"state":{"n":1},"reply":null,"stop":"done",
    "emit":[{"worker":"mail","value":[1],"delay":"250ms"},{"worker":"w","value":2}],
    "cast":[{"kind":"counter","id":"a","message":{"Add":{}},"delay":1.5}],
    "touch":[{"debouncer":"d","key":"k","payload":7}],
    "append":[{"partition":"p","type":"t","workspace":9,"next":["x","x"],"payload":"y"}],
    "replies":[{"from":")" +
                     from.to_string() + R"(","reply":8}]})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer->state, Value(Value::Map{{"n", 1}}));
  EXPECT_EQ(*answer->reply, Value());
  EXPECT_EQ(*answer->stop, "done");
  ASSERT_EQ(answer->emit.size(), 2u);
  EXPECT_EQ(answer->emit[0].delay, 250ms);
  EXPECT_EQ(answer->emit[1].delay, 0s);
  EXPECT_EQ(answer->cast.at(0).id, "a");
  EXPECT_EQ(answer->cast.at(0).delay, 1500ms);
  EXPECT_EQ(answer->touch.at(0).payload, Value(7));
  EXPECT_EQ(answer->append.at(0).event.next.size(), 2u);
  EXPECT_EQ(answer->append.at(0).event.workspace, 9u);
  EXPECT_EQ(answer->replies.at(0).from, from);
}

TEST(RemoteAnswer, AnAbsentStateIsNotNull) {
  EXPECT_FALSE(read("{}")->state);
  EXPECT_EQ(read(R"({"state":null})")->state, Value());
  EXPECT_FALSE(read("{}")->reply);
}

TEST(RemoteAnswer, DurationsAreThoseOfTheContract) {
  for (auto [text, expected] : {std::pair<const char*, Duration>("\"5s\"", 5s),
                                {"\"5m\"", 5min},
                                {"\"24h\"", 24h},
                                {"\"7d\"", 168h},
                                {"3", 3s},
                                {"0.25", 250ms},
                                {"null", 0s}})
    EXPECT_EQ(read(R"({"emit":[{"worker":"w","delay":)" + std::string(text) + "}]}")->emit.at(0).delay, expected);
  for (const char* text :
       {"-1", "\"5\"", "\"5 s\"", "\"s\"", "true", "1e300", "\"5s5s\"", "\"-5s\"", "\"nans\"", "\"infs\""}) {
    auto answer = read(R"({"emit":[{"worker":"w","delay":)" + std::string(text) + "}]}");
    ASSERT_FALSE(answer) << text;
    EXPECT_NE(answer.error().message.find("emit[0].delay"), std::string::npos) << answer.error().message;
  }
}

TEST(RemoteAnswer, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"stat":1})", "stat"},
      {R"({"lock":1})", "lock"},
      {R"({"noreply":"yes"})", "noreply"},
      {R"({"stop":true})", "stop"},
      {R"({"emit":{}})", "emit"},
      {R"({"emit":[{"value":1}]})", "emit[0].worker"},
      {R"({"emit":[{"worker":"w"},{"worker":7}]})", "emit[1].worker"},
      {R"({"emit":[{"worker":"w","prio":7}]})", "prio"},
      {R"({"cast":[{"kind":"k"}]})", "cast[0].id"},
      {R"({"touch":[{"debouncer":"k"}]})", "touch[0].key"},
      {R"({"append":[{"partition":"k"}]})", "append[0].type"},
      {R"({"append":[{"partition":"k","type":"t","workspace":-1}]})", "workspace"},
      {R"({"replies":[{"from":"nobody","reply":1}]})", "replies[0].from"},
      {R"({"reply":1,"noreply":true})", "noreply"},
      {R"({"reply":1,"lock":true})", "lock"},
      {R"({"stop":"x","lock":true})", "stop"},
      {"[]", "object"},
      {"{", "JSON"},
      {"", "JSON"},
  };
  for (auto [body, field] : cases) {
    auto answer = read(body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().code, ErrorCode::kHandlerFailed);
    EXPECT_NE(answer.error().message.find(field), std::string::npos) << body << ": " << answer.error().message;
  }
}

TEST(RemoteAnswer, CallersOfOtherSpacesAreNotRepliedTo) {
  From from{{"other", "k", "1"}, 7, Stamp{}, 3};
  auto answer = read(R"({"replies":[{"from":")" + from.to_string() + R"(","reply":8}]})");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("other"), std::string::npos);
}

TEST(RemoteAnswer, InitAndUpgradeAnswerNothingButAState) {
  EXPECT_TRUE(read(R"({"state":1})", RemoteFields::kState));
  EXPECT_TRUE(read("{}", RemoteFields::kState));
  auto answer = read(R"({"state":1,"emit":[]})", RemoteFields::kState);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("emit"), std::string::npos);
}

TEST(RemoteAnswer, ListsAreBounded) {
  std::string body = R"({"emit":[)";
  for (std::size_t i = 0; i < kRemoteItemsMax; ++i) body += R"({"worker":"w"},)";
  EXPECT_FALSE(read(body + R"({"worker":"w"}]})"));
  body.pop_back();
  EXPECT_TRUE(read(body + "]}"));
}

}  // namespace
}  // namespace perdure::http
