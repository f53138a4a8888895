// libFuzzer target: whatever text is read as JSON gives a value that is written as JSON and read again as itself.
//
//     cmake --preset clang && ninja -C build/clang json_fuzz && build/clang/src/value/json_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "perdure/value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  auto value = Value::from_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!value) {
    check(value.error().code == ErrorCode::kInvalidArgument, "JSON is refused as an invalid argument");
    check(value.error().message.starts_with("JSON at line "), "a refusal names its place");
    check(value.error().message.size() < 400, "a message is short, however long the text");
    return 0;
  }
  check(value->check("it").has_value(), "a value that was read passes the check of values");
  std::string text = value->to_json();
  auto again = Value::from_json(text);
  check(again.has_value(), "what the writer writes is read");
  check(*again == *value, "it is read as what was written");
  check(again->to_json() == text, "equal values have the same JSON");
  check(Value::from_json(' ' + text + '\n') == *again, "space around a value means nothing");
  check(!Value::from_json(text + ','), "nothing may follow a value");
  return 0;
}
