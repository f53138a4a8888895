#include <bit>
#include <charconv>
#include <cmath>

#include "perdure/tuple_element.h"

namespace perdure::tuple {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_hex(std::string& out, BytesView bytes) {
  for (char c : bytes) {
    out += kHexDigits[static_cast<unsigned char>(c) >> 4];
    out += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
}

enum class Above127 { kAsItIs, kEscaped };

void append_quoted(std::string& out, BytesView bytes, Above127 above) {
  out += '"';
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = byte >= 0x80 ? above == Above127::kAsItIs : byte >= 0x20 && byte != 0x7f;
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (plain) {
      out += c;
    } else {
      append_hex(out += "\\x", {&c, 1});
    }
  }
  out += '"';
}

void append_double(std::string& out, double value) {
  char digits[32];
  if (std::isnan(value)) {
    auto* end = std::to_chars(digits, digits + sizeof digits, std::bit_cast<std::uint64_t>(value), 16).ptr;
    (out += "nan:").append(digits, end);
    return;
  }
  auto* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string_view text(digits, static_cast<std::size_t>(end - digits));
  out += text;
  if (text.find_first_of(".einf") == std::string_view::npos) out += ".0";  // So that it does not pass for an integer.
}

void append_tuple(std::string& out, const Tuple& tuple);

struct Show {
  std::string& out;

  void operator()(Null) const { out += "null"; }
  void operator()(const Blob& blob) const { append_quoted(out += 'b', blob.bytes, Above127::kEscaped); }
  void operator()(const std::string& text) const { append_quoted(out, text, Above127::kAsItIs); }
  void operator()(const Tuple& tuple) const { append_tuple(out, tuple); }
  void operator()(const Integer& integer) const {
    if (auto small = integer.to_int64()) {
      out += std::to_string(*small);
    } else if (auto positive = integer.to_uint64()) {
      out += std::to_string(*positive);
    } else {
      append_hex(out += integer.sign() == Sign::kNegative ? "-0x" : "0x", integer.magnitude());
    }
  }
  void operator()(double value) const { append_double(out, value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(const Uuid& uuid) const { (out += "uuid:") += perdure::to_string(uuid); }
  void operator()(Stamp stamp) const {
    (((out += "stamp:") += std::to_string(stamp.version.number)) += '/') += std::to_string(stamp.order);
  }
  void operator()(IncompleteStamp hole) const { (out += "stamp:?/") += std::to_string(hole.order); }
};

void append_tuple(std::string& out, const Tuple& tuple) {
  out += '(';
  for (const Element& element : tuple) {
    if (&element != &tuple.front()) out += ", ";
    std::visit(Show{out}, element.value);
  }
  out += ')';
}

}  // namespace

std::string to_string(const Tuple& tuple) {
  std::string out;
  append_tuple(out, tuple);
  return out;
}

}  // namespace perdure::tuple
