// The fields of a hook that are used; the others may hold whatever they like.
#pragma once

#include <string>
#include <string_view>

#include "perdure/error.h"

namespace perdure::transcript {

/// Texts, which are empty where there is none, or something else. Of a field that is there twice, the last counts.
struct HookFields {
  std::string session_id = {}, hook_event_name = {}, cwd = {}, transcript_path = {}, prompt = {}, source = {},
              notification_type = {};
  /// Anything but null, as it was written, or the text of it.
  std::string timestamp = {};
};

/// Behind `json`, kLinePadding bytes are readable (see lines.h). Errors: kInvalidArgument if it is cut off or no
/// object, or one of these fields is malformed.
Result<HookFields> read_hook_fields(std::string_view json);

}  // namespace perdure::transcript
