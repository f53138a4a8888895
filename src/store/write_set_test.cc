#include "store/write_set.h"

#include <gtest/gtest.h>

#include <limits>

namespace perdure {
namespace {

template <class T>
bool is(const WriteSet::Write* write) {
  return write && std::holds_alternative<T>(*write);
}

TEST(WriteSet, KnowsNothingOfKeysThatWereNotWritten) {
  WriteSet writes;
  EXPECT_TRUE(writes.empty());
  EXPECT_EQ(writes.find("a"), nullptr);
  writes.set("a", "1");
  EXPECT_FALSE(writes.empty());
  EXPECT_EQ(writes.find("aa"), nullptr);
  EXPECT_EQ(writes.find(""), nullptr);
}

TEST(WriteSet, LastWriteOfAKeyCounts) {
  WriteSet writes;
  writes.set("a", "1");
  writes.clear("a");
  EXPECT_TRUE(is<WriteSet::Clear>(writes.find("a")));
  writes.set("a", "2");
  ASSERT_TRUE(is<WriteSet::Set>(writes.find("a")));
  EXPECT_EQ(std::get<WriteSet::Set>(*writes.find("a")).value, "2");
  writes.set_stamped("a", Stamped{});
  EXPECT_TRUE(is<WriteSet::SetStamped>(writes.find("a")));
  EXPECT_EQ(writes.points().size(), 1u);
}

TEST(WriteSet, ClearRangeDropsWhatCameBeforeAndKeepsWhatComesAfter) {
  WriteSet writes;
  for (const char* key : {"a", "b", "c", "d"}) writes.set(key, "1");
  writes.clear_range({"b", "d"});
  EXPECT_TRUE(is<WriteSet::Set>(writes.find("a")));
  EXPECT_TRUE(is<WriteSet::Clear>(writes.find("b")));
  EXPECT_TRUE(is<WriteSet::Clear>(writes.find("bb"))) << "keys that nobody wrote are cleared too";
  EXPECT_TRUE(is<WriteSet::Clear>(writes.find("c")));
  EXPECT_TRUE(is<WriteSet::Set>(writes.find("d"))) << "the end is not in the range";
  writes.set("c", "2");
  EXPECT_TRUE(is<WriteSet::Set>(writes.find("c")));
  EXPECT_EQ(writes.cleared(), (std::vector<KeyRange>{{"b", "d"}}));
}

TEST(WriteSet, ClearRangeWithoutAnEndReachesTheLastKey) {
  WriteSet writes;
  writes.set("z", "1");
  writes.clear_range({"b", ""});
  EXPECT_TRUE(writes.points().empty());
  EXPECT_TRUE(is<WriteSet::Clear>(writes.find("zz")));
  EXPECT_EQ(writes.find("a"), nullptr);
}

TEST(WriteSet, BackwardRangeDropsNothing) {
  WriteSet writes;
  writes.set("b", "1");
  writes.clear_range({"c", "a"});
  EXPECT_TRUE(is<WriteSet::Set>(writes.find("b")));
}

TEST(WriteSet, AddsSumUpAndWrap) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  WriteSet writes;
  writes.add("n", 2);
  writes.add("n", 3);
  ASSERT_TRUE(is<WriteSet::Add>(writes.find("n")));
  EXPECT_EQ(std::get<WriteSet::Add>(*writes.find("n")).delta, 5);
  writes.add("n", kMax);
  EXPECT_EQ(std::get<WriteSet::Add>(*writes.find("n")).delta, std::numeric_limits<std::int64_t>::min() + 4);
}

TEST(WriteSet, AddOnAnOwnValueIsASet) {
  WriteSet writes;
  writes.set("set", encode_counter(40));
  writes.add("set", 2);
  EXPECT_EQ(std::get<WriteSet::Set>(*writes.find("set")).value, encode_counter(42));
  writes.clear("cleared");
  writes.add("cleared", 7);
  EXPECT_EQ(std::get<WriteSet::Set>(*writes.find("cleared")).value, encode_counter(7));
  writes.clear_range({"x", "z"});
  writes.add("y", -1);
  EXPECT_EQ(std::get<WriteSet::Set>(*writes.find("y")).value, encode_counter(-1));
}

TEST(WriteSet, StampedValueMakesItsKeyUnreadable) {
  WriteSet writes;
  writes.set_stamped("k", Stamped{});
  EXPECT_TRUE(writes.unreadable("k"));
  EXPECT_FALSE(writes.unreadable("kk"));
  EXPECT_TRUE(writes.unreadable(KeyRange{"a", "l"}));
  EXPECT_TRUE(writes.unreadable(KeyRange{"k", ""}));
  EXPECT_FALSE(writes.unreadable(KeyRange{"a", "k"})) << "the end is not in the range";
  EXPECT_FALSE(writes.unreadable(KeyRange{"l", ""}));
  writes.set("k", "known again");
  EXPECT_FALSE(writes.unreadable("k"));
}

TEST(WriteSet, StampedKeyMakesUnreadableWhereverItMayLand) {
  WriteSet writes;
  writes.set_stamped_key({Stamped{"q/", "!"}, Bytes("value")});
  Bytes landed = Stamped{"q/", "!"}.filled(Version{77});
  EXPECT_TRUE(writes.unreadable(landed));
  EXPECT_FALSE(writes.unreadable(landed + "x")) << "of another length";
  EXPECT_FALSE(writes.unreadable("q/"));
  EXPECT_TRUE(writes.unreadable(single_key(landed)));
  EXPECT_TRUE(writes.unreadable(KeyRange{}));
  EXPECT_TRUE(writes.unreadable(KeyRange{"q", "q0"}));
  EXPECT_TRUE(writes.unreadable(KeyRange{"q/zzz", "r"})) << "any stamp may come";
  EXPECT_FALSE(writes.unreadable(KeyRange{"a", "q/"}));
  EXPECT_FALSE(writes.unreadable(KeyRange{"q0", ""}));
}

TEST(WriteSet, StampedRowIsClearedByLaterRangesOnly) {
  WriteSet writes;
  writes.clear_range({"q", "r"});
  writes.set_stamped_key({Stamped{"q/", ""}, Bytes("first")});
  Bytes key = Stamped{"q/", ""}.filled(Version{1});
  EXPECT_FALSE(writes.cleared_after(writes.stamped()[0], key));
  writes.clear_range({"a", "b"});
  EXPECT_FALSE(writes.cleared_after(writes.stamped()[0], key));
  writes.clear_range({"q", "r"});
  writes.set_stamped_key({Stamped{"q/", ""}, Bytes("second")});
  EXPECT_TRUE(writes.cleared_after(writes.stamped()[0], key));
  EXPECT_FALSE(writes.cleared_after(writes.stamped()[1], key));
}

TEST(WriteSet, BytesCountWhatWillBeWritten) {
  WriteSet writes;
  std::size_t last = writes.bytes();
  auto grows = [&](std::size_t by) {
    bool grown = writes.bytes() >= last + by;
    last = writes.bytes();
    return grown;
  };
  writes.set("key", "value");
  EXPECT_TRUE(grows(8));
  std::size_t once = writes.bytes();
  writes.set("key", "other");
  EXPECT_EQ(writes.bytes(), once) << "a key that is written again counts once";
  writes.clear("key");
  EXPECT_EQ(writes.bytes(), once - 5);
  last = writes.bytes();
  writes.clear_range({"aaaa", "bbbb"});
  EXPECT_TRUE(grows(8));
  writes.add("n", 1);
  EXPECT_TRUE(grows(9));
  writes.set_stamped_key({Stamped{"q/", ""}, Stamped{"v", ""}});
  EXPECT_TRUE(grows(2 + 12 + 1 + 12));
  writes.reset();
  EXPECT_TRUE(writes.empty());
  EXPECT_EQ(writes.bytes(), 0u);
}

}  // namespace
}  // namespace perdure
