#include "store/remote/server_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace perdure::remote {
namespace {

std::vector<std::filesystem::path> directories() {
  if (const char* named = std::getenv("PERDURE_ENGINES"); named && *named) return {named};
  std::vector<std::filesystem::path> found;
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  // In a build, the programs stand in its folders.
  if (!error)
    for (auto at = program; at.has_relative_path() && found.size() < 5; at = at.parent_path())
      found.push_back(at / "engines");
  if (!error) found.push_back(program.parent_path() / PERDURE_LIBDIR / "perdure");
  found.emplace_back("/usr/local/lib/perdure");
  found.emplace_back("/usr/lib/perdure");
  return found;
}

}  // namespace

Result<std::unique_ptr<RowServer>> open_server(std::string_view kind, const ServerOptions& options) {
  std::string name = "perdure_" + std::string(kind) + ".so";
  std::string looked;
  for (const auto& directory : directories()) {
    std::filesystem::path path = directory / name;
    looked += (looked.empty() ? "" : ", ") + directory.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    // Never closed: what it made may outlive the store, its threads for one.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return fail(ErrorCode::kInvalidArgument, "cannot load the engine for this store: " + std::string(dlerror()));
    auto* version = static_cast<const char* const*>(dlsym(library, "perdure_server_version"));
    auto* open = reinterpret_cast<OpenServer*>(dlsym(library, "perdure_open_server"));
    if (!open || !version || std::string_view(*version) != PERDURE_VERSION)
      return fail(ErrorCode::kInvalidArgument, path.string() + " is not of this version of perdure, " PERDURE_VERSION
                                                               "; install both from one build");
    Result<std::unique_ptr<RowServer>> opened;
    open(options, opened);
    return opened;
  }
  return fail(ErrorCode::kInvalidArgument, "this perdure has no engine for such a store: there is no " + name + " in " +
                                               looked + "; install it, or name its directory in PERDURE_ENGINES");
}

}  // namespace perdure::remote
