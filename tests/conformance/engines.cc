#include <map>

#include "conformance/conformance.h"
#include "store/lmdb/lmdb_engine.h"
#include "store/memory/memory_engine.h"
#include "store/remote/memory_server.h"
#include "store/remote/remote_engine.h"

namespace perdure::conformance {

// A later engine adds its line here.
const std::vector<EngineUnderTest> kEngines = {
    {"memory",
     [](const std::filesystem::path&, Scheduler& scheduler, const StoreOptions&) -> Result<std::unique_ptr<Engine>> {
       return std::make_unique<memory::MemoryEngine>(scheduler);
     }},
    {"remote",
     [](const std::filesystem::path& directory, Scheduler& scheduler, const StoreOptions& options) {
       static std::map<std::filesystem::path, std::shared_ptr<remote::MemoryStore>> servers;
       auto& store = servers[directory];
       if (!store) store = std::make_shared<remote::MemoryStore>();
       auto server = std::make_unique<remote::MemoryServer>(store);
       return remote::RemoteEngine::open(std::move(server), scheduler, forgetful(options), {.fold_bytes = kFoldBytes});
     }},
    {"lmdb", [](const std::filesystem::path& directory, Scheduler& scheduler,
                const StoreOptions& options) { return lmdb::open_engine(directory, scheduler, options); }},
};

}  // namespace perdure::conformance
