#include "perdure/describe.h"

#include <charconv>
#include <cmath>

#include "value/format.h"

namespace perdure::internal {
namespace {

constexpr auto kInt64Max = std::numeric_limits<std::int64_t>::max();

/// The number that a Value holds as text because no std::int64_t can; see perdure/value.h.
std::optional<std::uint64_t> large_number(const Value& value) {
  const std::string* text = value.as_text();
  if (text == nullptr) return std::nullopt;
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  bool whole = error == std::errc() && end == text->data() + text->size();
  // Only what the constructor of Value writes, so that a number has one form.
  if (!whole || number <= static_cast<std::uint64_t>(kInt64Max) || text->front() == '0') return std::nullopt;
  return number;
}

}  // namespace

Mismatches expected(std::string_view what, const Value& found) {
  std::string text = "expected " + std::string(what) + ", found " + describe_found(found);
  if (const auto* list = found.as_list(); list != nullptr && what.starts_with("a list of "))
    text += " of " + std::to_string(list->size());
  return Mismatch{{}, std::move(text)};
}

Mismatches in_field(std::string_view name, Mismatches inner) {
  std::string path;
  append_key(path, name);
  inner->path.insert(0, path);
  return inner;
}

Mismatches in_item(std::size_t index, Mismatches inner) {
  std::string path;
  append_index(path, index);
  inner->path.insert(0, path);
  return inner;
}

Mismatches unknown_field(std::string_view type, std::string_view field, std::span<const std::string_view> fields) {
  std::string text = std::string(type) + " has no field " + printable(field) + "; it has ";
  for (std::size_t i = 0; i < fields.size(); ++i) text.append(i == 0 ? "" : ", ").append(fields[i]);
  if (fields.empty()) text += "none";
  return Mismatch{{}, std::move(text)};
}

Error to_error(std::string_view root, const Mismatch& mismatch) {
  std::string place = std::string(root) + mismatch.path + ": ";
  // A struct that misses a field has named itself already.
  bool named = mismatch.path.empty() && mismatch.what.starts_with(std::string(root) + " has no field ");
  return {ErrorCode::kInvalidArgument, (named ? "" : place) + mismatch.what};
}

Mismatches read_signed(const Value& value, std::int64_t min, std::int64_t max, std::int64_t& out) {
  const std::int64_t* number = value.as_integer();
  if (number != nullptr && *number >= min && *number <= max) {
    out = *number;
    return {};
  }
  if (max == kInt64Max || number == nullptr) return expected("an integer", value);
  return expected("an integer from " + std::to_string(min) + " to " + std::to_string(max), value);
}

Mismatches read_unsigned(const Value& value, std::uint64_t max, std::uint64_t& out) {
  const std::int64_t* number = value.as_integer();
  if (number != nullptr && *number >= 0 && static_cast<std::uint64_t>(*number) <= max) {
    out = static_cast<std::uint64_t>(*number);
    return {};
  }
  if (auto large = large_number(value); large && *large <= max) {
    out = *large;
    return {};
  }
  if (number == nullptr) return expected("an integer", value);
  return expected("an integer from 0 to " + std::to_string(max), value);
}

Mismatches read_double(const Value& value, double max, double& out) {
  if (const std::int64_t* number = value.as_integer()) {
    out = static_cast<double>(*number);
    return {};
  }
  const double* number = value.as_double();
  if (number == nullptr) return expected("a number", value);
  if (std::isfinite(*number) && std::fabs(*number) > max) return expected("a number that a float can hold", value);
  out = *number;
  return {};
}

}  // namespace perdure::internal
