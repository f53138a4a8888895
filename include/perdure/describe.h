// Structs as values.
//
// A struct is described once, in its own body, and is then a Value both ways:
//
//     struct Add {
//       std::int64_t by = 1;
//       std::vector<std::string> tags;
//       PERDURE_DESCRIBE(Add, by, tags)
//     };
//
//     Value sent = to_value(Add{.by = 5});                 // {"by":5,"tags":[]}
//     Result<Add> read = from_value<Add>(sent);
//
// A struct is a map from the names of its fields to their values. What a field may be, and what it is as a value:
//
//     bool; std::string; Blob; Value                       the same
//     integers, enums                                      an integer that the type can hold
//     double, float                                        a double; an integer is read as well
//     std::vector<T>, std::array<T, n>                     a list; of exactly n items for an array
//     std::map<std::string, T>                             a map
//     std::optional<T>                                     null, or a T
//     a described struct                                   a map
//
// A field that is missing in the map keeps the value that the struct gives it, so new fields can be added to a struct
// whose old values are still stored; a struct is therefore default constructible. A field that the struct does not have
// is an error or is passed over, as the caller says. A std::uint64_t that no std::int64_t can hold is the text of its
// digits, see perdure/value.h.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/value.h"

/// Describes the struct in whose body it stands: its name, then up to 64 of its own fields, none of which is a
/// reference or a bit field. It adds two static functions and the name of a type, so an aggregate stays one.
#define PERDURE_DESCRIBE(Type, ...)                                                                            \
  using PerdureDescribed [[maybe_unused]] = Type;                                                              \
  static constexpr ::std::string_view perdure_name() {                                                         \
    return #Type;                                                                                              \
  }                                                                                                            \
  static constexpr auto perdure_fields() {                                                                     \
    return ::std::make_tuple(__VA_OPT__(PERDURE_INTERNAL_EXPAND(PERDURE_INTERNAL_FIELDS(Type, __VA_ARGS__)))); \
  }

