#include "perdure/tuple_reader.h"

#include <gtest/gtest.h>

#include <limits>

#include "perdure/tuple.h"

namespace perdure::tuple {
namespace {

using namespace std::string_view_literals;

std::string message(Reader& reader) {
  auto read = reader.finish();
  if (read) return "no error";
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  return read.error().message.substr(read.error().message.find(": ") + 2);
}

TEST(TupleReader, ReadsEveryKindOfElement) {
  Uuid uuid{{1, 2, 3}};
  Stamp stamp{Version{5}, 6};
  Bytes key = pack("t", BlobView{"\xff"}, -7, 8u, 1.5, true, false, uuid, stamp, null, nested(1, null, nested()), 9);
  Reader reader(key);
  EXPECT_EQ(reader.next_text(), "t");
  EXPECT_EQ(reader.next_bytes(), "\xff");
  EXPECT_EQ(reader.next_int(), -7);
  EXPECT_EQ(reader.next_uint(), 8u);
  EXPECT_EQ(reader.next_double(), 1.5);
  EXPECT_TRUE(reader.next_bool());
  EXPECT_FALSE(reader.next_bool());
  EXPECT_EQ(reader.next_uuid(), uuid);
  EXPECT_EQ(reader.next_stamp(), stamp);
  reader.next_null();
  EXPECT_EQ(reader.peek(), Kind::kTuple);
  reader.enter_tuple();
  EXPECT_EQ(reader.next_int(), 1);
  reader.next_null();
  EXPECT_EQ(reader.next<Tuple>(), Tuple{});
  EXPECT_TRUE(reader.at_end());
  reader.leave_tuple();
  EXPECT_EQ(reader.rest(), pack(9));
  EXPECT_EQ(reader.next_integer(), Integer(9));
  EXPECT_EQ(message(reader), "no error");
}

TEST(TupleReader, StringsPointIntoTheKeyUnlessTheyHoldAZero) {
  Bytes key = pack("plain", "with\0zero"sv, "\0"sv);
  Reader reader(key);
  EXPECT_EQ(reader.next_text().data(), key.data() + 1);
  std::string_view first = reader.next_text(), second = reader.next_text();
  EXPECT_EQ(first, "with\0zero"sv);
  EXPECT_EQ(second, "\0"sv);
  EXPECT_EQ(message(reader), "no error");
}

TEST(TupleReader, FirstErrorSticksAndLaterReadsGiveNothing) {
  Bytes key = pack("a", 1, "b");
  Reader reader(key);
  reader.next_text();
  EXPECT_EQ(reader.next_stamp(), Stamp{});
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.next_int(), 0);
  EXPECT_EQ(reader.next_text(), "");
  EXPECT_EQ(reader.next_element(), Element(null));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(message(reader), "an integer instead of a stamp at byte 3");
}

TEST(TupleReader, EndIsNeitherPassedNorMissed) {
  Reader empty("");
  empty.next_int();
  EXPECT_EQ(message(empty), "the end of the tuple instead of an integer at byte 0");
  Bytes key = pack(1, 2);
  Reader early(key);
  early.next_int();
  EXPECT_EQ(message(early), "an integer instead of the end of the tuple at byte 2");
}

TEST(TupleReader, NestedTuplesAreLeftAtTheirEndOnly) {
  Bytes key = pack(nested(1), 2);
  Reader early(key);
  early.enter_tuple();
  early.leave_tuple();
  EXPECT_EQ(message(early), "an integer instead of the end of the tuple at byte 1");
  Reader late(key);
  late.enter_tuple();
  late.next_int();
  late.next_int();
  EXPECT_EQ(message(late), "the end of the tuple instead of an integer at byte 3");
  Reader inside(key);
  inside.enter_tuple();
  inside.next_int();
  EXPECT_EQ(message(inside), "a nested tuple that was not left at byte 3");
  Reader outside("");
  outside.leave_tuple();
  EXPECT_EQ(message(outside), "no nested tuple to leave at byte 0");
}

TEST(TupleReader, IntegersThatDoNotFitAreRefused) {
  auto refused = [](const Bytes& key, auto read) {
    Reader reader(key);
    EXPECT_EQ(read(reader), 0);
    return message(reader);
  };
  auto as_int = [](Reader& reader) { return reader.next_int(); };
  auto as_uint = [](Reader& reader) { return static_cast<std::int64_t>(reader.next_uint()); };
  auto as_byte = [](Reader& reader) { return reader.next<std::uint8_t>(); };
  auto as_signed_byte = [](Reader& reader) { return reader.next<std::int8_t>(); };
  Integer big = Integer::from_magnitude(Sign::kPositive, "123456789").value();
  EXPECT_EQ(refused(pack(std::uint64_t{1} << 63), as_int),
            "an integer that does not fit 64 bits with a sign at byte 0");
  EXPECT_EQ(refused(pack(big), as_int), "an integer that does not fit 64 bits with a sign at byte 0");
  EXPECT_EQ(refused(pack(-1), as_uint), "an integer that does not fit 64 bits without a sign at byte 0");
  EXPECT_EQ(refused(pack(big), as_uint), "an integer that does not fit 64 bits without a sign at byte 0");
  EXPECT_EQ(refused(pack(256), as_byte), "an integer that does not fit a narrower unsigned type at byte 0");
  EXPECT_EQ(refused(pack(-129), as_signed_byte), "an integer that does not fit a narrower signed type at byte 0");
}

TEST(TupleReader, IntegersAtTheEdgeOfATypeFit) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  Bytes key = pack(Limits::min(), Limits::max(), kMax, 255, -128);
  auto read = unpack_as<std::int64_t, std::int64_t, std::uint64_t, std::uint8_t, std::int8_t>(key);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, std::tuple(Limits::min(), Limits::max(), kMax, 255, -128));
}

TEST(TupleReader, PrefixIsSkippedOnlyIfItIsThere) {
  Bytes key = pack_onto("/q", 7);
  Reader reader(key);
  reader.skip_prefix("/q");
  EXPECT_EQ(reader.next_int(), 7);
  EXPECT_EQ(message(reader), "no error");
  Reader other(key);
  other.skip_prefix("/p");
  EXPECT_EQ(message(other), "the prefix /p is not there at byte 0");
}

TEST(TupleUnpackAs, GivesTypedElementsInOrder) {
  Stamp stamp{Version{5}, 6};
  Bytes prefix = pack("events");
  Bytes key = pack_onto(prefix, "mail", stamp, BlobView{"x"}, null, nested("n", 1));
  auto read = unpack_after<std::string, Stamp, Blob, Null, Tuple>(prefix, key);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, std::tuple("mail", stamp, Blob{"x"}, null, Tuple({"n", 1})));
  EXPECT_FALSE((unpack_after<std::string, Stamp>(prefix, key)));
  EXPECT_FALSE((unpack_as<std::string>(prefix + prefix)));
  EXPECT_FALSE((unpack_as<std::string, std::string>(prefix)));
}

}  // namespace
}  // namespace perdure::tuple
