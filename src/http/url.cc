#include "http/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace perdure::http {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument, "the URL '" + std::string(text) + "' " + std::string(why));
}

}  // namespace

std::string Url::authority() const {
  if (scheme == Scheme::kUnix) return "localhost";
  std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == 80 ? out : out + ":" + std::to_string(port);
}

Result<Url> Url::parse(std::string_view text) {
  constexpr std::string_view kHttp = "http://", kUnix = "unix://";
  Url url;
  if (text.starts_with(kUnix)) {
    url.scheme = Scheme::kUnix;
    url.path = text.substr(kUnix.size());
    if (!url.path.starts_with("/")) return wrong(text, "must name a socket by its whole path: unix:///run/x.sock");
    // What the kernel has room for in the address of a socket, without the zero behind it.
    if (url.path.size() > 107 || url.path.find('\0') != std::string::npos)
      return wrong(text, "must name a socket whose path has at most 107 bytes, and no zero byte");
    return url;
  }
  // The path of a socket may have them: it is never part of a request.
  if (text.find_first_of(std::string_view(" \t\r\n#", 5)) != std::string_view::npos)
    return wrong(text, "has a blank or a '#' in it, which no such URL can have");
  if (text.starts_with("https://")) return wrong(text, "asks for TLS, which is not there yet; use http://");
  if (!text.starts_with(kHttp)) return wrong(text, "must begin with http:// or unix://");
  std::string_view rest = text.substr(kHttp.size());
  std::size_t slash = rest.find_first_of("/?");
  std::string_view place = rest.substr(0, slash);
  url.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  if (url.path.starts_with("?")) url.path.insert(0, "/");
  if (place.find('@') != std::string_view::npos) return wrong(text, "has a user in it; leave that out");
  std::string_view port;
  if (place.starts_with("[")) {
    std::size_t end = place.find(']');
    if (end == std::string_view::npos) return wrong(text, "lacks the ']' behind its address");
    url.host = place.substr(1, end - 1);
    if (in6_addr address; ::inet_pton(AF_INET6, url.host.c_str(), &address) != 1)
      return wrong(text, "has something in brackets that is no IPv6 address");
    place.remove_prefix(end + 1);
    if (!place.empty() && !place.starts_with(":")) return wrong(text, "has something behind its address");
    if (!place.empty()) port = place.substr(1);
    if (!place.empty() && port.empty()) return wrong(text, "has a ':' without a port");
  } else {
    std::size_t colon = place.find(':');
    url.host = place.substr(0, colon);
    if (!std::ranges::all_of(url.host, is_unreserved))
      return wrong(text, "names a host with characters that no host can have");
    if (colon != std::string_view::npos) {
      port = place.substr(colon + 1);
      if (port.empty()) return wrong(text, "has a ':' without a port");
    }
  }
  if (url.host.empty()) return wrong(text, "names no host");
  if (port.empty()) return url;
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size() || url.port == 0)
    return wrong(text, "has the port '" + std::string(port) + "', which is not a number from 1 to 65535");
  return url;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      return fail(ErrorCode::kInvalidArgument,
                  "'" + std::string(text) + "' has a '%' that is not followed by two hexadecimal digits");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace perdure::http
