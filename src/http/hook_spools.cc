#include "http/hook_spools.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/hash.h"
#include "transcript/spool.h"

namespace perdure::http {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStoreSocket = "perdure.sock";
constexpr std::uint16_t kUsualPort = 7420;

bool is_this_machine(const std::string& host) {
  bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

/// The same for whatever links lead there. The socket itself is there only while its daemon is.
std::string plain_path(const std::string& socket) {
  std::error_code error;
  fs::path whole = fs::absolute(socket, error).lexically_normal();
  fs::path directory = fs::weakly_canonical(whole.parent_path(), error);
  return error ? whole.string() : (directory / whole.filename()).string();
}

/// What a hook and its daemon both call it.
std::string target_of(const Url& url) {
  if (url.scheme == Url::Scheme::kUnix) return "unix://" + plain_path(url.path);
  return "http://" + (is_this_machine(url.host) ? "localhost" : url.host) + ":" + std::to_string(url.port);
}

}  // namespace

std::string spool_beside(const std::string& socket) {
  fs::path path(socket);
  std::string name = path.filename() == kStoreSocket ? transcript::kSpoolName : path.filename().string() + ".spool";
  return path.parent_path() / name;
}

std::string spool_at_home(const std::string& home, const Url& url) {
  bool is_usual = url.scheme == Url::Scheme::kHttp && is_this_machine(url.host) && url.port == kUsualPort;
  if (is_usual) return home + "/.perdure-hooks.spool";
  std::array<char, 20> hash{};
  std::snprintf(hash.data(), hash.size(), "%016llx", static_cast<unsigned long long>(hash64(target_of(url), 0)));
  return home + "/.perdure-hooks-" + hash.data() + ".spool";
}

std::vector<std::string> spools_of(const DaemonPlaces& places) {
  std::vector<std::string> paths;
  auto add = [&](std::string path) {
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  };
  std::vector<Url> urls;
  std::vector<std::string> sockets;
  if (!places.directory.empty()) sockets.push_back(places.directory + "/" + std::string(kStoreSocket));
  if (!places.socket.empty()) sockets.push_back(places.socket);
  for (const std::string& socket : sockets) {
    add(spool_beside(plain_path(socket)));
    urls.push_back({Url::Scheme::kUnix, "", 0, socket});
  }
  if (places.port != 0) urls.push_back({Url::Scheme::kHttp, "localhost", places.port, "/"});
  for (const Url& url : urls)
    if (!places.home.empty()) add(spool_at_home(places.home, url));
  return paths;
}

}  // namespace perdure::http
