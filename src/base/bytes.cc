#include "perdure/bytes.h"

namespace perdure {

std::string printable(BytesView bytes, std::size_t max) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (char c : bytes.substr(0, max)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (bytes.size() > max) out += "... (" + std::to_string(bytes.size()) + " bytes)";
  return out;
}

}  // namespace perdure
