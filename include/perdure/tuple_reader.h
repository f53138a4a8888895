#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/tuple_element.h"

namespace perdure::tuple {

/// Reads a packed tuple element by element, without allocating unless a string contains a zero byte.
///
///     tuple::Reader reader(key);
///     reader.skip_prefix(prefix);
///     std::string_view worker = reader.next_text();
///     Stamp stamp = reader.next_stamp();
///     if (auto read = reader.finish(); !read) return std::unexpected(read.error());
///
/// The first error sticks: from then on every next_...() returns zero, false or nothing and moves no further, so that
/// one look at finish() or ok() after several reads is enough. Do not use what was read before that look. An error is
/// invalid_argument, and names what was expected, what was found, and at which byte of the input.
///
/// As strict as unpack(). Points into the bytes it was given, which have to outlive it and what next_text() and
/// next_bytes() return. For one thread at a time.
class PERDURE_EXPORT Reader {
 public:
  explicit Reader(BytesView packed) : packed_(packed) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// What comes next; kEnd at the end of the input or of the nested tuple that is being read, and after an error.
  Kind peek();
  bool at_end() { return peek() == Kind::kEnd; }

  /// Each reads one element of that kind, and it is an error if the next one is of another. The views live as long as
  /// both the input and this reader.
  void next_null();
  BytesView next_bytes();
  std::string_view next_text();
  double next_double();
  bool next_bool();
  Uuid next_uuid();
  Stamp next_stamp();
  Integer next_integer();
  /// It is an error if the integer does not fit.
  std::int64_t next_int();
  std::uint64_t next_uint();
  /// An element of any kind, with all its elements if it is a nested tuple. Null after an error.
  Element next_element();

  /// The next element as a T: any integer type that it fits, Integer, double, bool, std::string, std::string_view,
  /// Blob, BlobView, Uuid, Stamp, Null, Element, or Tuple for a nested one.
  template <class T>
  T next();

  /// Goes into the nested tuple that comes next, and out of the one that has been read to its end.
  void enter_tuple();
  void leave_tuple();

  /// Goes past `prefix`, which the rest of the input has to start with. Between elements of the outermost tuple only.
  void skip_prefix(BytesView prefix);
  /// What has not been read yet.
  BytesView rest() const { return packed_.substr(position_); }

  bool ok() const { return !error_.has_value(); }
  /// Whether everything was read without an error and nothing is left.
  Result<void> finish();

 private:
  struct IntegerBytes {
    Sign sign = Sign::kPositive;
    BytesView bytes;  // One's complement of the magnitude if negative.
    std::uint64_t small() const;
  };

  void fail_at(std::size_t offset, std::string what);
  bool expect(Kind kind);
  BytesView take_string(Kind kind);
  BytesView take_fixed(std::size_t header_size, std::size_t size, Kind kind);
  std::optional<IntegerBytes> take_integer();
  void refuse_range(std::size_t offset, std::string_view type);
  Tuple take_tuple();
  template <IntegerLike T>
  T next_number();

  BytesView packed_;
  std::size_t position_ = 0;  // Always the start of an element or an end, never the middle of one.
  std::size_t depth_ = 0;     // Of nested tuples entered and not left.
  std::optional<Error> error_;
  std::forward_list<Bytes> unescaped_;  // Strings with zero bytes; nodes never move, so views of them stay good.
};

template <IntegerLike T>
T Reader::next_number() {
  std::size_t offset = position_;
  auto wide = [this] {
    if constexpr (std::signed_integral<T>)
      return next_int();
    else
      return next_uint();
  }();
  if (std::in_range<T>(wide)) return static_cast<T>(wide);
  refuse_range(offset, std::signed_integral<T> ? "a narrower signed type" : "a narrower unsigned type");
  return 0;
}

template <class T>
T Reader::next() {
  if constexpr (IntegerLike<T>) {
    return next_number<T>();
  } else if constexpr (std::same_as<T, Integer>) {
    return next_integer();
  } else if constexpr (std::same_as<T, double>) {
    return next_double();
  } else if constexpr (std::same_as<T, bool>) {
    return next_bool();
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    return T(next_text());
  } else if constexpr (std::same_as<T, Blob>) {
    return Blob{Bytes(next_bytes())};
  } else if constexpr (std::same_as<T, BlobView>) {
    return BlobView{next_bytes()};
  } else if constexpr (std::same_as<T, Uuid>) {
    return next_uuid();
  } else if constexpr (std::same_as<T, Stamp>) {
    return next_stamp();
  } else if constexpr (std::same_as<T, Null>) {
    next_null();
    return {};
  } else if constexpr (std::same_as<T, Element>) {
    return next_element();
  } else {
    static_assert(std::same_as<T, Tuple>, "not a type that a tuple element can be read as");
    return take_tuple();
  }
}

/// The elements of `key` after `prefix`, all of them and with exactly these types (see Reader::next), as in
///
///     auto parts = tuple::unpack_after<Stamp, std::uint32_t>(prefix, key);
///     if (!parts) return std::unexpected(parts.error());
///     auto [stamp, attempt] = *parts;
///
/// Errors: invalid_argument, as Reader.
template <class... Ts>
Result<std::tuple<Ts...>> unpack_after(BytesView prefix, BytesView key) {
  static_assert(!(std::same_as<Ts, std::string_view> || ...) && !(std::same_as<Ts, BlobView> || ...),
                "a view may point into the reader, which ends here: ask for std::string or Blob");
  Reader reader(key);
  reader.skip_prefix(prefix);
  std::tuple<Ts...> elements{reader.next<Ts>()...};  // Braces, because they are evaluated from left to right.
  if (auto read = reader.finish(); !read) return std::unexpected(std::move(read).error());
  return elements;
}

/// The same for a whole packed tuple.
template <class... Ts>
Result<std::tuple<Ts...>> unpack_as(BytesView packed) {
  return unpack_after<Ts...>({}, packed);
}

}  // namespace perdure::tuple