// One field, and the rest after it: the preprocessor expands it again as often as PERDURE_INTERNAL_EXPAND scans it.
#define PERDURE_INTERNAL_FIELDS(Type, field, ...) \
  ::perdure::internal::Field{                     \
      #field, &Type::field} __VA_OPT__(, PERDURE_INTERNAL_AGAIN PERDURE_INTERNAL_PARENTHESES(Type, __VA_ARGS__))
#define PERDURE_INTERNAL_AGAIN() PERDURE_INTERNAL_FIELDS
#define PERDURE_INTERNAL_PARENTHESES ()
#define PERDURE_INTERNAL_EXPAND(...) \
  PERDURE_INTERNAL_EXPAND3(PERDURE_INTERNAL_EXPAND3(PERDURE_INTERNAL_EXPAND3(PERDURE_INTERNAL_EXPAND3(__VA_ARGS__))))
#define PERDURE_INTERNAL_EXPAND3(...) \
  PERDURE_INTERNAL_EXPAND2(PERDURE_INTERNAL_EXPAND2(PERDURE_INTERNAL_EXPAND2(PERDURE_INTERNAL_EXPAND2(__VA_ARGS__))))
#define PERDURE_INTERNAL_EXPAND2(...) \
  PERDURE_INTERNAL_EXPAND1(PERDURE_INTERNAL_EXPAND1(PERDURE_INTERNAL_EXPAND1(PERDURE_INTERNAL_EXPAND1(__VA_ARGS__))))
#define PERDURE_INTERNAL_EXPAND1(...) __VA_ARGS__

namespace perdure {

/// A struct with PERDURE_DESCRIBE in its own body, not only in that of a base.
template <class T>
concept Described = std::same_as<typename T::PerdureDescribed, T> && std::default_initializable<T>;

/// Its name as text: "Add".
template <Described T>
constexpr std::string_view described_name() {
  return T::perdure_name();
}

/// What to do about fields in a value that the struct does not have.
enum class UnknownFields { kRefuse, kIgnore };

namespace internal {

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::* member;
};
template <class Struct, class Member>
Field(const char*, Member Struct::*) -> Field<Struct, Member>;

/// What does not fit, and where: the path grows to the left while the error goes up. Null if all is well.
struct Mismatch {
  std::string path;
  std::string what;
};
using Mismatches = std::optional<Mismatch>;

PERDURE_EXPORT Mismatches expected(std::string_view what, const Value& found);
PERDURE_EXPORT Mismatches in_field(std::string_view name, Mismatches inner);
PERDURE_EXPORT Mismatches in_item(std::size_t index, Mismatches inner);
PERDURE_EXPORT Mismatches unknown_field(std::string_view type, std::string_view field,
                                        std::span<const std::string_view> fields);
PERDURE_EXPORT Error to_error(std::string_view root, const Mismatch& mismatch);

PERDURE_EXPORT Mismatches read_signed(const Value& value, std::int64_t min, std::int64_t max, std::int64_t& out);
PERDURE_EXPORT Mismatches read_unsigned(const Value& value, std::uint64_t max, std::uint64_t& out);
PERDURE_EXPORT Mismatches read_double(const Value& value, double max, double& out);

template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kIs<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t Size>
inline constexpr bool kIsArray<std::array<T, Size>> = true;

template <class T>
concept TextMap = kIs<T, std::map> && std::same_as<typename T::key_type, std::string>;

template <class T>
Value put(const T& from) {
  if constexpr (Described<T>) {
    Value::Map map;
    std::apply([&](const auto&... fields) { (map.emplace(fields.name, put(from.*fields.member)), ...); },
               T::perdure_fields());
    return map;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(from);
  } else if constexpr (kIs<T, std::optional>) {
    return from ? put(*from) : Value();
  } else if constexpr (kIs<T, std::vector> || kIsArray<T>) {
    Value::List list;
    list.reserve(from.size());
    for (const auto& item : from) list.push_back(put<typename T::value_type>(item));
    return list;
  } else if constexpr (TextMap<T> && !std::same_as<T, Value::Map>) {
    Value::Map map;
    for (const auto& [key, entry] : from) map.emplace(key, put(entry));
    return map;
  } else {
    static_assert(std::convertible_to<const T&, Value>, "not a type that a field of a described struct may have");
    return Value(from);
  }
}

template <class T>
Mismatches read(const Value& value, T& out, UnknownFields unknown);

template <class T>
Mismatches read_struct(const Value& value, T& out, UnknownFields unknown) {
  const Value::Map* map = value.as_map();
  if (map == nullptr) return expected("a map", value);
  constexpr auto kFields = T::perdure_fields();
  return std::apply(
      [&](const auto&... fields) -> Mismatches {
        Mismatches wrong;
        std::size_t found = 0;
        [[maybe_unused]] auto take = [&](const auto& field) {
          auto entry = map->find(field.name);
          if (entry == map->end()) return true;
          ++found;
          wrong = read(entry->second, out.*field.member, unknown);
          if (wrong) wrong = in_field(field.name, std::move(wrong));
          return !wrong;
        };
        if (!(take(fields) && ...)) return wrong;
        if (found == map->size() || unknown == UnknownFields::kIgnore) return {};
        const std::array<std::string_view, sizeof...(fields)> names = {fields.name...};
        for (const auto& entry : *map)
          if (!((entry.first == fields.name) || ...)) return unknown_field(described_name<T>(), entry.first, names);
        return {};
      },
      kFields);
}

template <class T>
Mismatches read_list(const Value& value, T& out, UnknownFields unknown) {
  const Value::List* list = value.as_list();
  if constexpr (kIsArray<T>) {
    if (list == nullptr || list->size() != out.size())
      return expected("a list of " + std::to_string(out.size()) + " items", value);
  } else {
    if (list == nullptr) return expected("a list", value);
    out.clear();
    out.reserve(list->size());
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    typename T::value_type item{};
    if (auto wrong = read((*list)[i], item, unknown)) return in_item(i, std::move(wrong));
    if constexpr (kIsArray<T>) {
      out[i] = std::move(item);
    } else {
      out.push_back(std::move(item));
    }
  }
  return {};
}

template <class T>
Mismatches read_map(const Value& value, T& out, UnknownFields unknown) {
  const Value::Map* map = value.as_map();
  if (map == nullptr) return expected("a map", value);
  out.clear();
  for (const auto& [key, entry] : *map) {
    typename T::mapped_type item{};
    if (auto wrong = read(entry, item, unknown)) return in_field(key, std::move(wrong));
    out.emplace_hint(out.end(), key, std::move(item));
  }
  return {};
}

template <class T>
Mismatches read_number(const Value& value, T& out) {
  if constexpr (tuple::DoubleLike<T>) {
    double wide = 0;
    if (auto wrong = read_double(value, static_cast<double>(std::numeric_limits<T>::max()), wide)) return wrong;
    out = static_cast<T>(wide);
  } else if constexpr (std::signed_integral<T>) {
    std::int64_t wide = 0;
    if (auto wrong = read_signed(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), wide))
      return wrong;
    out = static_cast<T>(wide);
  } else {
    std::uint64_t wide = 0;
    if (auto wrong = read_unsigned(value, std::numeric_limits<T>::max(), wide)) return wrong;
    out = static_cast<T>(wide);
  }
  return {};
}

/// Whatever is not there in the value stays as it is in `out`. After an error `out` may be half read.
template <class T>
Mismatches read(const Value& value, T& out, UnknownFields unknown) {
  if constexpr (std::same_as<T, Value>) {
    out = value;
    return {};
  } else if constexpr (Described<T>) {
    return read_struct(value, out, unknown);
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    if (auto wrong = read(value, number, unknown)) return wrong;
    out = static_cast<T>(number);
    return {};
  } else if constexpr (kIs<T, std::optional>) {
    out.reset();
    if (value.is_null()) return {};
    return read(value, out.emplace(), unknown);
  } else if constexpr (std::same_as<T, bool>) {
    if (!value.is_bool()) return expected("true or false", value);
    out = *value.as_bool();
    return {};
  } else if constexpr (std::same_as<T, std::string>) {
    if (!value.is_text()) return expected("text", value);
    out = *value.as_text();
    return {};
  } else if constexpr (std::same_as<T, Blob>) {
    if (!value.is_bytes()) return expected("bytes", value);
    out = *value.as_bytes();
    return {};
  } else if constexpr (tuple::IntegerLike<T> || tuple::DoubleLike<T>) {
    return read_number(value, out);
  } else if constexpr (kIs<T, std::vector> || kIsArray<T>) {
    return read_list(value, out, unknown);
  } else {
    static_assert(TextMap<T>, "not a type that a field of a described struct may have");
    return read_map(value, out, unknown);
  }
}

}  // namespace internal

/// The value of a described struct, or of anything that a field of one may be.
template <class T>
Value to_value(const T& from) {
  return internal::put(from);
}

/// The same back.
/// Errors: invalid_argument, with the place, what was expected there and what was found: `Add.by: expected an integer,
/// found text "x"`, or `Add has no field bz; it has by, tags`.
template <std::default_initializable T>
Result<T> from_value(const Value& value, UnknownFields unknown = UnknownFields::kRefuse) {
  T out{};
  if (auto wrong = internal::read(value, out, unknown)) {
    if constexpr (Described<T>) return std::unexpected(internal::to_error(described_name<T>(), *wrong));
    return std::unexpected(internal::to_error("the value", *wrong));
  }
  return out;
}

}  // namespace perdure
