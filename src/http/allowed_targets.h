// Whom this process may send requests to.
//
// The URLs of workers and remote behaviours come over the API, so that whoever may set one could otherwise have the
// daemon talk to anything that its machine reaches. By default only this machine is reached, by its loopback addresses;
// `--allow-url` adds more, as prefixes of URLs. What a URL outside of these prefixes names is judged by the numeric
// address that is really connected to, so that a name which resolves to something else gains nothing.
#pragma once

#include <string_view>
#include <vector>

#include "http/url.h"

namespace perdure::http {

class AllowedTargets {
 public:
  /// Loopback addresses alone; no socket of this machine's file system.
  AllowedTargets() = default;
  /// Everything: for a client whose user chooses the URL himself, as the command line.
  static AllowedTargets all();

  /// One more prefix: "http://hooks.internal:8080/" or "unix:///run/app.sock". Scheme, host and port have to be the
  /// same; the path has to begin with that of the prefix, and to go on there at a '/' or '?' if it goes on.
  /// Errors: kInvalidArgument.
  Result<void> allow(std::string_view prefix);

  /// Whether a prefix covers it, so that any address is fine. A path that climbs with ".." is covered by none but one
  /// whose path is "/".
  bool by_prefix(const Url& url) const;
  /// What can be said without connecting: refuses what no address would help, a socket or a numeric address that is
  /// not loopback. Errors: kPermissionDenied, with what to do.
  Result<void> check(const Url& url) const;

 private:
  bool all_ = false;
  std::vector<Url> prefixes_;
};

/// "http://[::1]:8080/x", for messages.
std::string to_string(const Url& url);
/// How a target is refused; `address` is what it resolved to, if that is not what it says.
Error refused_target(const Url& url, std::string_view address = {});
/// Whether `host` is a numeric address, and a loopback one: IPv4 in 127.0.0.0/8, ::1, and both written as the other.
enum class HostIs { kLoopback, kOtherAddress, kName };
HostIs judge_host(std::string_view host);

}  // namespace perdure::http
