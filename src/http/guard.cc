#include "http/guard.h"

#include <algorithm>
#include <array>

#include "http/problem.h"

namespace perdure::http {
namespace {

/// "localhost:7420" and "[::1]:7420" without the port.
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with("[")) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_loopback(std::string_view host) {
  if (equal_but_for_case(host, "localhost") || host == "[::1]") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::optional<Response> refused_by_guard(const Exchange& exchange, const std::vector<std::string>& hosts) {
  const Headers& headers = exchange.request().headers;
  auto known = [&](std::string_view host) {
    return is_loopback(host) ||
           std::ranges::any_of(hosts, [&](const std::string& each) { return equal_but_for_case(each, host); });
  };
  std::size_t count = 0;
  for (const Header& header : headers.all()) count += equal_but_for_case(header.name, "host") ? 1 : 0;
  if (count > 1) return problem(400, "invalid_argument", "the request has more than one Host header");
  const std::string* host = headers.find("host");
  if (!exchange.is_local_socket() && (!host || !known(host_of(*host))))
    return problem(421, "permission_denied",
                   "the Host header names '" + (host ? *host : std::string()) +
                       "', which is not this daemon; use 127.0.0.1 or localhost");
  if (const std::string* site = headers.find("sec-fetch-site"); site && *site != "same-origin" && *site != "none")
    return problem(403, "permission_denied", "a web page of another site may not use this API");
  const std::string* origin = headers.find("origin");
  if (!origin) return std::nullopt;
  std::size_t scheme = origin->find("://");
  bool same = scheme != std::string::npos && host && std::string_view(*origin).substr(scheme + 3) == *host;
  if (!same) return problem(403, "permission_denied", "a web page of " + *origin + " may not use this API");
  return std::nullopt;
}

}  // namespace perdure::http
