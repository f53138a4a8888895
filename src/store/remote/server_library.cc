#include "store/remote/server_library.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace perdure::remote {
namespace {

namespace fs = std::filesystem;

/// So far below its top do the programs of a build stand.
constexpr int kBuildDepth = 2;

std::vector<fs::path> places_for(const fs::path& program) {
  std::vector<fs::path> places;
  fs::path at = program.parent_path();
  if (at.has_relative_path()) places.push_back(at.parent_path() / PERDURE_LIBDIR / "perdure");
  for (int up = 0; up <= kBuildDepth && at.has_relative_path(); ++up, at = at.parent_path())
    places.push_back(at / "engines");
  places.emplace_back("/usr/local/lib/perdure");
  places.emplace_back("/usr/lib/perdure");
  return places;
}

/// Those whose code runs in this process anyway.
class Trusted {
 public:
  explicit Trusted(const fs::path& program) {
    struct stat file = {};
    if (stat(program.c_str(), &file) == 0) owner_ = file.st_uid;
  }

  /// Whether they alone can have put something there. A link must be theirs too.
  bool alone_write_to(const fs::path& path) const {
    struct stat link = {}, file = {};
    return lstat(path.c_str(), &link) == 0 && stat(path.c_str(), &file) == 0 && include(link.st_uid) &&
           include(file.st_uid) && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  }

 private:
  bool include(uid_t user) const { return user == 0 || user == geteuid() || user == owner_; }

  uid_t owner_ = 0;
};

std::unexpected<Error> not_found(const std::string& name, const std::string& looked, const std::string& left_alone) {
  return fail(
      ErrorCode::kInvalidArgument,
      "this perdure has no engine for such a store: there is no " + name + " in " + looked +
          (left_alone.empty() ? "" : "; what is in " + left_alone + " is left alone, as others may write to it") +
          "; install it, or name its directory in PERDURE_ENGINES");
}

void list(std::string& all, const fs::path& one) {
  all += (all.empty() ? "" : ", ") + one.string();
}

Result<fs::path> library_of_this_program(const std::string& name) {
  std::error_code error;
  // Whoever names a directory answers for it. Not so in a program that runs with the rights of somebody else.
  if (const char* named = secure_getenv("PERDURE_ENGINES"); named && *named) {
    fs::path path = fs::path(named) / name;
    return fs::exists(path, error) ? Result<fs::path>(path) : not_found(name, named, "");
  }
  return find_library(name, fs::read_symlink("/proc/self/exe", error));
}

}  // namespace

Result<fs::path> find_library(const std::string& name, const fs::path& program) {
  Trusted trusted(program);
  std::string looked, left_alone;
  for (const fs::path& place : places_for(program)) {
    std::error_code error;
    bool there = fs::exists(place / name, error);
    if (there && trusted.alone_write_to(place) && trusted.alone_write_to(place / name)) return place / name;
    list(looked, place);
    if (there) list(left_alone, place);
  }
  return not_found(name, looked, left_alone);
}

Result<std::unique_ptr<RowServer>> open_server(std::string_view kind, const ServerOptions& options) {
  auto path = library_of_this_program("perdure_" + std::string(kind) + ".so");
  if (!path) return std::unexpected(std::move(path.error()));
  // Never closed: what it made may outlive the store, its threads for one.
  void* library = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ErrorCode::kInvalidArgument, "cannot load the engine for this store: " + std::string(dlerror()));
  auto* version = static_cast<const char* const*>(dlsym(library, "perdure_server_version"));
  auto* open = reinterpret_cast<OpenServer*>(dlsym(library, "perdure_open_server"));
  if (!open || !version || std::string_view(*version) != PERDURE_VERSION)
    return fail(ErrorCode::kInvalidArgument, path->string() + " is not of this version of perdure, " PERDURE_VERSION
                                                              "; install both from one build");
  Result<std::unique_ptr<RowServer>> opened;
  open(options, opened);
  return opened;
}

}  // namespace perdure::remote
