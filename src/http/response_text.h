// Answers as they go over the wire.
#pragma once

#include <string>

#include "http/message.h"

namespace perdure::http {

/// "Not Found"
std::string_view reason_of(int status);

enum class Body { kSized, kChunked };
enum class Keep { kAlive, kClose };
/// The status line and the headers, up to the empty line.
std::string head_text(const Response& response, Body body, Keep keep);

}  // namespace perdure::http
