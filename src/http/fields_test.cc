#include "http/fields.h"

#include <gtest/gtest.h>

namespace perdure::http {
namespace {

std::string error_of(Fields& fields) {
  auto result = fields.finish();
  return result ? "" : result.error().message;
}

TEST(Fields, AFieldThatNobodyAskedForIsRefusedWithThoseThatThereAre) {
  Value body = Value::Map{{"worker", "mail"}, {"dealy", "5s"}};
  Fields fields(body, "the event");
  EXPECT_EQ(fields.required_text("worker"), "mail");
  (void)fields.duration("delay");
  EXPECT_EQ(error_of(fields), "'dealy' of the event is not known; there are: delay, worker");
}

TEST(Fields, TheFirstThingThatIsWrongIsTold) {
  Value body = Value::Map{{"a", 1}, {"b", 2}};
  Fields fields(body, "it");
  EXPECT_EQ(fields.text("a"), std::nullopt);
  EXPECT_EQ(fields.boolean("b"), std::nullopt);
  EXPECT_EQ(error_of(fields), "'a' of it must be a text, and not integer 1");
}

TEST(Fields, WhatIsNoObjectHasNoFields) {
  Value body = Value::List{};
  Fields fields(body, "the request");
  EXPECT_EQ(fields.text("a"), std::nullopt);
  EXPECT_EQ(error_of(fields), "the request must be a JSON object, and not a list");
  Value nothing;
  Fields none(nothing, "it");
  EXPECT_EQ(none.text("a"), std::nullopt);
  EXPECT_EQ(error_of(none), "");
}

TEST(Fields, NumbersHaveBounds) {
  Value body = Value::Map{{"n", 10}};
  Fields good(body, "it");
  EXPECT_EQ(good.integer("n", 0, 10), 10);
  EXPECT_EQ(error_of(good), "");
  Fields bad(body, "it");
  EXPECT_EQ(bad.integer("n", 0, 9), std::nullopt);
  EXPECT_EQ(error_of(bad), "'n' of it must be a whole number from 0 to 9, and not integer 10");
}

TEST(Fields, ANullIsAFieldThatIsNotThere) {
  Value body = Value::Map{{"delay", nullptr}};
  Fields fields(body, "it");
  EXPECT_EQ(fields.duration("delay"), std::nullopt);
  EXPECT_FALSE(fields.has("delay"));
  EXPECT_EQ(error_of(fields), "");
}

TEST(Fields, AListMayBeTooLong) {
  Value body = Value::Map{{"ids", Value::List(3)}};
  Fields fields(body, "it");
  EXPECT_EQ(fields.list("ids", 2), nullptr);
  EXPECT_EQ(fields.finish().error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace perdure::http
