// Values.
//
// A Value is what JSON can say, and bytes: the form in which the states and the messages of actors are stored, sent and
// shown. Code that knows the shape of its data describes a struct instead and never touches one (perdure/describe.h);
// a Value is for code that does not: tools, bindings, behaviours in other languages.
//
//     Value order = Value::Map{{"id", "o-17"}, {"lines", Value::List{1, 2.5, nullptr}}};
//     order["paid"] = true;
//     if (const Value* id = order.find("id"); id != nullptr && id->is_text()) use(*id->as_text());
//
// Integers and doubles are different kinds, and no operation turns one into the other. An unsigned integer above the
// largest std::int64_t becomes the text of its decimal digits, as JSON does it for readers that know doubles only; so
// no number is ever changed silently, and from_value<std::uint64_t>() reads it back.
//
// Text must be UTF-8. Nobody checks that while a Value is built; check() does, where a value comes from outside, and
// decode() refuses what is not. encode() writes bytes that are a contract: docs/internals/value_format.md.
//
// Like the containers of the standard library, a Value may be read by any number of threads or written by one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/tuple_element.h"

namespace perdure {

/// Bytes that are not text, also outside of tuples.
using tuple::Blob;

/// What Value::from_json() accepts.
struct JsonLimits {
  /// How deep lists and maps may be nested. More than Value::kMaxDepth, which this is, counts as that.
  std::size_t depth_max = 64;
};

class PERDURE_EXPORT Value {
 public:
  enum class Kind { kNull, kBool, kInteger, kDouble, kText, kBytes, kList, kMap };
  using List = std::vector<Value>;
  using Map = std::map<std::string, Value, std::less<>>;

  /// How deep lists and maps may be nested, a list of numbers being one deep, so that no recursion over a value that
  /// was decoded or checked can exhaust the stack.
  static constexpr std::size_t kMaxDepth = 64;

  Value() = default;
  // NOLINTBEGIN(google-explicit-constructor): whatever a Value can hold is a Value.
  Value(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Value(T truth) : held_(truth) {}
  template <tuple::IntegerLike T>
  Value(T integer) : held_(hold(integer)) {}
  template <tuple::DoubleLike T>
  Value(T number) : held_(static_cast<double>(number)) {}
  Value(const char* text) : held_(std::string(text)) {}
  Value(std::string_view text) : held_(std::string(text)) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(Blob bytes) : held_(std::move(bytes)) {}
  Value(List list) : held_(std::move(list)) {}
  Value(Map map) : held_(std::move(map)) {}
  // NOLINTEND(google-explicit-constructor)

  Kind kind() const { return static_cast<Kind>(held_.index()); }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_integer() const { return kind() == Kind::kInteger; }
  bool is_double() const { return kind() == Kind::kDouble; }
  bool is_text() const { return kind() == Kind::kText; }
  bool is_bytes() const { return kind() == Kind::kBytes; }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_map() const { return kind() == Kind::kMap; }

  /// What it holds, or null if that is of another kind. The pointer lives until the value is changed.
  const bool* as_bool() const { return std::get_if<bool>(&held_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&held_); }
  const double* as_double() const { return std::get_if<double>(&held_); }
  const std::string* as_text() const { return std::get_if<std::string>(&held_); }
  const Blob* as_bytes() const { return std::get_if<Blob>(&held_); }
  const List* as_list() const { return std::get_if<List>(&held_); }
  const Map* as_map() const { return std::get_if<Map>(&held_); }
  std::string* as_text() { return std::get_if<std::string>(&held_); }
  Blob* as_bytes() { return std::get_if<Blob>(&held_); }
  List* as_list() { return std::get_if<List>(&held_); }
  Map* as_map() { return std::get_if<Map>(&held_); }

  /// The entry of a map, or null if there is none or if this is not a map.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// The entry of a map, made as null if there is none. A null becomes a map first. Throws std::invalid_argument for
  /// any other kind: this is for handlers that build values, whose exceptions are caught where they were called.
  Value& operator[](std::string_view key);

  /// Equal exactly if they encode to the same bytes: 1 and 1.0 differ, 0.0 and -0.0 differ, a NaN equals itself.
  bool operator==(const Value& other) const;

  /// As JSON, in one line and always valid: bytes are {"$bytes":"<base64>"}, a double that is not finite is null, and
  /// each byte of a text that is not UTF-8 is U+FFFD. Doubles keep a point or an exponent, so that they stay doubles.
  std::string to_json() const;
  /// The value that `text` is the JSON of. Strict as RFC 8259 is: UTF-8 without a byte order mark, pairs of surrogates,
  /// nothing behind the value, and each key of a map once. It reads what to_json() writes as the value that it was
  /// written for, but for what that changed (doubles that are not finite, text that is not UTF-8) and for maps whose
  /// only key is "$bytes": these are bytes, and refused if they do not hold base64 as to_json() writes it.
  ///
  /// A number without a point and an exponent is an integer, and exact: 9223372036854775808 to 18446744073709551615 are
  /// the text of their digits, as for the constructor, and larger ones are refused. But -0 is a double, as are all
  /// others: the nearest one, zero included; what is too large for a double is refused.
  ///
  /// Memory is taken as the text is read, at most about 100 times its size for a list of digits: bound the size of
  /// what comes from outside. Errors: invalid_argument, with the line and the column, in characters, of what was found
  /// and what was expected: "JSON at line 2, column 7: expected ',' or ']', found '}'".
  static Result<Value> from_json(std::string_view text, JsonLimits limits = {});

  /// Its bytes, the same for equal values; encode_onto() puts them behind what `out` holds already.
  Bytes encode() const;
  void encode_onto(Bytes& out) const;
  /// The size of what encode() gives, without making it.
  std::size_t encoded_size() const;
  /// The value that `encoded` is the encoding of. Strict: only what encode() writes for a value that passes check() is
  /// accepted, so that two encodings never mean the same value. Memory is taken as the input is read, not as it claims.
  /// Errors: invalid_argument, with the offset of the first byte that does not fit.
  static Result<Value> decode(BytesView encoded);

  /// Whether decode() would read what encode() writes.
  /// Errors: invalid_argument if a text or a key is not UTF-8 or lists and maps are nested deeper than kMaxDepth. The
  /// message names the place, starting with `what`: "the message.lines[3]: text that is not UTF-8 at byte 7".
  Result<void> check(std::string_view what) const;

 private:
  using Held = std::variant<std::monostate, bool, std::int64_t, double, std::string, Blob, List, Map>;  // As Kind.

  template <class T>
  static Held hold(T integer) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::uint64_t)) {
      if (integer > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return std::to_string(integer);
    }
    return static_cast<std::int64_t>(integer);
  }

  Held held_;
};

/// "an integer", as it stands in messages.
PERDURE_EXPORT std::string_view name_of(Value::Kind kind);

/// A value in a message, cut to a few dozen characters: `text "x"`, `integer 7`, `map`, `null`.
PERDURE_EXPORT std::string describe_found(const Value& value);

}  // namespace perdure
