// Tuple keys.
//
// A key in perdure is a tuple, ("events", worker, stamp), packed into bytes so that the order of the bytes is the order
// of the tuples: element by element, a tuple before its extensions. Everything that belongs together is therefore one
// range of keys, and what comes first is found by a seek.
//
//     Bytes key = tuple::pack("events", worker, stamp);      // Values of known types: cannot fail.
//     tuple::append(key, Uuid{...}, 7);                       // The same tuple, longer by two elements.
//     KeyRange all = tuple::range("events", worker);          // Every key that extends ("events", worker).
//     auto parts = tuple::unpack_as<std::string, std::string, Stamp>(key);
//
// Types sort null < bytes < text < nested tuples < integers < doubles < false < true < uuids < stamps, and within a
// type by value. Integers of all sizes are one type; doubles are another, so every integer sorts before every double.
// Doubles are in the total order of IEEE 754: every bit pattern is a key of its own, -0.0 comes before 0.0, NaNs with
// the sign set come first and the others last. The bytes are a contract: docs/internals/tuple_format.md.
//
// What pack() takes, and the element it becomes:
//
//     std::string, std::string_view, "literal"   text, up to the first zero byte in the case of a literal
//     BlobView, Blob                              bytes
//     any integer type, Integer                   an integer
//     double, float; bool; Uuid; Stamp; null      the same
//     nested(...)                                 a nested tuple of these
//
// Text must be UTF-8, and pack() takes your word for it: check what comes from outside with check_text() where it
// enters. Text that is not UTF-8 would be written and sorted, but not be read again.
//
// All functions here are pure and safe to call from any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/key_range.h"
#include "perdure/stamped.h"
#include "perdure/tuple_element.h"
#include "perdure/tuple_reader.h"

namespace perdure::tuple {

/// What nested() returns. Refers to its arguments: use it in the expression that makes it, and do not keep it.
template <class... Args>
struct Nested {
  std::tuple<const Args&...> elements;
};

namespace internal {

template <class T>
inline constexpr bool kIsNested = false;
template <class... Args>
inline constexpr bool kIsNested<Nested<Args...>> = true;

/// How many incomplete stamps packing a T leaves.
template <class T>
inline constexpr std::size_t kHoles = std::same_as<T, IncompleteStamp> ? 1 : 0;
template <class... Args>
inline constexpr std::size_t kHoles<Nested<Args...>> = (std::size_t{0} + ... + kHoles<Args>);

template <class T, class... Choices>
concept OneOf = (std::same_as<T, Choices> || ...);

}  // namespace internal

/// What may stand in the arguments of pack() and its relatives.
template <class T>
concept Packable = TextLike<T> || IntegerLike<T> || DoubleLike<T> || internal::kIsNested<T> ||
                   internal::OneOf<T, bool, Null, Blob, BlobView, Integer, Uuid, Stamp, IncompleteStamp>;

namespace internal {

/// Writes elements to the end of `out`, and remembers where it left a hole for a stamp.
class PERDURE_EXPORT Encoder {
 public:
  explicit Encoder(Bytes& out) : out_(out) {}

  template <class T>
  void put(const T& value);
  void put_element(const Element& element);
  /// Takes all of `out`, cut at the hole; there has to be one.
  Stamped take_stamped();

 private:
  void put_null();
  void put_string(unsigned char code, BytesView bytes);
  void put_text(std::string_view text);
  void put_bytes(BytesView bytes);
  void put_int(std::int64_t value);
  void put_uint(std::uint64_t value);
  void put_integer(const Integer& value);
  void put_magnitude(Sign sign, std::uint64_t magnitude);
  void put_double(double value);
  void put_bool(bool value);
  void put_uuid(const Uuid& value);
  void put_stamp(Stamp value);
  void put_hole(IncompleteStamp value);
  void open_tuple();
  void close_tuple();

