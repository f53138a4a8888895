// Events of a log as JSON, both ways.
#pragma once

#include <string>

#include "http/fields.h"
#include "perdure/sequence.h"

namespace perdure::http {

/// {"type", "workspace", "next", "payload"}, out of `fields`, which may have more.
Append read_append(Fields& fields);
Result<Append> read_append(const Value& value, const std::string& what);
/// {"offset", "numbers"}
Value appended_json(const Appended& appended);

}  // namespace perdure::http
