// Value::from_json is the inverse of to_json(), for random values and for text that was damaged.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>

#include "perdure/value.h"
#include "value/value_generators.h"

namespace perdure {
namespace {

using List = Value::List;
using Map = Value::Map;

TEST(JsonRoundTrip, WhatIsWrittenIsReadAsWhatItWas) {
  EXPECT_TRUE(rc::check([] {
    Value value = random::any_value(4);
    auto read = Value::from_json(value.to_json());
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == value);
  }));
}

TEST(JsonRoundTrip, EveryFiniteDoubleComesBackBitByBit) {
  EXPECT_TRUE(rc::check([] {
    for (int i = 0; i < 100; ++i) {
      auto number = std::bit_cast<double>(*rc::gen::resize(1000, rc::gen::arbitrary<std::uint64_t>()));
      if (!std::isfinite(number)) continue;
      auto read = Value::from_json(Value(number).to_json());
      RC_ASSERT(read.has_value());
      RC_ASSERT(*read == Value(number));
    }
  }));
}

/// Any character that UTF-8 has, with those of few bytes as likely as the others.
std::uint32_t any_character() {
  constexpr std::uint32_t kEnds[] = {0x20, 0x80, 0x800, 0xd800, 0x10000, 0x110000};
  auto character = static_cast<std::uint32_t>(random::pick(kEnds[random::pick(std::size(kEnds))]));
  return character >= 0xd800 && character < 0xe000 ? 0xfffd : character;
}

TEST(JsonRoundTrip, TextIsTheSameEscapedOrNot) {
  EXPECT_TRUE(rc::check([] {
    std::string escaped;
    for (std::size_t size = random::pick(20); size > 0; --size) {
      std::uint32_t character = any_character();
      std::uint32_t above = character - 0x10000;
      auto escape = [&](std::uint32_t unit) {
        char text[8];
        std::snprintf(text, sizeof text, random::pick(2) == 0 ? "\\u%04x" : "\\u%04X", unit);
        escaped += text;
      };
      if (character >= 0x10000) escape(0xd800 + (above >> 10));
      escape(character < 0x10000 ? character : 0xdc00 + (above & 0x3ff));
    }
    auto value = Value::from_json('"' + escaped + '"');
    RC_ASSERT(value.has_value());
    RC_ASSERT(value->check("it").has_value());
    RC_ASSERT((Value::from_json(value->to_json()) == *value));
    auto as_key = Value::from_json("{\"" + escaped + "\":1}");
    RC_ASSERT(*as_key == Value(Map{{*value->as_text(), 1}}));
  }));
}

TEST(JsonRoundTrip, WhatIsCutShortIsRefused) {
  EXPECT_TRUE(rc::check([] {
    std::string text = Value(List{random::any_value(3)}).to_json();
    auto size = *rc::gen::inRange<std::size_t>(0, text.size());
    RC_ASSERT(!Value::from_json(text.substr(0, size)).has_value());
  }));
}

TEST(JsonRoundTrip, WhatIsReadFromDamagedTextIsWrittenAndReadAsTheSame) {
  EXPECT_TRUE(rc::check([] {
    std::string text = random::any_value(3).to_json();
    text[*rc::gen::inRange<std::size_t>(0, text.size())] =
        *rc::gen::element('"', '\\', '{', ',', '0', 'e', '\xff', ' ');
    auto read = Value::from_json(text);
    if (!read) return;
    RC_ASSERT(read->check("it").has_value());
    RC_ASSERT((Value::from_json(read->to_json()) == *read));
  }));
}

}  // namespace
}  // namespace perdure
