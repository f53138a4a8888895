#include "conformance/conformance.h"
#include "e2e/postgres_server.h"
#include "store/postgres/postgres_server.h"
#include "store/remote/remote_engine.h"

namespace perdure::conformance {

// One server for the whole program, and a part of it for each test.
const std::vector<EngineUnderTest> kEngines = {
    {"postgres",
     [](const std::filesystem::path& directory, Scheduler& scheduler,
        const StoreOptions& options) -> Result<std::unique_ptr<Engine>> {
       static e2e::PostgresServer server;
       // Names differ by the case of their letters, which schemas do not.
       std::string name = "p";
       for (unsigned char byte : directory.filename().string()) name += std::to_string(byte % 64);
       auto opened = postgres::PostgresServer::open({.url = server.url("perdure_schema=" + name), .log = options.log});
       if (!opened) return std::unexpected(std::move(opened.error()));
       return remote::RemoteEngine::open(std::move(*opened), scheduler, forgetful(options), {.fold_bytes = kFoldBytes});
     }},
};

}  // namespace perdure::conformance
