// Errors as RFC 9457 has them: application/problem+json.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"
#include "perdure/error.h"

namespace perdure::http {

/// The answer to a request that failed: status, code and outcome are those of the error table.
Response problem(const Error& error);
/// One that the table does not know, and that had no effect.
Response problem(int status, std::string_view code, std::string_view message);

}  // namespace perdure::http
