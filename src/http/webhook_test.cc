#include "http/webhook.h"

#include <gtest/gtest.h>

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

WallTime at(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(seconds));
}

// By hand: printf 'ID.TIME.BODY' | openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY -binary | base64
TEST(Webhook, SignaturesAreThoseOfTheOpensslCommand) {
  EXPECT_EQ(webhook_signature(*webhook_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "msg_p5jXN8AQM9LWM0D4loKWxJek",
                              1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  EXPECT_EQ(webhook_signature(*webhook_key("swordfish"), "018f0000-0000-7000-8000-000000000001", 1700000000, "{}"),
            "v1,/BNqZ2BpF86ZOWARh1nLYHJuxo7L6qb346d4L/ojGfI=");
}

TEST(Webhook, ASecretIsBase64BehindItsPrefixAndTextWithout) {
  EXPECT_EQ(*webhook_key("whsec_AAEC"), Bytes("\0\1\2", 3));
  EXPECT_EQ(*webhook_key("plain"), "plain");
  for (std::string_view bad : {"", "whsec_", "whsec_%%%%", "whsec_AAE"}) {
    auto key = webhook_key(bad);
    ASSERT_FALSE(key) << bad;
    EXPECT_EQ(key.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Webhook, WhatWasSignedVerifiesAndNothingElse) {
  Headers headers;
  add_webhook_headers(headers, "key", "id-1", at(1000), "body");
  EXPECT_TRUE(verify_webhook("key", headers, "body", at(1000)));
  EXPECT_TRUE(verify_webhook("key", headers, "body", at(1300)));
  EXPECT_FALSE(verify_webhook("key", headers, "body", at(1301)));
  EXPECT_FALSE(verify_webhook("key", headers, "body", at(699)));
  EXPECT_FALSE(verify_webhook("other", headers, "body", at(1000)));
  EXPECT_FALSE(verify_webhook("key", headers, "bodY", at(1000)));
  EXPECT_FALSE(verify_webhook("key", {}, "body", at(1000)));
}

TEST(Webhook, OneOfSeveralSignaturesIsEnough) {
  std::string good = webhook_signature("key", "id", 1000, "body");
  Headers headers{{"Webhook-Id", "id"}, {"Webhook-Timestamp", "1000"}, {"Webhook-Signature", "v1,AAAA " + good}};
  EXPECT_TRUE(verify_webhook("key", headers, "body", at(1000)));
  Headers none{{"webhook-id", "id"}, {"webhook-timestamp", "1000"}, {"webhook-signature", "v1,AAAA v1a,BBBB "}};
  EXPECT_FALSE(verify_webhook("key", none, "body", at(1000)));
  Headers later{{"webhook-id", "id"}, {"webhook-timestamp", "1e3"}, {"webhook-signature", good}};
  EXPECT_FALSE(verify_webhook("key", later, "body", at(1000)));
}

TEST(Webhook, WithoutAKeyNothingIsSigned) {
  Headers headers;
  add_webhook_headers(headers, {}, "id", at(1), "body");
  EXPECT_NE(headers.find("webhook-id"), nullptr);
  EXPECT_EQ(headers.find("webhook-signature"), nullptr);
}

}  // namespace
}  // namespace perdure::http
