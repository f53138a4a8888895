#include <algorithm>
#include <array>
#include <bit>

#include "base/assert.h"
#include "base/endian.h"
#include "perdure/tuple_element.h"

namespace perdure::tuple {
namespace {

constexpr std::uint64_t kInt64MinMagnitude = std::uint64_t{1} << 63;

BytesView without_leading_zeros(BytesView big_endian) {
  return big_endian.substr(std::min(big_endian.find_first_not_of('\0'), big_endian.size()));
}

/// `big_endian` has at most eight bytes.
std::uint64_t load_magnitude(BytesView big_endian) {
  std::uint64_t magnitude = 0;
  for (char byte : big_endian) magnitude = magnitude << 8 | static_cast<unsigned char>(byte);
  return magnitude;
}

}  // namespace

Integer::Integer(Sign sign, std::uint64_t magnitude) : sign_(sign) {
  char bytes[sizeof magnitude];
  store_big(bytes, magnitude);
  magnitude_ = without_leading_zeros({bytes, sizeof bytes});
}

Result<Integer> Integer::from_magnitude(Sign sign, BytesView big_endian) {
  BytesView significant = without_leading_zeros(big_endian);
  if (significant.size() > kMaxMagnitude)
    return fail(ErrorCode::kTooLarge, "an integer of " + std::to_string(significant.size()) +
                                          " bytes; a tuple holds at most " + std::to_string(kMaxMagnitude));
  Integer integer;
  integer.sign_ = significant.empty() ? Sign::kPositive : sign;
  integer.magnitude_ = significant;
  return integer;
}

std::optional<std::int64_t> Integer::to_int64() const {
  if (magnitude_.size() > sizeof(std::int64_t)) return std::nullopt;
  std::uint64_t magnitude = load_magnitude(magnitude_);
  if (sign_ == Sign::kNegative && magnitude <= kInt64MinMagnitude) return static_cast<std::int64_t>(0 - magnitude);
  if (sign_ == Sign::kPositive && magnitude < kInt64MinMagnitude) return static_cast<std::int64_t>(magnitude);
  return std::nullopt;
}

std::optional<std::uint64_t> Integer::to_uint64() const {
  if (sign_ == Sign::kNegative || magnitude_.size() > sizeof(std::uint64_t)) return std::nullopt;
  return load_magnitude(magnitude_);
}

std::strong_ordering Integer::operator<=>(const Integer& other) const {
  if (sign_ != other.sign_) return sign_ <=> other.sign_;
  auto order = magnitude_.size() <=> other.magnitude_.size();
  if (order == 0) order = magnitude_ <=> other.magnitude_;
  return sign_ == Sign::kNegative ? 0 <=> order : order;
}

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "null",      "bytes",  "text",    "a nested tuple",      "an integer",          "a double",
      "a boolean", "a uuid", "a stamp", "an incomplete stamp", "the end of the tuple"};
  auto index = static_cast<std::size_t>(kind);
  check(index < kNames.size(), "an element kind outside of the table");
  return kNames[index];
}

Element Element::nested(Tuple elements) {
  Element element;
  element.value = std::move(elements);
  return element;
}

bool Element::operator==(const Element& other) const {
  const double* number = std::get_if<double>(&value);
  const double* other_number = std::get_if<double>(&other.value);
  if (number && other_number)
    return std::bit_cast<std::uint64_t>(*number) == std::bit_cast<std::uint64_t>(*other_number);
  return value == other.value;
}

}  // namespace perdure::tuple
