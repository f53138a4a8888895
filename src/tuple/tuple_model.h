// For tests: what order tuples have, written down once more from the prose of docs/internals/tuple_format.md and
// without any of the code under test.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "perdure/tuple_element.h"

namespace perdure::tuple::model {

inline int sign_of(auto order) {
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

inline int compare(const Tuple& a, const Tuple& b);

inline int compare_value(Null, Null) {
  return 0;
}

inline int compare_value(const Blob& a, const Blob& b) {
  auto unsigned_less = [](char x, char y) { return static_cast<unsigned char>(x) < static_cast<unsigned char>(y); };
  auto less = [&](const Bytes& x, const Bytes& y) {
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), unsigned_less);
  };
  return less(a.bytes, b.bytes) ? -1 : less(b.bytes, a.bytes) ? 1 : 0;
}

/// The code points of text that is known to be UTF-8.
inline std::u32string code_points(const std::string& text) {
  std::u32string points;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      points.push_back(byte);
    else if (byte >= 0xc0)
      points.push_back(byte >= 0xf0 ? byte & 7u : byte >= 0xe0 ? byte & 15u : byte & 31u);
    else
      points.back() = points.back() << 6 | (byte & 63u);
  }
  return points;
}

inline int compare_value(const std::string& a, const std::string& b) {
  return sign_of(code_points(a).compare(code_points(b)));
}

inline int compare_value(const Tuple& a, const Tuple& b) {
  return compare(a, b);
}

/// All 255 digits to the base 256, each with the sign of the number: such lists compare as the numbers do.
inline std::vector<int> signed_digits(const Integer& integer) {
  std::vector<int> digits(Integer::kMaxMagnitude - integer.magnitude().size(), 0);
  int sign = integer.sign() == Sign::kNegative ? -1 : 1;
  for (char c : integer.magnitude()) digits.push_back(sign * static_cast<unsigned char>(c));
  return digits;
}

inline int compare_value(const Integer& a, const Integer& b) {
  auto x = signed_digits(a), y = signed_digits(b);
  return x < y ? -1 : y < x ? 1 : 0;
}

inline int compare_value(double a, double b) {
  // NaNs are outside of all numbers, on the side of their sign, and further out the larger their payload.
  auto outside = [](double x) { return std::isnan(x) ? (std::signbit(x) ? -1 : 1) : 0; };
  if (outside(a) != outside(b)) return sign_of(outside(a) - outside(b));
  if (outside(a) != 0) {
    auto payload = [](double x) { return std::bit_cast<std::uint64_t>(x) << 12; };
    int further = payload(a) < payload(b) ? -1 : payload(a) > payload(b) ? 1 : 0;
    return outside(a) * further;
  }
  if (a != b) return a < b ? -1 : 1;
  return std::signbit(b) - std::signbit(a);  // Only the zeros are equal without being the same.
}

inline int compare_value(bool a, bool b) {
  return a - b;
}

inline int compare_value(const Uuid& a, const Uuid& b) {
  return a.bytes < b.bytes ? -1 : b.bytes < a.bytes ? 1 : 0;
}

inline int compare_value(const Stamp& a, const Stamp& b) {
  std::pair x(a.version.number, a.order), y(b.version.number, b.order);
  return x < y ? -1 : y < x ? 1 : 0;
}

inline int compare_value(IncompleteStamp, IncompleteStamp) {
  return 0;
}

inline int rank(const Element& element) {
  static const std::vector<Kind> kOrder = {Kind::kNull,   Kind::kBytes, Kind::kText, Kind::kTuple, Kind::kInteger,
                                           Kind::kDouble, Kind::kBool,  Kind::kUuid, Kind::kStamp};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), element.kind()) - kOrder.begin());
}

inline int compare(const Tuple& a, const Tuple& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (rank(a[i]) != rank(b[i])) return rank(a[i]) < rank(b[i]) ? -1 : 1;
    auto same_type = [&](const auto& x) {
      return compare_value(x, std::get<std::remove_cvref_t<decltype(x)>>(b[i].value));
    };
    if (int order = std::visit(same_type, a[i].value)) return order;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}  // namespace perdure::tuple::model
