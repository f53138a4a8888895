// libFuzzer target: answers of servers, in whatever pieces they come. The first byte says how large the pieces are; an
// answer is the same, or refused the same, however it was cut.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "http/response_parser.h"

namespace {

struct Outcome {
  bool refused = false;
  bool done = false;
  int status = 0;
  std::string body = {};
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view text, std::size_t piece) {
  perdure::http::ResponseParser parser;
  while (!text.empty() && !parser.done()) {
    if (!parser.feed(text.substr(0, piece))) return {.refused = true};
    text.remove_prefix(std::min(piece, text.size()));
  }
  if (!parser.done() && !parser.end()) return {.refused = true};
  return {false, parser.done(), parser.response().status, parser.response().body};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Outcome pieces = read(text, std::size_t{data[0]} + 1);
  Outcome whole = read(text, std::max<std::size_t>(text.size(), 1));
  // Behind a whole answer more may follow, which only the larger piece has seen.
  if (!pieces.refused && !whole.refused) perdure::check(pieces == whole, "an answer does not depend on how it was cut");
  return 0;
}
