#include "store/remote/memory_server.h"

#include "store/remote/row_server_suite.h"

namespace perdure::remote {
namespace {

class MemoryUnderTest : public StoreUnderTest {
 public:
  Result<std::unique_ptr<RowServer>> open() override { return std::make_unique<MemoryServer>(store_); }

 private:
  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

std::unique_ptr<StoreUnderTest> fresh_memory() {
  return std::make_unique<MemoryUnderTest>();
}

INSTANTIATE_TEST_SUITE_P(Memory, RowServerTest, testing::Values(&fresh_memory));

}  // namespace
}  // namespace perdure::remote
