#include "http/allowed_targets.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "http/message.h"

namespace perdure::http {
namespace {

/// Whether some segment of the path is "..", also in percent-encoding.
bool climbs(std::string_view path) {
  path = path.substr(0, path.find('?'));
  for (std::size_t begin = 0; begin < path.size();) {
    std::size_t end = std::min(path.find_first_of("/\\", begin), path.size());
    auto segment = percent_decode(path.substr(begin, end - begin));
    if (!segment || *segment == ".." || segment->find_first_of("/\\") != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

bool covers(std::string_view prefix, std::string_view path) {
  if (prefix == "/") return true;
  if (!path.starts_with(prefix) || climbs(path)) return false;
  return path.size() == prefix.size() || prefix.ends_with('/') || path[prefix.size()] == '/' ||
         path[prefix.size()] == '?';
}

}  // namespace

AllowedTargets AllowedTargets::all() {
  AllowedTargets targets;
  targets.all_ = true;
  return targets;
}

Result<void> AllowedTargets::allow(std::string_view prefix) {
  auto url = Url::parse(prefix);
  if (!url) return std::unexpected(std::move(url.error()));
  prefixes_.push_back(std::move(*url));
  return {};
}

bool AllowedTargets::by_prefix(const Url& url) const {
  return all_ || std::ranges::any_of(prefixes_, [&](const Url& prefix) {
           if (prefix.scheme != url.scheme) return false;
           if (url.scheme == Url::Scheme::kUnix) return prefix.path == url.path;
           return prefix.port == url.port && equal_but_for_case(prefix.host, url.host) && covers(prefix.path, url.path);
         });
}

Result<void> AllowedTargets::check(const Url& url) const {
  if (by_prefix(url)) return {};
  if (url.scheme == Url::Scheme::kUnix || judge_host(url.host) == HostIs::kOtherAddress)
    return std::unexpected(refused_target(url));
  return {};
}

std::string to_string(const Url& url) {
  return url.scheme == Url::Scheme::kUnix ? "unix://" + url.path : "http://" + url.authority() + url.path;
}

Error refused_target(const Url& url, std::string_view address) {
  std::string text = to_string(url);
  std::string prefix = url.scheme == Url::Scheme::kUnix ? text : "http://" + url.authority() + "/";
  std::string which = address.empty() ? "" : ", which is " + std::string(address) + ",";
  return {ErrorCode::kPermissionDenied, "requests to " + text + which +
                                            " are not allowed: only loopback addresses are; start the daemon with "
                                            "--allow-url " +
                                            prefix + " to allow it"};
}

HostIs judge_host(std::string_view host) {
  std::string text(host.substr(0, host.find('%')));
  std::array<unsigned char, 16> bytes = {};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1)
    return bytes[0] == 127 ? HostIs::kLoopback : HostIs::kOtherAddress;
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1) return HostIs::kName;
  static constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr std::array<unsigned char, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  bool mapped = std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0;
  return bytes == kLoopback || (mapped && bytes[12] == 127) ? HostIs::kLoopback : HostIs::kOtherAddress;
}

}  // namespace perdure::http
