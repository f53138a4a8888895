// What the loader of engines looks for in perdure_postgres.so.
#include <type_traits>

#include "store/postgres/postgres_server.h"

extern "C" __attribute__((visibility("default"))) void perdure_open_server(
    const perdure::remote::ServerOptions& options,
    perdure::Result<std::unique_ptr<perdure::remote::RowServer>>& opened) {
  opened = perdure::postgres::PostgresServer::open(options);
}

static_assert(std::is_same_v<decltype(perdure_open_server), perdure::remote::OpenServer>);
