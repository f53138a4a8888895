#include "store/etcd/etcd_url.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace perdure::etcd {
namespace {

constexpr std::string_view kScheme = "etcd://";
constexpr std::string_view kDefaultPort = "2379";
constexpr std::string_view kShape = "; the url is etcd://[user:password@]host:port[,host:port][/prefix][?options]";

std::unexpected<Error> wrong(const std::string& what) {
  return fail(ErrorCode::kInvalidArgument, "the url of etcd " + what + std::string(kShape));
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return {};
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    auto low = high ? hex_digit(text[i + 2]) : std::nullopt;
    if (!low) return wrong("has a '%' that no two hexadecimal digits follow");
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

Result<std::string> parse_endpoint(std::string_view text) {
  std::string shown = "'" + std::string(text) + "'";
  std::size_t after_host = text.starts_with('[') ? text.find(']') : text.find(':');
  if (text.starts_with('[') && after_host == text.npos) return wrong("has an address without its ']': " + shown);
  if (text.starts_with('[')) ++after_host;
  std::string_view host = text.substr(0, after_host);
  if (host.empty() || host == "[]") return wrong("has an endpoint without a host: " + shown);
  if (after_host >= text.size()) return std::string(host) + ":" + std::string(kDefaultPort);
  std::string_view port = text.substr(after_host + 1);
  bool digits = text[after_host] == ':' && !port.empty() && port.size() <= 5 &&
                std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  int number = digits ? std::stoi(std::string(port)) : 0;
  if (number < 1 || number > 65535) return wrong("has an endpoint with a port that is no number of one: " + shown);
  return std::string(text);
}

Result<void> parse_authority(std::string_view text, Url& url) {
  if (std::size_t at = text.rfind('@'); at != text.npos) {
    std::string_view login = text.substr(0, at);
    std::size_t colon = login.find(':');
    auto user = unescape(login.substr(0, colon));
    if (!user) return std::unexpected(std::move(user.error()));
    if (user->empty() || colon == login.npos) return wrong("needs both a user and a password before the '@'");
    auto password = unescape(login.substr(colon + 1));
    if (!password) return std::unexpected(std::move(password.error()));
    url.user = std::move(*user);
    url.password = std::move(*password);
    text.remove_prefix(at + 1);
  }
  for (std::string_view part : split(text, ',')) {
    auto endpoint = parse_endpoint(part);
    if (!endpoint) return std::unexpected(std::move(endpoint.error()));
    url.endpoints.push_back(std::move(*endpoint));
  }
  return {};
}

// A store below the rows or the log of another would be part of it.
Result<void> parse_prefix(std::string_view text, Url& url) {
  auto prefix = unescape(text);
  if (!prefix) return std::unexpected(std::move(prefix.error()));
  for (std::string_view part : split(*prefix, '/')) {
    if (part.empty()) return wrong("has a prefix with an empty part: '" + *prefix + "'");
    if (part == "row" || part == "log") return wrong("has a prefix with a part that perdure uses itself: row or log");
  }
  url.prefix = std::move(*prefix);
  return {};
}

Result<void> parse_switch(const std::string& name, const std::string& value, bool& to) {
  if (value != "on" && value != "off") return wrong("has " + name + "=" + value + ", which is on or off");
  to = value == "on";
  return {};
}

Result<void> parse_option(std::string_view text, Url& url) {
  std::size_t equals = text.find('=');
  std::string name(text.substr(0, equals));
  auto value = unescape(equals == text.npos ? std::string_view() : text.substr(equals + 1));
  if (!value) return std::unexpected(std::move(value.error()));
  if (value->empty()) return wrong("has an option without a value: '" + name + "'");
  if (name == "tls") return parse_switch(name, *value, url.tls);
  if (name == "compact") return parse_switch(name, *value, url.compact);
  std::string* file = name == "ca" ? &url.ca : name == "cert" ? &url.cert : name == "key" ? &url.key : nullptr;
  if (!file) return wrong("has the option '" + name + "', which is none of tls, ca, cert, key and compact");
  *file = std::move(*value);
  return {};
}

}  // namespace

Result<Url> parse_url(const std::string& text) {
  std::string_view rest = text;
  if (!rest.starts_with(kScheme)) return wrong("does not begin with " + std::string(kScheme));
  rest.remove_prefix(kScheme.size());
  Url url;
  std::size_t question = rest.find('?');
  std::string_view options = question == rest.npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  std::size_t slash = rest.find('/');
  // Of a password that has a slash, a part would be taken for an endpoint, and shown.
  if (slash != rest.npos && rest.find('@', slash) != rest.npos)
    return wrong("has an '@' behind its first '/'; in a password write / as %2f, in a prefix @ as %40");
  if (auto good = parse_authority(rest.substr(0, slash), url); !good) return std::unexpected(std::move(good.error()));
  if (slash != rest.npos && slash + 1 < rest.size())
    if (auto good = parse_prefix(rest.substr(slash + 1), url); !good) return std::unexpected(std::move(good.error()));
  if (!options.empty())
    for (std::string_view option : split(options, '&'))
      if (auto good = parse_option(option, url); !good) return std::unexpected(std::move(good.error()));
  if (!url.tls && !(url.ca.empty() && url.cert.empty() && url.key.empty()))
    return wrong("names certificates without tls=on");
  if (url.cert.empty() != url.key.empty()) return wrong("needs both cert and key, or none of them");
  return url;
}

std::string place_of(const Url& url) {
  std::string place;
  for (const std::string& endpoint : url.endpoints) place += (place.empty() ? "" : ",") + endpoint;
  return place;
}

}  // namespace perdure::etcd
