// Properties of random values and of random bytes.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "perdure/value.h"
#include "value/value_generators.h"

namespace perdure {
namespace {

TEST(ValueRoundTrip, DecodeGivesBackEveryValue) {
  EXPECT_TRUE(rc::check([] {
    Value value = random::any_value(4);
    Bytes encoded = value.encode();
    RC_ASSERT(encoded.size() == value.encoded_size());
    RC_ASSERT(value.check("it").has_value());
    auto decoded = Value::decode(encoded);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == value);
  }));
}

TEST(ValueRoundTrip, EqualExactlyIfTheBytesAre) {
  EXPECT_TRUE(rc::check([] {
    Value one = random::any_value(1);
    Value other = random::any_value(1);
    RC_ASSERT((one == other) == (one.encode() == other.encode()));
  }));
}

TEST(ValueRoundTrip, WhatIsCutShortIsRefused) {
  EXPECT_TRUE(rc::check([] {
    Bytes encoded = random::any_value(3).encode();
    auto size = *rc::gen::inRange<std::size_t>(0, encoded.size());
    RC_ASSERT(!Value::decode(BytesView(encoded).substr(0, size)).has_value());
  }));
}

TEST(ValueRoundTrip, WhatDecodesFromDamagedBytesEncodesToThem) {
  EXPECT_TRUE(rc::check([] {
    Bytes encoded = random::any_value(3).encode();
    encoded[*rc::gen::inRange<std::size_t>(0, encoded.size())] = *rc::gen::arbitrary<char>();
    auto decoded = Value::decode(encoded);
    if (decoded) RC_ASSERT(decoded->encode() == encoded);
  }));
}

}  // namespace
}  // namespace perdure
