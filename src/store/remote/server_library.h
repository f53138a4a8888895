// Where the code for a kind of server comes from.
//
// The client libraries of databases are large and slow to load, and most who run perdure need none of them. So each
// kind of server is a shared object of its own, perdure_postgres.so or perdure_etcd.so, that is loaded when a store is
// opened there. PERDURE_SERVER, below, is all that it exports.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "store/remote/row_server.h"

namespace perdure::remote {

/// Loads perdure_KIND.so, once for the process, and opens a server with it. It is taken from the directory that
/// PERDURE_ENGINES names, or, without one, from where find_library finds it for this program.
/// Errors: kInvalidArgument if it is not there or of another perdure, and those of opening.
Result<std::unique_ptr<RowServer>> open_server(std::string_view kind, const ServerOptions& options);

/// Where the shared object `name` is, for a program whose file is `program`: in lib/perdure of the installation that
/// the program belongs to; in `engines` beside the program or up to two directories above it, as in a build; in
/// /usr/local/lib/perdure or /usr/lib/perdure.
///
/// What somebody else may have put there is left alone: directory and file must belong to root, to whoever runs this,
/// or to whoever the program belongs to, and nobody else may be able to write to them. A program in a directory of its
/// own below /tmp does not load what a stranger has put into /tmp/engines. Errors: kInvalidArgument, with the places
/// and what was left alone.
Result<std::filesystem::path> find_library(const std::string& name, const std::filesystem::path& program);

}  // namespace perdure::remote

/// Exports `open`, a function from ServerOptions to a Result of a server, and for whom it was built.
#define PERDURE_SERVER(open)                                                                                \
  extern "C" {                                                                                              \
  __attribute__((visibility("default"))) extern const char* const perdure_server_version = PERDURE_VERSION; \
  __attribute__((visibility("default"))) void perdure_open_server(                                          \
      const perdure::remote::ServerOptions& options,                                                        \
      perdure::Result<std::unique_ptr<perdure::remote::RowServer>>& opened) {                               \
    opened = open(options);                                                                                 \
  }                                                                                                         \
  }                                                                                                         \
  static_assert(std::is_same_v<decltype(perdure_open_server), perdure::remote::OpenServer>)
