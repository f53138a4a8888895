// Value::from_json: what it reads, what it refuses and how it says so.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/describe.h"
#include "perdure/value.h"

namespace perdure {
namespace {

using namespace std::string_literals;
using List = Value::List;
using Map = Value::Map;

constexpr auto kInt64Min = std::numeric_limits<std::int64_t>::min();
constexpr auto kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr auto kUint64Max = std::numeric_limits<std::uint64_t>::max();
constexpr double kDoubleMax = std::numeric_limits<double>::max();

struct Reading {
  std::string text;
  Value value;
};

void expect_readings(const std::vector<Reading>& readings) {
  for (const auto& [text, value] : readings) {
    auto read = Value::from_json(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_TRUE(*read == value) << text << " was read as " << describe_found(*read) << ", " << read->to_json();
    // What is read, written and read again is the same.
    EXPECT_TRUE(Value::from_json(read->to_json()) == *read) << text;
  }
}

struct Refusal {
  std::string text;
  std::string message;  ///< Without the "JSON at " that all begin with.
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const auto& [text, message] : refusals) {
    auto read = Value::from_json(text);
    ASSERT_FALSE(read) << text << " was read as " << read->to_json();
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(read.error().message, "JSON at " + message) << text;
  }
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (; times > 0; --times) text += part;
  return text;
}

/// Lists in each other, the innermost of which is the `depth`th and has `innermost` in it.
std::string nested(std::size_t depth, std::string_view innermost = "") {
  return repeated("[", depth) + std::string(innermost) + repeated("]", depth);
}

TEST(JsonParse, ReadsEachKind) {
  expect_readings({
      {"null", nullptr},
      {"true", true},
      {"false", false},
      {"7", 7},
      {"7.0", 7.0},
      {R"("text")", "text"},
      {R"({"$bytes":"Zm9v"})", Blob{"foo"}},
      {"[]", List{}},
      {"{}", Map{}},
      {"[1,[2,[]],{}]", List{1, List{2, List{}}, Map{}}},
      {R"({"b":{"c":[null]},"a":"x"})", Map{{"a", "x"}, {"b", Map{{"c", List{nullptr}}}}}},
      {R"({"":0})", Map{{"", 0}}},
      {" \t\r\n[ 1 , { \"a\" : 2 } ]\n", List{1, Map{{"a", 2}}}},
      {"[ ]", List{}},
      {"{\n}", Map{}},
  });
}

TEST(JsonParse, ReadsEveryEscape) {
  expect_readings({
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("a\u0041\u00e9\u20AC\uFFFFz")", "aA\u00e9\u20ac\uffffz"},
      {R"("\ud83d\ude00")", "\U0001f600"},
      {R"("\uD800\uDC00\udbff\udfff")", "\U00010000\U0010ffff"},
      {R"("\u0000")", "\0"s},
      {R"("\ud7ff\ue000")", "\ud7ff\ue000"},
      {"\"\u00e9\u20ac\U0001f600\x7f\"", "\u00e9\u20ac\U0001f600\x7f"},
      {R"({"\u0061":1})", Map{{"a", 1}}},
  });
}

TEST(JsonParse, IntegersAreExactUpToTheLastOneThatAValueHolds) {
  expect_readings({
      {"0", 0},
      {"-1", -1},
      {"9007199254740992", 9007199254740992},
      {"9007199254740993", 9007199254740993},
      {"-9007199254740993", -9007199254740993},
      {"9223372036854775807", kInt64Max},
      {"-9223372036854775808", kInt64Min},
      {"9223372036854775808", static_cast<std::uint64_t>(kInt64Max) + 1},
      {"18446744073709551615", kUint64Max},
      {"18446744073709551615", "18446744073709551615"},
      {R"("18446744073709551615")", "18446744073709551615"},
  });
  auto largest = from_value<std::uint64_t>(*Value::from_json("18446744073709551615"));
  ASSERT_TRUE(largest);
  EXPECT_EQ(*largest, kUint64Max);
}

TEST(JsonParse, OtherNumbersAreTheNearestDouble) {
  expect_readings({
      {"-0", -0.0},
      {"-0.0", -0.0},
      {"0.0", 0.0},
      {"0e1", 0.0},
      {"1.5", 1.5},
      {"-1.25e-2", -0.0125},
      {"1E+2", 100.0},
      {"1e0", 1.0},
      {"0.1", 0.1},
      {"18446744073709551616.0", 18446744073709551616.0},
      {"9007199254740993.0", 9007199254740992.0},  // Halfway, to the even one.
      {"9007199254740993.00000000000000000000000000000000000001", 9007199254740994.0},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
      {"1e308", 1e308},
      {"1.7976931348623157e308", kDoubleMax},
      {"1.79769313486231580793e308", kDoubleMax},
      {"5e-324", std::numeric_limits<double>::denorm_min()},
      {"1" + repeated("0", 400) + "e-400", 1.0},
      {"0." + repeated("0", 400) + "1e401", 1.0},
      {"0e" + repeated("9", 40), 0.0},
  });
}

TEST(JsonParse, WhatIsTooSmallForADoubleIsZeroWithItsSign) {
  expect_readings({
      {"2e-324", 0.0},
      {"-2e-324", -0.0},
      {"1e-400", 0.0},
      {"123456.789e-999", 0.0},
      {"1E-" + repeated("9", 40), 0.0},
      {"0." + repeated("0", 400) + "1", 0.0},
      {"0." + repeated("0", 400) + "1e+20", 0.0},
      {"1" + repeated("0", 400) + "e-999", 0.0},
      {"-0." + repeated("0", 400) + "1", -0.0},
  });
}

TEST(JsonParse, NumbersThatNoValueHoldsAreRefused) {
  const std::string integer =
      "line 1, column 1: expected an integer from -9223372036854775808 to 18446744073709551615, found ";
  const std::string advice = "; write it as text, or with a point or an exponent as a double";
  const std::string range = "expected a number that a double can hold, up to 1.7976931348623157e308, found ";
  expect_refusals({
      {"18446744073709551616", integer + "18446744073709551616" + advice},
      {"-9223372036854775809", integer + "-9223372036854775809" + advice},
      {repeated("7", 1000), integer + repeated("7", 40) + "... (1000 bytes)" + advice},
      {"1e309", "line 1, column 1: " + range + "1e309"},
      {"[0,-1E+309]", "line 1, column 4: " + range + "-1E+309"},
      {"1.7976931348623159e308", "line 1, column 1: " + range + "1.7976931348623159e308"},
      {"1e99999999999999999999", "line 1, column 1: " + range + "1e99999999999999999999"},
      {"0.1e310", "line 1, column 1: " + range + "0.1e310"},
      {"1" + repeated("0", 400) + ".0", "line 1, column 1: " + range + "1" + repeated("0", 39) + "... (403 bytes)"},
      {"1" + repeated("0", 400) + "e-20", "line 1, column 1: " + range + "1" + repeated("0", 39) + "... (405 bytes)"},
  });
}

TEST(JsonParse, MalformedNumbersAreRefused) {
  expect_refusals({
      {"01", "line 1, column 1: expected a number without leading zeros, found 01"},
      {"[-00.5]", "line 1, column 2: expected a number without leading zeros, found -00"},
      {"+1", "line 1, column 1: expected a value, found '+'"},
      {".5", "line 1, column 1: expected a value, found '.'"},
      {"-", "line 1, column 2: expected a digit, found the end of the text"},
      {"-a", "line 1, column 2: expected a digit, found 'a'"},
      {"1.", "line 1, column 3: expected a digit behind the point, found the end of the text"},
      {"[1.e5]", "line 1, column 4: expected a digit behind the point, found 'e5'"},
      {"1e", "line 1, column 3: expected a digit of the exponent, found the end of the text"},
      {"1e+]", "line 1, column 4: expected a digit of the exponent, found ']'"},
      {"0x10", "line 1, column 2: expected the end of the text, found 'x10'"},
      {"1_000", "line 1, column 2: expected the end of the text, found '_000'"},
      {"NaN", "line 1, column 1: expected a value, found 'NaN'"},
      {"nan", "line 1, column 1: expected a value, found 'nan'"},
      {"Infinity", "line 1, column 1: expected a value, found 'Infinity'"},
      {"[-Infinity]", "line 1, column 3: expected a digit, found 'Infinity'"},
      {"-inf", "line 1, column 2: expected a digit, found 'inf'"},
  });
}

TEST(JsonParse, MalformedStringsAreRefused) {
  expect_refusals({
      {R"("a)", "line 1, column 3: expected a double quote to end a string, found the end of the text"},
      {R"("a\")", "line 1, column 5: expected a double quote to end a string, found the end of the text"},
      {"\"a\nb\"", "line 1, column 3: expected control characters of a string as escapes, found '\\x0a'"},
      {"\"\0\""s, "line 1, column 2: expected control characters of a string as escapes, found '\\x00'"},
      {"{\"\x1f\":1}", "line 1, column 3: expected control characters of a string as escapes, found '\\x1f'"},
      {R"("\x41")", R"(line 1, column 3: expected one of "\/bfnrtu behind a backslash, found 'x41')"},
      {R"("\)", R"(line 1, column 3: expected one of "\/bfnrtu behind a backslash, found the end of the text)"},
      {R"("\u12g4")", R"(line 1, column 6: expected four hexadecimal digits behind \u, found 'g4')"},
      {R"("\u123")", R"(line 1, column 7: expected four hexadecimal digits behind \u, found '"')"},
      {R"("\u-001")", R"(line 1, column 4: expected four hexadecimal digits behind \u, found '-')"},
      {R"("\u00)", R"(line 1, column 6: expected four hexadecimal digits behind \u, found the end of the text)"},
      {R"(["a\ud83d"])", R"(line 1, column 4: expected a pair of surrogates, found \ud83d alone)"},
      {R"("\uD83Dx")", R"(line 1, column 2: expected a pair of surrogates, found \uD83D alone)"},
      {R"("\ud83d\n")", R"(line 1, column 2: expected a pair of surrogates, found \ud83d alone)"},
      {R"("\ud83d\u0041")", R"(line 1, column 2: expected a pair of surrogates, found \ud83d alone)"},
      {R"("\ud83d\ud83d\ude00")", R"(line 1, column 2: expected a pair of surrogates, found \ud83d alone)"},
      {R"("\ude00\ud83d")", R"(line 1, column 2: expected a pair of surrogates, found \ude00 alone)"},
      {R"("\ud83d\u00")", R"(line 1, column 12: expected four hexadecimal digits behind \u, found '"')"},
      {"'a'", "line 1, column 1: expected a value, found '''"},
  });
}

TEST(JsonParse, WhatIsNotUtf8IsRefused) {
  expect_refusals({
      {"\"a\xff\"", "line 1, column 3: expected UTF-8, found '\\xff'"},
      {"\"\xc3\"", "line 1, column 2: expected UTF-8, found '\\xc3'"},
      {"\"\xc3\\n\xa9\"", "line 1, column 2: expected UTF-8, found '\\xc3'"},
      {"\"\\n\xa9\"", "line 1, column 4: expected UTF-8, found '\\xa9'"},
      {"\"\xc0\x80\"", "line 1, column 2: expected UTF-8, found '\\xc0'"},
      {"\"\xed\xa0\x80\"", "line 1, column 2: expected UTF-8, found '\\xed'"},
      {"\"\xf4\x90\x80\x80\"", "line 1, column 2: expected UTF-8, found '\\xf4'"},
      {"{\"\xff\":1}", "line 1, column 3: expected UTF-8, found '\\xff'"},
      {"\xff", "line 1, column 1: expected a value, found '\\xff'"},
      {"\xef\xbb\xbf{}", "line 1, column 1: expected a value, found a byte order mark"},
      {"\xff\xfe[\0]\0"s, "line 1, column 1: expected a value, found '\\xff'"},
  });
}

TEST(JsonParse, MalformedListsAndMapsAreRefused) {
  expect_refusals({
      {"", "line 1, column 1: expected a value, found the end of the text"},
      {" \n ", "line 2, column 2: expected a value, found the end of the text"},
      {"[", "line 1, column 2: expected a value, found the end of the text"},
      {"[1", "line 1, column 3: expected ',' or ']', found the end of the text"},
      {"[1 2]", "line 1, column 4: expected ',' or ']', found '2'"},
      {"[1}", "line 1, column 3: expected ',' or ']', found '}'"},
      {"[1,]", "line 1, column 4: expected a value, found ']'"},
      {"[,1]", "line 1, column 2: expected a value, found ','"},
      {"{", "line 1, column 2: expected a key in double quotes or '}', found the end of the text"},
      {"{a:1}", "line 1, column 2: expected a key in double quotes or '}', found 'a'"},
      {"{1:1}", "line 1, column 2: expected a key in double quotes or '}', found '1'"},
      {"{,}", "line 1, column 2: expected a key in double quotes or '}', found ','"},
      {R"({"a":1,})", "line 1, column 8: expected a key in double quotes, found '}'"},
      {R"({"a" 1})", "line 1, column 6: expected ':' behind a key, found '1'"},
      {R"({"a"})", "line 1, column 5: expected ':' behind a key, found '}'"},
      {R"({"a":})", "line 1, column 6: expected a value, found '}'"},
      {R"({"a":1)", "line 1, column 7: expected ',' or '}', found the end of the text"},
      {R"({"a":1 "b":2})", "line 1, column 8: expected ',' or '}', found '\"'"},
      {R"({"a":1])", "line 1, column 7: expected ',' or '}', found ']'"},
      {"]", "line 1, column 1: expected a value, found ']'"},
  });
}

TEST(JsonParse, WhatIsNotJsonIsRefused) {
  expect_refusals({
      {"1 2", "line 1, column 3: expected the end of the text, found '2'"},
      {"{}}", "line 1, column 3: expected the end of the text, found '}'"},
      {"null\0"s, "line 1, column 5: expected the end of the text, found '\\x00'"},
      {"\0"s, "line 1, column 1: expected a value, found '\\x00'"},
      {"nul", "line 1, column 1: expected a value, found 'nul'"},
      {"nullx", "line 1, column 5: expected the end of the text, found 'x'"},
      {"True", "line 1, column 1: expected a value, found 'True'"},
      {"tru", "line 1, column 1: expected a value, found 'tru'"},
      {"fals", "line 1, column 1: expected a value, found 'fals'"},
      {"undefined", "line 1, column 1: expected a value, found 'undefined'"},
      {repeated("x", 100), "line 1, column 1: expected a value, found '" + repeated("x", 40) + "... (100 bytes)'"},
      {"// one\n1", "line 1, column 1: expected a value, found a comment"},
      {"[1 /* one */]", "line 1, column 4: expected ',' or ']', found a comment"},
      {"1 # one", "line 1, column 3: expected the end of the text, found '#'"},
      {"\\u0031", "line 1, column 1: expected a value, found a backslash"},
      {"\f1", "line 1, column 1: expected a value, found '\\x0c'"},
      {"\u00a01", "line 1, column 1: expected a value, found '\\xc2\\xa0'"},
      {"1\xef\xbb\xbf", "line 1, column 2: expected the end of the text, found a byte order mark"},
  });
}

TEST(JsonParse, AKeyThatComesTwiceIsRefusedWhereItDoes) {
  expect_refusals({
      {R"({"a":1,"a":1})", R"(line 1, column 8: expected each key of a map once, found "a" again)"},
      {R"({"b":1,"a":2, "b":3})", R"(line 1, column 15: expected each key of a map once, found "b" again)"},
      {R"({"a":1,"\u0061":2})", R"(line 1, column 8: expected each key of a map once, found "a" again)"},
      {R"([{"":1,"":2}])", R"(line 1, column 8: expected each key of a map once, found "" again)"},
      {R"({"$bytes":"","$bytes":""})", R"(line 1, column 14: expected each key of a map once, found "$bytes" again)"},
  });
  expect_readings({{R"([{"a":1},{"a":{"a":1}}])", List{Map{{"a", 1}}, Map{{"a", Map{{"a", 1}}}}}}});
}

TEST(JsonParse, LinesAreCountedAndColumnsAreCharacters) {
  expect_refusals({
      {"{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8: expected a value, found 'x'"},
      {"[1,\r\n2,\r\nx]", "line 3, column 1: expected a value, found 'x'"},
      {"[\"\u00e9\u20ac\U0001f600\", x]", "line 1, column 9: expected a value, found 'x'"},
      {"\n\n", "line 3, column 1: expected a value, found the end of the text"},
  });
}

TEST(JsonParse, BytesAreReadOnlyAsTheyAreWritten) {
  expect_readings({
      {R"({"$bytes":""})", Blob{}},
      {R"({ "$bytes" : "AAE=" })", Blob{"\0\1"s}},
      {R"({"\u0024bytes":"+\/8="})", Blob{"\xfb\xff"}},
      {R"({"$bytes":"Zm9v","n":1})", Map{{"$bytes", "Zm9v"}, {"n", 1}}},
      {R"({"a":1,"$bytes":7})", Map{{"$bytes", 7}, {"a", 1}}},
      {R"({"bytes":"!"})", Map{{"bytes", "!"}}},
  });
  const std::string expected =
      "line 1, column 11: expected base64 with padding as the only entry \"$bytes\" of a map, found ";
  for (std::string_view wrong :
       {"Zg", "Zg=", "Zg===", "=", "====", "Zh==", "Zm9=", "Z=9v", "Zg==Zg==", "Zm9-", "Zm 9", "Zm9v\\n"}) {
    auto read = Value::from_json(R"({"$bytes":")" + std::string(wrong) + "\"}");
    ASSERT_FALSE(read) << wrong;
    EXPECT_TRUE(read.error().message.starts_with("JSON at " + expected + "text \"")) << read.error().message;
  }
  expect_refusals({
      {R"({"$bytes":"Zm-_"})", expected + "text \"Zm-_\""},
      {R"({"$bytes":7})", expected + "integer 7"},
      {R"({"$bytes":null})", expected + "null"},
      {R"({"$bytes":{"$bytes":""}})", expected + "0 bytes"},
  });
}

TEST(JsonParse, NestingIsBounded) {
  const std::string message = "expected lists and maps nested at most 64 deep, found one more; make it flatter";
  auto deepest = Value::from_json(nested(64));
  ASSERT_TRUE(deepest);
  EXPECT_TRUE(deepest->check("it"));
  EXPECT_TRUE(Value::from_json(repeated(R"({"a":)", 64) + '1' + repeated("}", 64)));
  EXPECT_TRUE(Value::from_json('[' + repeated("[],{},", 1000) + "0]")) << "what is side by side is not nested";
  expect_refusals({
      {nested(65), "line 1, column 65: " + message},
      {nested(64, "{}"), "line 1, column 65: " + message},
      {nested(64, R"(0, {"a":1})"), "line 1, column 68: " + message},
      {repeated(R"({"a":)", 1'000'000), "line 1, column 321: " + message},
      {repeated("[", 1'000'000), "line 1, column 65: " + message},
      {repeated("[\n", 1'000'000), "line 65, column 1: " + message},
  });
}

TEST(JsonParse, BytesAreNoLevelOfNesting) {
  const std::string message = "expected lists and maps nested at most 64 deep, found one more; make it flatter";
  auto deepest = Value::from_json(nested(64, R"({ "$bytes":"/w==" })"));
  ASSERT_TRUE(deepest) << deepest.error().message;
  EXPECT_TRUE(deepest->check("it"));
  EXPECT_TRUE(Value::from_json(deepest->to_json()) == *deepest);
  EXPECT_EQ(Value::from_json(R"({"$bytes":"Zm9v"})", {.depth_max = 0}), Value(Blob{"foo"}));
  expect_refusals({
      {nested(64, R"({"$bytes":"","a":1})"), "line 1, column 65: " + message},
      {nested(64, R"({"$bytes":[]})"), "line 1, column 75: " + message},
      {nested(64, R"({"$bytes":{"$bytes":""}})"), "line 1, column 75: " + message},
      {nested(64, R"({"$bytes":""])"), "line 1, column 77: expected ',' or '}', found ']'"},
  });
}

TEST(JsonParse, TheBoundOfNestingCanBeLoweredOnly) {
  EXPECT_TRUE(Value::from_json("[[1]]", {.depth_max = 2}));
  auto deeper = Value::from_json("[[[1]]]", {.depth_max = 2});
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().message,
            "JSON at line 1, column 3: expected lists and maps nested at most 2 deep, found one more; make it flatter");
  EXPECT_TRUE(Value::from_json("1", {.depth_max = 0}));
  EXPECT_FALSE(Value::from_json("[]", {.depth_max = 0}));
  EXPECT_FALSE(Value::from_json("{}", {.depth_max = 0}));
  EXPECT_TRUE(Value::from_json(nested(64), {.depth_max = 1000}));
  EXPECT_FALSE(Value::from_json(nested(65), {.depth_max = 1000}));
}

TEST(JsonParse, WhatJsonHasNoFormForComesBackAsDocumented) {
  auto again = [](const Value& value) { return *Value::from_json(value.to_json()); };
  EXPECT_EQ(again(std::nan("")), Value());
  EXPECT_EQ(again(std::numeric_limits<double>::infinity()), Value());
  EXPECT_EQ(again("a\xff"), Value("a\ufffd"));
  EXPECT_EQ(again(Map{{"$bytes", "Zm9v"}}), Value(Blob{"foo"}));
  EXPECT_FALSE(Value::from_json(Value(Map{{"$bytes", 1}}).to_json()));
}

}  // namespace
}  // namespace perdure
