// libFuzzer target: lines of transcripts. Whatever they hold, reading them ends, and what is kept is UTF-8 and within
// its bounds. The first byte stands behind the line, where the reader may look but must not care.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "transcript/entry.h"
#include "transcript/lines.h"
#include "tuple/utf8.h"

namespace {

using perdure::check;
using perdure::transcript::Entry;

void check_text(const std::string& text) {
  check(!perdure::find_invalid_utf8(text), "what is kept is UTF-8");
}

void check_id(const std::string& id) {
  check_text(id);
  check(!id.empty() && id.size() <= perdure::transcript::kIdBytesMax, "ids have bounds");
}

void check_message(const Entry& entry) {
  check_id(entry.uuid);
  check(entry.results.empty() || (entry.is_user && entry.body.empty()), "only users have results, and then no text");
  check(entry.tools.empty() || !entry.is_user, "only the assistant calls tools");
  for (const auto& call : entry.tools) {
    check_id(call.id);
    check_id(call.name);
    check_text(call.input);
  }
  for (const auto& result : entry.results) {
    check_id(result.id);
    check_text(result.output);
    auto begins = [](char c) { return (c & 0xc0) != 0x80; };
    auto characters = static_cast<std::size_t>(std::ranges::count_if(result.output, begins));
    check(characters <= perdure::transcript::kOutputCharactersMax, "outputs are cut");
    check(!result.cut || characters == perdure::transcript::kOutputCharactersMax, "and not too short");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static perdure::transcript::EntryReader reader;
  if (size == 0) return 0;
  std::string line(reinterpret_cast<const char*>(data) + 1, size - 1);
  line.append(perdure::transcript::kLinePadding, static_cast<char>(data[0]));
  Entry entry = reader.read(std::string_view(line).substr(0, size - 1));
  check((entry.kind == Entry::Kind::kSkipped) == !entry.why.empty(), "whoever is skipped knows why");
  check_text(entry.body);
  check_text(entry.thinking);
  check_text(entry.title);
  if (entry.kind == Entry::Kind::kMessage) check_message(entry);
  return 0;
}
