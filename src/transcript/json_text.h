// The text of JSON strings, where simdjson does not do: it refuses halves of surrogate pairs, which programs write that
// cut a text in the middle of a character. And how texts are cut here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace perdure::transcript {

/// Puts the text that `raw` stands for, a JSON string without its quotes, behind `out`. A half of a surrogate pair
/// becomes U+FFFD. May stop once `out` has `enough` bytes, at the end of a character; false if an escape is malformed.
/// Of UTF-8 it makes UTF-8.
bool append_unescaped(std::string_view raw, std::string& out, std::size_t enough = std::string::npos);

/// Writes each half of a surrogate pair in the strings of `json` as \ufffd.
void mend_surrogates(std::string& json);

// Of texts that are UTF-8:

/// The first `count` bytes, at most, and no half of a character.
std::string_view first_bytes(std::string_view text, std::size_t count);
/// The first `count` code points, at most.
std::string_view first_characters(std::string_view text, std::size_t count);

}  // namespace perdure::transcript
