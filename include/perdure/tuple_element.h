// The values that a tuple may hold.
//
// Code that knows its key's shape never needs an Element: tuple::pack() and tuple::Reader take and give plain C++
// values. Element and Tuple are for code that does not know it: tools, bindings, anything that shows a key to a person.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/uuid.h"
#include "perdure/version.h"

namespace perdure::tuple {

/// How deep tuples may be nested in a packed tuple, so that reading one cannot exhaust the stack.
inline constexpr std::size_t kMaxDepth = 64;

/// The element that is nothing, and sorts before everything.
struct Null {
  bool operator==(const Null&) const = default;
};
// Lower case, since it is written like a value: pack("a", null).  NOLINTNEXTLINE(readability-identifier-naming)
inline constexpr Null null{};

/// Bytes that are not text. A wrapper, because std::string and std::string_view stand for text in a tuple.
struct Blob {
  Bytes bytes;
  bool operator==(const Blob&) const = default;
};

/// The same without a copy. Does not own what it points to.
struct BlobView {
  BytesView bytes;
  bool operator==(const BlobView&) const = default;
};

/// Stands for the stamp of the commit that will write the key; see tuple::pack_stamped(). `order` is the order of the
/// stamp and tells apart the rows that one transaction stamps.
struct IncompleteStamp {
  std::uint32_t order = 0;
  bool operator==(const IncompleteStamp&) const = default;
};

/// Anything that reads as a string is text in a tuple.
template <class T>
concept TextLike = std::convertible_to<const T&, std::string_view>;

/// The integer types of C++ of up to 64 bits, but neither bool, which is an element type of its own, nor characters, of
/// which nobody can tell whether the number or the letter is meant.
template <class T>
concept IntegerLike =
    std::integral<T> && sizeof(T) <= sizeof(std::uint64_t) && !std::same_as<T, bool> && !std::same_as<T, char> &&
    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// float and double; both are stored as a double, which holds every float exactly.
template <class T>
concept DoubleLike = std::same_as<T, double> || std::same_as<T, float>;

enum class Sign { kNegative, kPositive };

/// An integer of up to kMaxMagnitude bytes, about 614 decimal digits. Zero is positive.
class PERDURE_EXPORT Integer {
 public:
  static constexpr std::size_t kMaxMagnitude = 255;

  Integer() = default;
  template <IntegerLike T>
  Integer(T value)  // NOLINT(google-explicit-constructor): every integer is an Integer.
      : Integer(value < 0 ? Sign::kNegative : Sign::kPositive,
                value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value)) {}

  /// From the bytes of the absolute value, most significant first; leading zeros do not matter.
  /// Errors: too_large if more than kMaxMagnitude bytes remain without them.
  static Result<Integer> from_magnitude(Sign sign, BytesView big_endian);

  Sign sign() const { return sign_; }
  /// The absolute value, most significant byte first, without leading zeros: empty for zero. Lives as long as this.
  BytesView magnitude() const { return magnitude_; }

  /// The value in a machine integer, or nothing if it does not fit.
  std::optional<std::int64_t> to_int64() const;
  std::optional<std::uint64_t> to_uint64() const;

  bool operator==(const Integer&) const = default;
  std::strong_ordering operator<=>(const Integer& other) const;

 private:
  Integer(Sign sign, std::uint64_t magnitude);

  Sign sign_ = Sign::kPositive;
  Bytes magnitude_;  // Never starts with a zero byte, so that equal numbers have equal fields.
};

/// What an element is, in the order in which the types sort.
enum class Kind {
  kNull,
  kBytes,
  kText,
  kTuple,
  kInteger,
  kDouble,
  kBool,
  kUuid,
  kStamp,
  kIncompleteStamp,  ///< Only before the commit: no packed tuple that is complete holds one.
  kEnd,              ///< No element: the end of the tuple.
};

/// "an integer", as it stands in messages.
PERDURE_EXPORT std::string_view name_of(Kind kind);

struct Element;
using Tuple = std::vector<Element>;

/// One value of any kind. Converts from everything that tuple::pack() takes, so that `Tuple{"events", 7, null}` works;
/// only a nested tuple has to be spelled out, `Element::nested({1, 2})`, because a Tuple in the place of an Element may
/// just as well mean its elements.
struct PERDURE_EXPORT Element {
  using Value =
      std::variant<Null, Blob, std::string, Tuple, Integer, double, bool, Uuid, Stamp, IncompleteStamp>;  // As Kind.

  Value value;

  Element() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  Element(Null) {}
  Element(Blob blob) : value(std::move(blob)) {}
  Element(BlobView blob) : value(Blob{Bytes(blob.bytes)}) {}
  Element(std::string text) : value(std::move(text)) {}
  template <TextLike T>
  Element(const T& text) : value(std::string(std::string_view(text))) {}
  Element(Integer integer) : value(std::move(integer)) {}
  template <IntegerLike T>
  Element(T integer) : value(Integer(integer)) {}
  template <DoubleLike T>
  Element(T number) : value(static_cast<double>(number)) {}
  template <std::same_as<bool> T>
  Element(T truth) : value(truth) {}
  Element(const Uuid& uuid) : value(uuid) {}
  Element(Stamp stamp) : value(stamp) {}
  Element(IncompleteStamp hole) : value(hole) {}
  // NOLINTEND(google-explicit-constructor)
  static Element nested(Tuple elements);

  Kind kind() const { return static_cast<Kind>(value.index()); }

  /// Equal exactly if they pack to the same bytes: 0.0 and -0.0 differ, a NaN equals itself.
  bool operator==(const Element& other) const;
};

/// A tuple as a person can read it: ("events", 7, b"\x00", null, (1.5, true)). Integers of more than 64 bits are shown
/// in hexadecimal, a NaN with its bits. The form is for eyes and may change; it cannot be read back.
PERDURE_EXPORT std::string to_string(const Tuple& tuple);

}  // namespace perdure::tuple
