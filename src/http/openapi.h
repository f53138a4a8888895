#pragma once

#include <string>

namespace perdure::http {

/// The description of the API, in OpenAPI 3.1: src/http/openapi.json as it was built in.
std::string openapi();

}  // namespace perdure::http
