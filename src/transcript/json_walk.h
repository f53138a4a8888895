// Walking through JSON that strangers wrote, as far as something of it is wanted.
//
// simdjson's on-demand parser has looked at the whole text for UTF-8 and for strings that end. What is passed over here
// is only skipped to its closing bracket: numbers of any size, any depth and keys that are there twice do no harm.
// Views point into the text, behind which simdjson::SIMDJSON_PADDING bytes are readable.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transcript/json_text.h"

namespace perdure::transcript {

namespace ondemand = simdjson::ondemand;
using simdjson::SUCCESS;

inline constexpr std::string_view kBlanks = " \t\r\n\v\f";

/// What a value looks like. What is malformed is seen where it is read, or when it is passed over.
inline char first_of(ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  return token.empty() ? '\0' : token[0];
}

/// Most keys are told apart by their first byte.
inline bool is(ondemand::raw_json_string key, std::string_view name) {
  return *key.raw() == name[0] && key.unsafe_is_equal(name);
}

/// A string as it was written, without its quotes; nothing if the value is something else.
inline std::string_view raw_string(ondemand::value& value) {
  if (first_of(value) != '"') return {};
  // The token goes on to the next one, over blanks only.
  std::string_view token = value.raw_json_token();
  std::size_t end = token.rfind('"');
  return end == 0 ? std::string_view() : token.substr(1, end - 1);
}

/// Any value as it was written; false if its brackets are malformed.
inline bool raw_value(ondemand::value& value, std::string_view& raw) {
  ondemand::object object;
  ondemand::array array;
  switch (first_of(value)) {
    case '{':
      if (value.get_object().get(object) != SUCCESS || object.raw_json().get(raw) != SUCCESS) return false;
      break;
    case '[':
      if (value.get_array().get(array) != SUCCESS || array.raw_json().get(raw) != SUCCESS) return false;
      break;
    default:
      raw = value.raw_json_token();
  }
  raw = raw.substr(0, raw.find_last_not_of(kBlanks) + 1);
  return true;
}

/// Calls `take` with each member of an object. False if the object is malformed, or `take` says so.
template <class Object, class Take>
bool each_member(Object&& container, Take take) {
  ondemand::object object;
  if (container.get_object().get(object) != SUCCESS) return false;
  for (auto member : object) {
    ondemand::raw_json_string key;
    ondemand::value value;
    if (member.key().get(key) != SUCCESS || member.value().get(value) != SUCCESS) return false;
    if (!take(key, value)) return false;
  }
  return true;
}

template <class Take>
bool each_element(ondemand::value& container, Take take) {
  ondemand::array array;
  if (container.get_array().get(array) != SUCCESS) return false;
  for (auto element : array) {
    ondemand::value value;
    if (element.get(value) != SUCCESS || !take(value)) return false;
  }
  return true;
}

/// Puts the text that a raw string stands for behind `out`; false if an escape is malformed. It may stop once there is
/// enough. The parser is the one that walks through the text.
inline bool append_text(const ondemand::parser& parser, std::string_view raw, std::string& out,
                        std::size_t enough = std::string::npos) {
  // Longer strings are not unescaped as a whole where only the beginning is kept.
  constexpr std::size_t kWholeBytesMax = std::size_t{1} << 20;
  if (raw.empty()) return true;
  if (raw.size() > kWholeBytesMax) return append_unescaped(raw, out, enough);
  // simdjson is several times as fast, and needs room for bytes that it writes behind the text.
  std::size_t before = out.size();
  bool sound = false;
  out.resize_and_overwrite(before + raw.size() + simdjson::SIMDJSON_PADDING, [&](char* bytes, std::size_t) {
    auto* end = reinterpret_cast<std::uint8_t*>(bytes + before);
    ondemand::raw_json_string string(reinterpret_cast<const std::uint8_t*>(raw.data()));
    sound = parser.unescape(string, end).error() == SUCCESS;
    return sound ? static_cast<std::size_t>(reinterpret_cast<char*>(end) - bytes) : before;
  });
  return sound || append_unescaped(raw, out, enough);
}

}  // namespace perdure::transcript
