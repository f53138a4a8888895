// Properties of random tuples and of random bytes.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "perdure/tuple.h"
#include "tuple/tuple_generators.h"
#include "tuple/tuple_model.h"

namespace perdure::tuple {
namespace {

using random::any_tuple;
using random::related_tuples;

TEST(TupleOrder, BytesSortAsTheTuplesDo) {
  EXPECT_TRUE(rc::check([] {
    auto tuples = related_tuples();
    std::vector<Bytes> keys;
    for (const Tuple& tuple : tuples) keys.push_back(pack(tuple).value());
    for (std::size_t i = 0; i < tuples.size(); ++i)
      for (std::size_t j = 0; j < tuples.size(); ++j)
        if (model::sign_of(keys[i].compare(keys[j])) != model::compare(tuples[i], tuples[j]))
          RC_FAIL(to_string(tuples[i]) + " against " + to_string(tuples[j]));
  }));
}

/// 1, and for every size the numbers around its smallest, its middle and its largest, in ascending order.
std::vector<Bytes> boundary_magnitudes() {
  std::vector<Bytes> ascending = {"\x01", "\x02", "\x7f", "\x80", "\xfe", "\xff"};
  for (std::size_t size = 2; size <= Integer::kMaxMagnitude; ++size) {
    ascending.push_back("\x01" + Bytes(size - 1, '\0'));
    ascending.push_back("\x01" + Bytes(size - 2, '\0') + "\x01");
    ascending.push_back("\x7f" + Bytes(size - 1, '\xff'));
    ascending.push_back("\x80" + Bytes(size - 1, '\0'));
    ascending.push_back(Bytes(size - 1, '\xff') + "\xfe");
    ascending.push_back(Bytes(size, '\xff'));
  }
  return ascending;
}

TEST(TupleOrder, IntegersSortByValueAcrossSizes) {
  std::vector<Integer> ascending = {Integer(0)};
  for (const Bytes& magnitude : boundary_magnitudes()) {
    ascending.insert(ascending.begin(), Integer::from_magnitude(Sign::kNegative, magnitude).value());
    ascending.push_back(Integer::from_magnitude(Sign::kPositive, magnitude).value());
  }
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    EXPECT_EQ(unpack_as<Integer>(pack(ascending[i])).value(), std::tuple(ascending[i]));
    if (i == 0) continue;
    ASSERT_LT(ascending[i - 1], ascending[i]) << i;
    ASSERT_LT(pack(ascending[i - 1]), pack(ascending[i])) << i;
  }
}

TEST(TupleOrder, MachineIntegersAndLargeOnesAreOneType) {
  EXPECT_TRUE(rc::check([](std::int64_t value, std::uint64_t other) {
    RC_ASSERT(pack(value) == pack(Integer(value)));
    RC_ASSERT(pack(other) == pack(Integer(other)));
    RC_ASSERT((pack(value) < pack(other)) == std::cmp_less(value, other));
    RC_ASSERT((Integer(value) < Integer(other)) == std::cmp_less(value, other));
  }));
}

TEST(TupleRoundTrip, UnpackGivesBackEveryTuple) {
  EXPECT_TRUE(rc::check([] {
    Tuple tuple = *any_tuple();
    Bytes packed = pack(tuple).value();
    auto unpacked = unpack(packed);
    if (!unpacked) RC_FAIL(to_string(tuple) + ": " + to_string(unpacked.error()));
    RC_ASSERT(*unpacked == tuple);
    RC_ASSERT(pack(*unpacked).value() == packed);
  }));
}

TEST(TupleRoundTrip, DamagedBytesAreRefusedOrMeanAnotherTuple) {
  EXPECT_TRUE(rc::check([] {
    Tuple tuple = *any_tuple();
    const Bytes intact = pack(tuple).value();
    for (int round = 0; round < 50; ++round) {
      Bytes damaged = intact;
      auto at = *rc::gen::inRange<std::size_t>(0, damaged.size() + 1);
      char byte = *rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::element('\0', '\xff', '\x05', '\x1d', '\x14'));
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          damaged.resize(at);
          break;
        case 1:
          damaged.insert(at, 1, byte);
          break;
        case 2:
          damaged.erase(at, 1);
          break;
        default:
          if (at < damaged.size()) damaged[at] = byte;
      }
      auto unpacked = unpack(damaged);
      if (unpacked) RC_ASSERT(pack(*unpacked).value() == damaged);
      if (unpacked && damaged != intact) RC_ASSERT(*unpacked != tuple);
    }
  }));
}

TEST(TupleRoundTrip, RandomBytesAreRefusedOrCanonical) {
  EXPECT_TRUE(rc::check([] {
    auto codes =
        rc::gen::element('\0', '\xff', '\x01', '\x02', '\x05', '\x0b', '\x13', '\x14', '\x15', '\x1d', '\x26', '\x40');
    for (int round = 0; round < 100; ++round) {
      auto bytes = *rc::gen::container<Bytes>(*rc::gen::inRange(0, 16), codes);
      auto unpacked = unpack(bytes);
      if (unpacked) RC_ASSERT(pack(*unpacked).value() == bytes);
    }
  }));
}

TEST(TupleRange, ContainsExactlyTheExtensions) {
  EXPECT_TRUE(rc::check([] {
    auto tuples = related_tuples();
    for (const Tuple& base : tuples) {
      KeyRange range = extensions(pack(base).value());
      for (const Tuple& tuple : tuples) {
        bool extends = tuple.size() > base.size() && std::equal(base.begin(), base.end(), tuple.begin());
        if (range.contains(pack(tuple).value()) != extends) RC_FAIL(to_string(base) + " and " + to_string(tuple));
      }
    }
  }));
}

}  // namespace
}  // namespace perdure::tuple
