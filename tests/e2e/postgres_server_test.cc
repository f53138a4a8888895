#include "postgres_server.h"

#include <gtest/gtest.h>

#include "store/postgres/postgres_server.h"
#include "store/remote/row_server_suite.h"

namespace perdure::remote {
namespace {

/// One for the whole binary: making a cluster takes longer than most tests.
e2e::PostgresServer& the_server() {
  static e2e::PostgresServer server;
  return server;
}

std::string fresh_schema() {
  static std::atomic<int> count = 0;
  return "perdure_schema=t" + std::to_string(++count);
}

class PostgresStore : public StoreUnderTest {
 public:
  Result<std::unique_ptr<RowServer>> open() override { return postgres::PostgresServer::open({.url = url_}); }

 private:
  const std::string url_ = the_server().url(fresh_schema());
};

std::unique_ptr<StoreUnderTest> fresh_postgres() {
  return std::make_unique<PostgresStore>();
}

INSTANTIATE_TEST_SUITE_P(Postgres, RowServerTest, testing::Values(&fresh_postgres));

}  // namespace
}  // namespace perdure::remote
