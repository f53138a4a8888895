// What decoding costs in memory, counted by the operators new of this binary.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "perdure/value.h"

namespace {

std::size_t allocated_bytes = 0;  // Since the start; the tests of this binary have one thread.

}  // namespace

// Once it has inlined only one of these, g++ takes the other for a mistake.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace perdure {
namespace {

std::size_t cost_of_decoding(BytesView encoded) {
  std::size_t before = allocated_bytes;
  EXPECT_FALSE(Value::decode(encoded));
  return allocated_bytes - before;
}

TEST(ValueMemory, CountsThatLieCostNoMoreThanTheInputIsLong) {
  // Lists in lists, each with a count that the rest of the input could just hold.
  Bytes lists;
  for (int i = 0; i < 60; ++i) lists += "\x07\x80\x80\x3c";  // 983,040 items.
  lists += Bytes(1'000'000, '\x09');
  EXPECT_LT(cost_of_decoding(lists), lists.size());
  EXPECT_LT(cost_of_decoding("\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1000u);
  EXPECT_LT(cost_of_decoding("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1000u);
  EXPECT_LT(cost_of_decoding("\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1000u);
}

TEST(ValueMemory, JsonNestedAMillionDeepCostsNoMoreThanItsMessage) {
  for (std::string_view open : {"[", "{\"\":", " [ ", "[{\"$bytes\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += open;
    std::size_t before = allocated_bytes;
    EXPECT_FALSE(Value::from_json(text));
    // The entries of 64 maps, at the most.
    EXPECT_LT(allocated_bytes - before, 64 * 200 + 1000u) << open;
  }
}

TEST(ValueMemory, JsonCostsNoMoreThanItIsDocumentedTo) {
  std::string digits = "[0";
  for (int i = 0; i < 600'000; ++i) digits += ",0";
  std::size_t before = allocated_bytes;
  EXPECT_TRUE(Value::from_json(digits + ']'));
  // All that a list had on its way; at one time there are no more than its last two sizes.
  EXPECT_LT(allocated_bytes - before, 125 * digits.size());
}

TEST(ValueMemory, EncodingASmallValueAllocatesAtMostOnce) {
  Value value = Value::Map{{"count", 7}, {"name", "a name that is too long for its string"}};
  std::size_t before = allocated_bytes;
  Bytes encoded = value.encode();
  EXPECT_LE(allocated_bytes - before, encoded.size() + 1);
}

}  // namespace
}  // namespace perdure
