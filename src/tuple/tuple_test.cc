#include "perdure/tuple.h"

#include <gtest/gtest.h>

#include <limits>

#include "tuple/utf8.h"

namespace perdure::tuple {
namespace {

using namespace std::string_view_literals;

Tuple nested_deeply(std::size_t depth) {
  Tuple tuple;
  for (std::size_t i = 0; i < depth; ++i) tuple = Tuple({Element::nested(std::move(tuple))});
  return tuple;
}

static_assert(Packable<std::uint8_t> && Packable<std::string> && Packable<const char*> && Packable<char[3]>);
static_assert(!Packable<char> && !Packable<int*> && !Packable<Tuple> && !Packable<Element> && !Packable<long double>);

TEST(TuplePack, AppendingIsPackingTheLongerTuple) {
  Bytes key = pack("events", 7);
  append(key, true, nested(null));
  EXPECT_EQ(key, pack("events", 7, true, nested(null)));
  EXPECT_EQ(pack_onto(pack("events"), 7), pack("events", 7));
  EXPECT_EQ(pack_onto("/raw/", 7), "/raw/" + pack(7));
}

TEST(TuplePack, TupleOfElementsPacksAsTheTypedCallDoes) {
  Uuid uuid{{9}};
  Stamp stamp{Version{1}, 2};
  Integer big = Integer::from_magnitude(Sign::kNegative, "123456789").value();
  Tuple tuple{"text", std::string("more"),         BlobView{"b"}, Blob{"c"}, 1, 2u, big, 1.5, 2.5f, true, uuid, stamp,
              null,   Element::nested({null, "x"})};
  EXPECT_EQ(pack(tuple).value(), pack("text", "more", BlobView{"b"}, BlobView{"c"}, 1, 2, big, 1.5, 2.5, true, uuid,
                                      stamp, null, nested(null, "x")));
  EXPECT_EQ(unpack(pack(tuple).value()).value(), tuple);
}

TEST(TuplePack, TextThatIsNotUtf8IsRefusedInATupleOfElements) {
  Bytes out = "kept";
  auto packed = append(out, Tuple{1, Element::nested({"ok", "b\xff"})});
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(packed.error().message, "a text in the tuple is not UTF-8 at byte 1: \"b\\xff\"");
  EXPECT_EQ(out, "kept");
}

TEST(TupleDepth, SixtyFourLevelsAreReadAndOneMoreIsRefused) {
  Tuple deepest = nested_deeply(kMaxDepth);
  Bytes packed = pack(deepest).value();
  EXPECT_EQ(unpack(packed).value(), deepest);
  Tuple too_deep{Element::nested(deepest)};
  EXPECT_EQ(pack(too_deep).error().code, ErrorCode::kInvalidArgument);
  auto unpacked = unpack("\x05" + packed + '\0');
  ASSERT_FALSE(unpacked);
  EXPECT_TRUE(unpacked.error().message.ends_with("tuples nested deeper than 64 levels at byte 64"));
}

TEST(TupleDepth, AMillionMarkersDoNotOverflowTheStack) {
  EXPECT_FALSE(unpack(Bytes(1'000'000, '\x05')));
}

TEST(TupleStamped, CommitFillsTheHoleWithACompleteStamp) {
  Stamped key = pack_stamped("log", IncompleteStamp{3}, "tail", 1);
  EXPECT_EQ(key.order, 3u);
  EXPECT_EQ(key.filled(Version{77}), pack("log", Stamp{Version{77}, 3}, "tail", 1));
  Stamped inner = pack_stamped_onto("/p", nested(null, IncompleteStamp{}), null);
  EXPECT_EQ(inner.filled(Version{77}), pack_onto("/p", nested(null, Stamp{Version{77}, 0}), null));
}

TEST(TupleStamped, TupleOfElementsNeedsExactlyOneHole) {
  Element hole = IncompleteStamp{5};
  EXPECT_EQ(pack_stamped(Tuple{1, Element::nested({hole}), 2}).value(), pack_stamped(1, nested(IncompleteStamp{5}), 2));
  for (const Tuple& wrong : {Tuple{}, Tuple{1}, Tuple{hole, hole}, Tuple{hole, Element::nested({hole})}}) {
    auto packed = pack_stamped(wrong);
    ASSERT_FALSE(packed) << to_string(wrong);
    EXPECT_EQ(packed.error().code, ErrorCode::kInvalidArgument);
  }
  auto packed = pack(Tuple{1, hole});
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().message, "incomplete stamps in the tuple: 1 instead of 0");
}

TEST(TupleRange, ContainsExtensionsAndNothingThatMerelyLooksAlike) {
  KeyRange range = tuple::range("a");
  EXPECT_TRUE(range.contains(pack("a", null)));
  EXPECT_TRUE(range.contains(pack("a", Stamp{Version{~0ull}, ~0u}, "z")));
  EXPECT_FALSE(range.contains(pack("a")));
  EXPECT_FALSE(range.contains(pack("a\0"sv, 1)));
  EXPECT_FALSE(range.contains(pack("ab", 1)));
  EXPECT_FALSE(range.contains(pack(BlobView{"a"}, 1)));
  EXPECT_EQ(range, extensions(pack("a")));
  EXPECT_EQ(range_onto("/p", 1), extensions("/p" + pack(1)));
  EXPECT_FALSE(tuple::range().contains(pack()));
  EXPECT_TRUE(tuple::range().contains(pack(null)));
}

TEST(TupleInteger, LeadingZerosAndTheSignOfZeroDoNotMatter) {
  EXPECT_EQ(Integer::from_magnitude(Sign::kPositive, "\0\0\x07"sv).value(), Integer(7));
  EXPECT_EQ(Integer::from_magnitude(Sign::kNegative, "\0\0"sv).value(), Integer(0));
  EXPECT_EQ(Integer::from_magnitude(Sign::kNegative, "").value(), Integer());
}

TEST(TupleInteger, MoreThan255BytesAreRefused) {
  Integer largest = Integer::from_magnitude(Sign::kNegative, '\0' + Bytes(255, '\xff')).value();
  EXPECT_EQ(unpack(pack(largest)).value(), Tuple({largest}));
  auto larger = Integer::from_magnitude(Sign::kPositive, '\x01' + Bytes(255, '\0'));
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(larger.error().message, "an integer of 256 bytes; a tuple holds at most 255");
}

TEST(TupleInteger, FitsAMachineIntegerExactlyInItsRange) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(Integer(Limits::min()).to_int64(), Limits::min());
  EXPECT_EQ(Integer(Limits::max()).to_int64(), Limits::max());
  EXPECT_EQ(Integer(std::uint64_t{1} << 63).to_int64(), std::nullopt);
  EXPECT_EQ(Integer::from_magnitude(Sign::kNegative, "\x80\0\0\0\0\0\0\x01"sv).value().to_int64(), std::nullopt);
  EXPECT_EQ(Integer(~0ull).to_uint64(), ~0ull);
  EXPECT_EQ(Integer(-1).to_uint64(), std::nullopt);
  EXPECT_EQ(Integer::from_magnitude(Sign::kPositive, "123456789").value().to_uint64(), std::nullopt);
}

