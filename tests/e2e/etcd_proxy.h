// Stands before an etcd of a test, and answers some requests as a full one does.
#pragma once

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "runtime/mutex.h"

namespace perdure::e2e {

class EtcdProxy {
 public:
  enum class Then {
    kPass,
    kRefuse,       ///< As etcd does in front of its raft log.
    kDoAndRefuse,  ///< As it does behind it.
    kLose,         ///< As if the connection were lost.
  };

  explicit EtcdProxy(const std::string& endpoint)
      : kv_(*this),
        maintenance_(*this),
        channel_(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials())),
        kv_stub_(etcdserverpb::KV::NewStub(channel_)),
        maintenance_stub_(etcdserverpb::Maintenance::NewStub(channel_)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&kv_);
    builder.RegisterService(&maintenance_);
    server_ = builder.BuildAndStart();
  }
  ~EtcdProxy() { server_->Shutdown(); }

  std::string url() const { return "etcd://127.0.0.1:" + std::to_string(port_); }
  /// What becomes of the next Txns; those after them pass.
  void next(std::deque<Then> what) {
    MutexLock lock(mutex_);
    next_ = std::move(what);
  }

 private:
  struct Kv final : etcdserverpb::KV::Service {
    explicit Kv(EtcdProxy& in) : proxy(in) {}
    grpc::Status Txn(grpc::ServerContext*, const etcdserverpb::TxnRequest* request,
                     etcdserverpb::TxnResponse* response) override {
      const Then then = proxy.take();
      if (then == Then::kLose) return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
      grpc::ClientContext context;
      if (then != Then::kRefuse)
        if (auto status = proxy.kv_stub_->Txn(&context, *request, response); !status.ok()) return status;
      if (then == Then::kPass) return grpc::Status::OK;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"};
    }
    EtcdProxy& proxy;
  };
  struct Maintenance final : etcdserverpb::Maintenance::Service {
    explicit Maintenance(EtcdProxy& in) : proxy(in) {}
    grpc::Status Status(grpc::ServerContext*, const etcdserverpb::StatusRequest* request,
                        etcdserverpb::StatusResponse* response) override {
      grpc::ClientContext context;
      return proxy.maintenance_stub_->Status(&context, *request, response);
    }
    EtcdProxy& proxy;
  };

  Then take() {
    MutexLock lock(mutex_);
    if (next_.empty()) return Then::kPass;
    Then then = next_.front();
    next_.pop_front();
    return then;
  }

  Kv kv_;
  Maintenance maintenance_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<etcdserverpb::KV::Stub> kv_stub_;
  const std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance_stub_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  std::deque<Then> next_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::e2e
