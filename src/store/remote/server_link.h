#pragma once

#include <functional>
#include <memory>

#include "store/remote/row_server.h"

namespace perdure::remote {

/// How the remote engine reaches its server: as RowServer, but that nothing has to be waited for. A simulation, where
/// one thread does everything, has links of its own.
class ServerLink {
 public:
  /// Called once, inside the call that it was given to or later.
  using AppendDone = std::move_only_function<void(Result<Appended>)>;
  using FoldDone = std::move_only_function<void(Result<bool>)>;

  virtual ~ServerLink() = default;
  virtual const ServerLimits& limits() const = 0;
  /// Whether `append` may say kCommitUnknown, and whether threads may wait for the store.
  virtual bool unknown_appends() const = 0;
  virtual bool blocking_calls() const = 0;
  virtual Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) = 0;
  /// `entry` is kept until it is done.
  virtual void append(const LogEnd& expected, const LogEntry& entry, AppendDone done) = 0;
  virtual void fold(const Fold& fold, FoldDone done) = 0;
  virtual void ask_for_turn() = 0;
  virtual void listen(Bell bell) = 0;
};

/// The link to a server that is waited for.
class DirectLink final : public ServerLink {
 public:
  explicit DirectLink(std::unique_ptr<RowServer> server) : server_(std::move(server)) {}

  const ServerLimits& limits() const override { return server_->limits(); }
  bool unknown_appends() const override { return true; }
  bool blocking_calls() const override { return true; }
  Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override {
    return server_->read(since, keys, ranges);
  }
  void append(const LogEnd& expected, const LogEntry& entry, AppendDone done) override {
    done(server_->append(expected, entry));
  }
  void fold(const Fold& fold, FoldDone done) override { done(server_->fold(fold)); }
  void ask_for_turn() override { server_->ask_for_turn(); }
  void listen(Bell bell) override { server_->listen(std::move(bell)); }

 private:
  const std::unique_ptr<RowServer> server_;
};

}  // namespace perdure::remote
