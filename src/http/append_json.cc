#include "http/append_json.h"

#include <charconv>

#include "http/units.h"

namespace perdure::http {
namespace {

/// Above 2^53 it may be a text, as it is answered.
std::uint64_t read_workspace(Fields& fields) {
  const Value* given = fields.any("workspace");
  if (!given || given->is_null()) {
    fields.refuse("workspace", "is missing");
    return 0;
  }
  if (const std::int64_t* integer = given->as_integer(); integer && *integer >= 0)
    return static_cast<std::uint64_t>(*integer);
  std::uint64_t number = 0;
  if (const std::string* text = given->as_text()) {
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error == std::errc() && end == text->data() + text->size() && !text->empty()) return number;
  }
  fields.refuse("workspace", "must be a whole number of at least 0, and not " + describe_found(*given));
  return 0;
}

}  // namespace

Append read_append(Fields& fields) {
  Append event;
  event.type = fields.required_text("type");
  event.workspace = read_workspace(fields);
  if (const Value::List* next = fields.list("next"))
    for (const Value& each : *next) {
      if (!each.is_text()) {
        fields.refuse("next", "must be an array of names of sequences");
        break;
      }
      event.next.push_back(*each.as_text());
    }
  if (const Value* payload = fields.any("payload")) event.payload = *payload;
  return event;
}

Result<Append> read_append(const Value& value, const std::string& what) {
  Fields fields(value, what);
  Append event = read_append(fields);
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  return event;
}

Value appended_json(const Appended& appended) {
  Value::List numbers;
  for (Number number : appended.numbers) numbers.push_back(number_value(number));
  return Value::Map{{"offset", number_value(appended.offset)}, {"numbers", std::move(numbers)}};
}

}  // namespace perdure::http
