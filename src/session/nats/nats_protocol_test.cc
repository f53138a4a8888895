#include "session/nats/nats_protocol.h"

#include <gtest/gtest.h>

namespace perdure::nats {
namespace {

using namespace std::chrono_literals;

TEST(NatsProtocol, AnswersAreErrorsOrSequences) {
  EXPECT_EQ(sequence_of(R"({"stream":"KV_b","seq":17})"), 17u);
  EXPECT_FALSE(error_of(R"({"stream":"KV_b","seq":17})"));
  auto wrong = error_of(R"({"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"seq":0})");
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->code, kWrongLastSequence);
  EXPECT_EQ(wrong->description, "wrong last sequence: 3");
  EXPECT_EQ(error_of("not json")->code, 0);
  EXPECT_EQ(error_of("")->code, 0);
  EXPECT_TRUE(error_of(R"({"error":{}})"));
  EXPECT_FALSE(sequence_of(R"({"seq":"17"})"));
}

// DVU-U2, DVU-17: the value is JSON with the instance and the status; what others wrote there harms nobody.
TEST(NatsProtocol, ValuesAreReadAndWritten) {
  EXPECT_EQ(value_of("a-1", LeaderStatus::kRunning), R"({"instance_id":"a-1","status":"running"})");
  KeyValue read = parse_value(R"({"status":"running","instance_id":"a-1","more":[1]})");
  EXPECT_EQ(read.instance_id, "a-1");
  EXPECT_EQ(read.status, LeaderStatus::kRunning);
  for (std::string_view foreign : {"", "x", "[]", "{}", R"({"instance_id":7})", "\xff\xfe", "{\"instance_id\":\"a"})
    EXPECT_EQ(parse_value(foreign).instance_id, "") << foreign;
}

TEST(NatsProtocol, LastMessagesAreRead) {
  auto entry = entry_of(R"({"message":{"subject":"$KV.b.k","seq":9,"data":"eyJpbnN0YW5jZV9pZCI6ImEifQ==",)"
                        R"("time":"2026-11-16T16:34:03.5Z"}})");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->revision, 9u);
  EXPECT_FALSE(entry->marker);
  EXPECT_EQ(parse_value(entry->value).instance_id, "a");
  // NATS/1.0, KV-Operation: PURGE
  auto purged = entry_of(R"({"message":{"seq":10,"hdrs":"TkFUUy8xLjANCktWLU9wZXJhdGlvbjogUFVSR0UNCg0K",)"
                         R"("time":"2026-11-16T16:34:03Z"}})");
  ASSERT_TRUE(purged);
  EXPECT_TRUE(purged->marker);
  EXPECT_FALSE(entry_of(R"({"message":{"seq":10,"time":"yesterday"}})"));
  EXPECT_FALSE(entry_of(R"({"message":{"seq":10,"data":"*","time":"2026-11-16T16:34:03Z"}})"));
}

TEST(NatsProtocol, ReplySubjectsTellWhereAMessageStands) {
  auto old = delivery_of("$JS.ACK.KV_b.c1.1.42.7.1668610000.0");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->stream_sequence, 42u);
  EXPECT_EQ(old->consumer_sequence, 7u);
  auto newer = delivery_of("$JS.ACK.hub.acc.KV_b.c1.1.42.7.1668610000.0.xyz");
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->stream_sequence, 42u);
  EXPECT_EQ(newer->consumer_sequence, 7u);
  for (std::string_view bad : {"", "$JS.ACK", "_INBOX.1", "$JS.ACK.KV_b.c1.1.x.7.1668610000.0"})
    EXPECT_FALSE(delivery_of(bad)) << bad;
}

TEST(NatsProtocol, TimesAreRead) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01Z"), WallTime(1s));
  EXPECT_EQ(*parse_time("1970-01-02T00:00:00.000000007Z"), WallTime(24h + 7ns));
  for (std::string_view bad : {"", "1970-13-01T00:00:01Z", "1970-01-01T00:00:01", "1970-01-01T00:00:01.xZ"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(NatsProtocol, BucketsAreMadeAsTheyAreCheckedFor) {
  NatsOptions options{.bucket = "b", .max_age = 5s};
  std::string made = create_stream(options);
  auto bucket = bucket_of(R"({"config":)" + made + "}");
  ASSERT_TRUE(bucket) << made;
  EXPECT_EQ(bucket->max_age, Duration(5s));
  EXPECT_TRUE(bucket->rollup);
}

// DVU-B9: settings that cannot work are refused by name.
TEST(NatsProtocol, SettingsAreCheckedByName) {
  EXPECT_TRUE(check_options({}));
  EXPECT_EQ(NatsOptions().max_age, 5s) << "DVU-U1";
  EXPECT_NE(check_options({.url = ""}).error().message.find("url"), std::string::npos);
  EXPECT_NE(check_options({.bucket = "a.b"}).error().message.find("bucket"), std::string::npos);
  EXPECT_NE(check_options({.max_age = 1ms}).error().message.find("max_age"), std::string::npos);
  EXPECT_NE(check_options({.instance_id = "a\"b"}).error().message.find("instance_id"), std::string::npos);
  EXPECT_TRUE(check_key("workspace.change_set"));
  for (std::string_view bad : {"", ".", "a..b", "a.", "a b", "a*", "a>", "\n"}) EXPECT_FALSE(check_key(bad)) << bad;
}

}  // namespace
}  // namespace perdure::nats
