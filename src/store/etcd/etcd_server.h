// The rows and the log of a store in an etcd cluster: what remote/row_server.h asks for, on etcd 3.4 or newer.
//
// To append is one Txn that compares the end of the log; its other branch reads what is there instead. Everything is
// written under one prefix (etcd_layout.h); only compaction, which etcd has for all of its keys at once, reaches
// beyond: with each fold, what is older than the fold before goes, for everybody on that etcd. compact=off in the url
// leaves it to the operator, who must see to it then, or etcd fills up.
//
// Nothing here rests on leases or clocks of etcd.
#pragma once

#include "store/etcd/etcd_bell.h"
#include "store/etcd/etcd_client.h"
#include "store/etcd/etcd_fold.h"
#include "store/etcd/etcd_layout.h"
#include "store/etcd/etcd_read.h"
#include "store/remote/row_server.h"

namespace perdure::etcd {

class EtcdServer final : public remote::RowServer {
 public:
  /// Errors: as remote::OpenServer.
  static Result<std::unique_ptr<remote::RowServer>> open(const remote::ServerOptions& options);

  const remote::ServerLimits& limits() const override { return limits_; }
  Result<remote::Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override;
  Result<remote::Appended> append(const remote::LogEnd& expected, const remote::LogEntry& entry) override;
  Result<bool> fold(const remote::Fold& fold) override { return folder_.fold(fold); }
  void ask_for_turn() override { bell_.ask_for_turn(); }
  void listen(remote::Bell bell) override { bell_.listen(std::move(bell)); }

 private:
  EtcdServer(const Url& url, std::unique_ptr<Client> client);
  /// Makes the keys of a new store, or looks whether those of an old one can be used.
  Result<void> make_base();
  Result<void> check_base(const Bytes& format);
  /// What became of an append that etcd had no room for: of those that it takes together before it sees that it is
  /// full, it does each, and yet says that it is full. All others have no effect. Errors: `full` if it was not done, or
  /// kCommitUnknown.
  Result<remote::Appended> look_after_full(const remote::LogEnd& expected, const remote::LogEntry& entry, Error full);

  const std::string prefix_;
  const Layout layout_;
  const remote::ServerLimits limits_;
  const std::unique_ptr<Client> client_;
  Pace pace_;
  Folder folder_;
  Bell bell_;
};

}  // namespace perdure::etcd
