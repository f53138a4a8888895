#include "transcript/hook_fields.h"

#include <array>
#include <utility>

#include "perdure/value.h"
#include "transcript/json_walk.h"
#include "transcript/lines.h"

namespace perdure::transcript {
namespace {

struct Wanted {
  std::string_view name;
  std::string HookFields::* text;
};
constexpr auto kWanted = std::to_array<Wanted>({{"session_id", &HookFields::session_id},
                                                {"hook_event_name", &HookFields::hook_event_name},
                                                {"cwd", &HookFields::cwd},
                                                {"transcript_path", &HookFields::transcript_path},
                                                {"prompt", &HookFields::prompt},
                                                {"source", &HookFields::source},
                                                {"notification_type", &HookFields::notification_type}});

/// In words that say where; simdjson has none.
std::unexpected<Error> no_object(std::string_view json) {
  auto value = Value::from_json(json);
  return fail(ErrorCode::kInvalidArgument, value ? "it is not an object" : value.error().message);
}

}  // namespace

Result<HookFields> read_hook_fields(std::string_view json) {
  ondemand::parser parser;
  ondemand::document document;
  if (parser.iterate(json, json.size() + kLinePadding).get(document) != SUCCESS) return no_object(json);
  std::array<std::string_view, kWanted.size()> raw;
  std::string_view time, time_text;
  bool sound = each_member(document, [&](ondemand::raw_json_string key, ondemand::value& value) {
    for (std::size_t i = 0; i < kWanted.size(); ++i)
      if (is(key, kWanted[i].name)) raw[i] = raw_string(value);
    if (!is(key, "timestamp")) return true;
    time_text = raw_string(value);
    return raw_value(value, time);
  });
  // Nothing may follow behind the object.
  if (!sound || document.current_location().error() != simdjson::OUT_OF_BOUNDS) return no_object(json);
  HookFields fields;
  for (std::size_t i = 0; i < kWanted.size(); ++i)
    if (!append_text(parser, raw[i], fields.*kWanted[i].text)) return no_object(json);
  if (time.starts_with('"')) {
    if (!append_text(parser, time_text, fields.timestamp)) return no_object(json);
  } else if (time != "null") {
    fields.timestamp = time;
  }
  return fields;
}

}  // namespace perdure::transcript
