#include "perdure/key_range.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "perdure/stamped.h"

namespace perdure {
namespace {

using namespace std::string_view_literals;

TEST(KeyRange, AnEmptyEndIsNoUpperBound) {
  EXPECT_TRUE(KeyRange{}.contains(""));
  EXPECT_TRUE(KeyRange{}.contains("\xff\xff\xff"));
  EXPECT_FALSE(KeyRange{}.empty());
  EXPECT_FALSE((KeyRange{"b", ""}.contains("a")));
}

TEST(KeyRange, IsHalfOpen) {
  KeyRange range{"b", "d"};
  EXPECT_FALSE(range.contains("a"));
  EXPECT_TRUE(range.contains("b"));
  EXPECT_TRUE(range.contains("c\xff"));
  EXPECT_FALSE(range.contains("d"));
  EXPECT_FALSE(range.empty());
  EXPECT_TRUE((KeyRange{"d", "d"}.empty()));
  EXPECT_TRUE((KeyRange{"d", "b"}.empty()));
}

TEST(PrefixRange, EndIsTheNextKeyThatLacksThePrefix) {
  EXPECT_EQ(prefix_range("ab"), (KeyRange{"ab", "ac"}));
  EXPECT_EQ(prefix_range("a\xff\xff"), (KeyRange{"a\xff\xff", "b"}));
  EXPECT_EQ(prefix_range("\x7f"), (KeyRange{"\x7f", "\x80"}));
}

TEST(PrefixRange, WithoutALaterKeyItHasNoUpperBound) {
  EXPECT_EQ(prefix_range(""), KeyRange{});
  EXPECT_EQ(prefix_range("\xff\xff"), (KeyRange{"\xff\xff", ""}));
}

TEST(PrefixRange, ContainsExactlyTheKeysThatStartWithIt) {
  // Few different bytes, so that keys often share a prefix.
  auto few = rc::gen::container<Bytes>(rc::gen::element('\0', '\x01', 'a', '\x7f', '\x80', '\xfe', '\xff'));
  EXPECT_TRUE(rc::check([&] {
    Bytes prefix = *few, key = *rc::gen::oneOf(few, rc::gen::map(few, [&](Bytes tail) { return prefix + tail; }));
    RC_ASSERT(prefix_range(prefix).contains(key) == key.starts_with(prefix));
  }));
}

TEST(SingleKey, ContainsTheKeyAndNotItsNeighbours) {
  KeyRange range = single_key("k");
  EXPECT_TRUE(range.contains("k"));
  EXPECT_FALSE(range.contains("k\0"sv));
  EXPECT_FALSE(range.contains("j\xff\xff"));
  EXPECT_TRUE(single_key("").contains(""));
  EXPECT_FALSE(single_key("").contains("\0"sv));
}

TEST(Stamped, IsFilledWithTheVersionOfTheCommitAndItsOwnOrder) {
  Stamped stamped{"<", ">", 3};
  EXPECT_EQ(stamped.filled(Version{0x41}), "<\0\0\0\0\0\0\0\x41\0\0\0\x03>"sv);
}

}  // namespace
}  // namespace perdure
