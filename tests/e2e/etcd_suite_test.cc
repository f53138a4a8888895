// What every RowServer must do, on a real etcd.
#include "etcd_server.h"
#include "scratch.h"
#include "store/etcd/etcd_server.h"
#include "store/remote/row_server_suite.h"

namespace perdure::remote {
namespace {

/// One for the whole binary, and a prefix of it for each store.
e2e::EtcdCluster& the_cluster() {
  static e2e::Scratch scratch;
  static e2e::EtcdCluster cluster(scratch / "etcd");
  return cluster;
}

class EtcdStore : public StoreUnderTest {
 public:
  Result<std::unique_ptr<RowServer>> open() override { return etcd::EtcdServer::open({.url = url_}); }

 private:
  static std::string fresh_prefix() {
    static int count = 0;
    return "/t" + std::to_string(++count);
  }
  const std::string url_ = the_cluster().url(fresh_prefix());
};

std::unique_ptr<StoreUnderTest> fresh_etcd() {
  return std::make_unique<EtcdStore>();
}

INSTANTIATE_TEST_SUITE_P(Etcd, RowServerTest, testing::Values(&fresh_etcd));

}  // namespace
}  // namespace perdure::remote
