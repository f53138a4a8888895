#include "conformance/conformance.h"
#include "e2e/etcd_server.h"
#include "e2e/scratch.h"
#include "store/etcd/etcd_server.h"
#include "store/remote/remote_engine.h"

namespace perdure::conformance {

// One server for the whole program, and a part of it for each test.
const std::vector<EngineUnderTest> kEngines = {
    {"etcd",
     [](const std::filesystem::path& directory, Scheduler& scheduler,
        const StoreOptions& options) -> Result<std::unique_ptr<Engine>> {
       static e2e::Scratch scratch;
       static e2e::EtcdCluster server(scratch / "etcd");
       auto opened =
           etcd::EtcdServer::open({.url = server.url("/" + directory.filename().string()), .log = options.log});
       if (!opened) return std::unexpected(std::move(opened.error()));
       return remote::RemoteEngine::open(std::move(*opened), scheduler, forgetful(options), {.fold_bytes = kFoldBytes});
     }},
};

}  // namespace perdure::conformance