  Bytes& out_;
  std::size_t depth_ = 0;  // Of open nested tuples: null is written differently inside of one.
  std::size_t hole_at_ = 0;
  std::uint32_t hole_order_ = 0;
};

template <class T>
void Encoder::put(const T& value) {
  if constexpr (TextLike<T>) {
    put_text(value);
  } else if constexpr (std::same_as<T, bool>) {
    put_bool(value);
  } else if constexpr (std::signed_integral<T>) {
    put_int(value);
  } else if constexpr (std::unsigned_integral<T>) {
    put_uint(value);
  } else if constexpr (DoubleLike<T>) {
    put_double(value);
  } else if constexpr (OneOf<T, Blob, BlobView>) {
    put_bytes(value.bytes);
  } else if constexpr (std::same_as<T, Integer>) {
    put_integer(value);
  } else if constexpr (std::same_as<T, Uuid>) {
    put_uuid(value);
  } else if constexpr (std::same_as<T, Stamp>) {
    put_stamp(value);
  } else if constexpr (std::same_as<T, IncompleteStamp>) {
    put_hole(value);
  } else if constexpr (std::same_as<T, Null>) {
    put_null();
  } else {
    static_assert(kIsNested<T>);
    open_tuple();
    std::apply([&](const auto&... elements) { (put(elements), ...); }, value.elements);
    close_tuple();
  }
}

/// Enough room for most values, so that a key is usually allocated once.
template <class T>
std::size_t size_hint(const T& value) {
  if constexpr (TextLike<T>) return std::string_view(value).size() + 2;
  if constexpr (OneOf<T, Blob, BlobView>) return value.bytes.size() + 2;
  return 1 + 16;
}

}  // namespace internal

/// A nested tuple as an argument of pack(): pack("a", nested(1, 2)) is the tuple ("a", (1, 2)).
template <Packable... Args>
Nested<Args...> nested(const Args&... elements) {
  return {{elements...}};
}

/// Extends the packed tuple (or any prefix) in `out` by the given elements, none of which may point into `out`.
template <Packable... Args>
void append(Bytes& out, const Args&... elements) {
  static_assert((0 + ... + internal::kHoles<Args>) == 0, "a key with an incomplete stamp is made by pack_stamped()");
  internal::Encoder encoder(out);
  (encoder.put(elements), ...);
}

/// `prefix` followed by the packed tuple. The prefix may be a packed tuple, which is thus extended, or any bytes.
template <Packable... Args>
Bytes pack_onto(BytesView prefix, const Args&... elements) {
  Bytes out;
  out.reserve((prefix.size() + ... + internal::size_hint(elements)));
  out.append(prefix);
  append(out, elements...);
  return out;
}

/// The tuple of the given elements as bytes.
template <Packable... Args>
Bytes pack(const Args&... elements) {
  return pack_onto({}, elements...);
}

/// Like pack_onto() and pack(), with exactly one IncompleteStamp among the elements, however deeply nested: the place
/// that the commit fills with its stamp. Another number of them does not compile.
template <Packable... Args>
Stamped pack_stamped_onto(BytesView prefix, const Args&... elements) {
  static_assert((0 + ... + internal::kHoles<Args>) == 1, "a stamped key has exactly one IncompleteStamp");
  Bytes out(prefix);
  internal::Encoder encoder(out);
  (encoder.put(elements), ...);
  return encoder.take_stamped();
}

template <Packable... Args>
Stamped pack_stamped(const Args&... elements) {
  return pack_stamped_onto({}, elements...);
}

/// Every key that extends the packed tuple `packed` by at least one element; `packed` itself is not among them.
PERDURE_EXPORT KeyRange extensions(BytesView packed);

/// Every tuple that extends the given one by at least one element; range() is every tuple but the empty one.
/// range_onto() is the same after a prefix.
template <Packable... Args>
KeyRange range_onto(BytesView prefix, const Args&... elements) {
  return extensions(pack_onto(prefix, elements...));
}

template <Packable... Args>
KeyRange range(const Args&... elements) {
  return range_onto({}, elements...);
}

/// Packing of tuples whose shape is only known at run time, and the inverse of unpack().
/// Errors: invalid_argument if a text is not UTF-8, if tuples are nested deeper than kMaxDepth, or if the number of
/// incomplete stamps is not none for pack() and append(), one for pack_stamped(). `out` is then unchanged.
PERDURE_EXPORT Result<void> append(Bytes& out, const Tuple& tuple);
PERDURE_EXPORT Result<Bytes> pack(const Tuple& tuple);
PERDURE_EXPORT Result<Stamped> pack_stamped(const Tuple& tuple);

/// The tuple that `packed` is the encoding of. Strict: only what pack() writes is accepted, so that two keys never mean
/// the same tuple.
/// Errors: invalid_argument with the offset of the first byte that does not fit.
PERDURE_EXPORT Result<Tuple> unpack(BytesView packed);

/// Whether `text` may be packed as text.
/// Errors: invalid_argument if it is not UTF-8, with `what` ("the name of the worker") and the offset in the message.
PERDURE_EXPORT Result<void> check_text(std::string_view text, std::string_view what);

}  // namespace perdure::tuple
