// For tests: random tuples, made of few different values so that they often share a beginning, and of those that lie
// where an encoding changes its shape.
#pragma once

#include <rapidcheck.h>

#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "perdure/tuple_element.h"

namespace perdure::tuple::random {

using rc::Gen;
using rc::gen::map;

inline Gen<Element> any_blob() {
  return map(rc::gen::container<Bytes>(rc::gen::element('\0', '\x01', 'a', '\x7f', '\x80', '\xfe', '\xff')),
             [](Bytes bytes) { return Element(Blob{std::move(bytes)}); });
}

inline Gen<Element> any_text() {
  auto characters = rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      std::string(1, '\0'), "\x01", "a", "b", "\x7f", "é", "߿", "ࠀ", "\uffff", "\U00010000", "\U0010ffff"));
  return map(characters, [](const std::vector<std::string>& pieces) {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    return Element(std::move(text));
  });
}

/// Numbers around every power of 256, and random ones.
inline Gen<Element> any_integer() {
  return rc::gen::exec([] {
    Bytes magnitude;
    auto size = *rc::gen::weightedOneOf<std::size_t>(
        {{8, rc::gen::inRange<std::size_t>(0, 12)}, {1, rc::gen::inRange<std::size_t>(12, 256)}});
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        magnitude = Bytes(size, '\xff');
        break;
      case 1:
        if (size > 0) magnitude = '\x01' + Bytes(size - 1, '\0');
        break;
      default:
        magnitude = *rc::gen::container<Bytes>(size, rc::gen::arbitrary<char>());
    }
    if (!magnitude.empty() && *rc::gen::arbitrary<bool>())
      magnitude.back() = *rc::gen::element('\0', '\x01', '\x02', '\xfe');
    return Element(Integer::from_magnitude(*rc::gen::element(Sign::kNegative, Sign::kPositive), magnitude).value());
  });
}

inline Gen<Element> any_double() {
  using Limits = std::numeric_limits<double>;
  auto special = rc::gen::element(0.0, 1.0, 1.5, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::epsilon(),
                                  Limits::infinity(), Limits::quiet_NaN(), std::bit_cast<double>(0x7ff0000000000001),
                                  std::bit_cast<double>(0x000fffffffffffff));
  auto any_bits =
      map(rc::gen::arbitrary<std::uint64_t>(), [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
  return map(rc::gen::pair(rc::gen::oneOf(special, any_bits), rc::gen::arbitrary<bool>()),
             [](std::pair<double, bool> p) { return Element(p.second ? -p.first : p.first); });
}

inline Gen<Element> any_uuid() {
  auto bytes = rc::gen::container<std::array<std::uint8_t, 16>>(rc::gen::element<std::uint8_t>(0, 1, 0x7f, 0x80, 0xff));
  return map(bytes, [](const std::array<std::uint8_t, 16>& b) { return Element(Uuid{b}); });
}

inline Gen<Element> any_stamp() {
  auto version = rc::gen::element<std::uint64_t>(0, 1, 0xff, 0x100, ~0ull);
  auto order = rc::gen::element<std::uint32_t>(0, 1, 0xff, 0x100, ~0u);
  return map(rc::gen::pair(version, order),
             [](std::pair<std::uint64_t, std::uint32_t> p) { return Element(Stamp{Version{p.first}, p.second}); });
}

inline Gen<Tuple> any_tuple(int depth = 3);

inline Gen<Element> any_element(int depth) {
  auto flat =
      rc::gen::oneOf(rc::gen::just(Element()), any_blob(), any_text(), any_integer(), any_double(),
                     map(rc::gen::arbitrary<bool>(), [](bool b) { return Element(b); }), any_uuid(), any_stamp());
  if (depth == 0) return flat;
  return rc::gen::weightedOneOf<Element>(
      {{3, flat}, {1, map(any_tuple(depth - 1), [](Tuple tuple) { return Element::nested(std::move(tuple)); })}});
}

inline Gen<Tuple> any_tuple(int depth) {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 4),
                         [depth](std::size_t size) { return rc::gen::container<Tuple>(size, any_element(depth)); });
}

/// Random tuples, their beginnings, and tuples that go on differently after the same beginning.
inline std::vector<Tuple> related_tuples() {
  auto tuples = *rc::gen::container<std::vector<Tuple>>(8, any_tuple());
  for (std::size_t i = 0, size = tuples.size(); i < size; ++i) {
    Tuple shorter = tuples[i], longer = tuples[i];
    if (!shorter.empty()) shorter.pop_back();
    Tuple other = shorter;
    longer.push_back(*any_element(1));
    other.push_back(*any_element(1));
    tuples.insert(tuples.end(), {shorter, longer, other, Tuple{Element::nested(shorter), Element(1)}});
  }
  return tuples;
}

}  // namespace perdure::tuple::random
