// Who may ask at all: what protects a daemon on this machine from the web pages that its user looks at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "perdure/error.h"

namespace perdure::http {

/// Why the request is refused; nothing if it is not. A browser that was led here by somebody else's page (a name that
/// resolves to this machine, a form, a script) says so in Host, Origin or Sec-Fetch-Site. `hosts` are further names of
/// this daemon, without ports.
std::optional<Response> refused_by_guard(const Exchange& exchange, const std::vector<std::string>& hosts);

}  // namespace perdure::http
