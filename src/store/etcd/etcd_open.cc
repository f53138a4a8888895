// What the shared object of this server exports.
#include <type_traits>

#include "store/etcd/etcd_server.h"

extern "C" __attribute__((visibility("default"))) void perdure_open_server(
    const perdure::remote::ServerOptions& options,
    perdure::Result<std::unique_ptr<perdure::remote::RowServer>>& opened) {
  opened = perdure::etcd::EtcdServer::open(options);
}

static_assert(std::is_same_v<decltype(perdure_open_server), perdure::remote::OpenServer>);