TEST(TupleElement, ComparesDoublesByTheirBits) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Element(nan), Element(nan));
  EXPECT_NE(Element(0.0), Element(-0.0));
  EXPECT_NE(Element(1.0), Element(1));
  EXPECT_NE(Element("a"), Element(BlobView{"a"}));
}

TEST(TupleText, CheckNamesTheThingAndTheByte) {
  EXPECT_TRUE(check_text("größe 🦆 with \0 zero"sv, "the name"));
  auto checked = check_text("ab\xc3", "the name of the worker");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "the name of the worker is not UTF-8 at byte 2: \"ab\\xc3\"");
}

TEST(Utf8, ExactlyWellFormedCharactersAreAccepted) {
  for (std::string_view good : {""sv, "\x7f"sv, "\0"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xed\x9f\xbf"sv,
                                "\xee\x80\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv})
    EXPECT_EQ(find_invalid_utf8(good), std::nullopt) << printable(good);
  for (std::string_view bad :
       {"\x80"sv, "\xbf"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc2"sv, "\xc2\x7f"sv, "\xc2\xc0"sv, "\xe0\x9f\xbf"sv,
        "\xe1\x80"sv, "\xe1\x80\x7f"sv, "\xed\xa0\x80"sv, "\xf0\x8f\xbf\xbf"sv, "\xf1\x80\x80"sv, "\xf1\x80\x80\xc0"sv,
        "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv}) {
    EXPECT_EQ(find_invalid_utf8(bad), 0u) << printable(bad);
    EXPECT_EQ(find_invalid_utf8("0123456789é" + std::string(bad)), 12u) << printable(bad);
  }
}

TEST(TupleToString, ShowsWhatAPersonCanRead) {
  Tuple tuple{"say \"hi\" \\ é\n", BlobView{"\"\xe9"}, 1e300, IncompleteStamp{4}, -0x8000, Element::nested({})};
  EXPECT_EQ(to_string(tuple), "(\"say \\\"hi\\\" \\\\ é\\x0a\", b\"\\\"\\xe9\", 1e+300, stamp:?/4, -32768, ())");
}

}  // namespace
}  // namespace perdure::tuple
