// A server that is not there: log and rows in this process, for tests and the simulation.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "runtime/mutex.h"
#include "store/remote/row_server.h"

namespace perdure::remote {

/// What several MemoryServers share, as several processes share a database.
class MemoryLog {
 public:
  Moment read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) PERDURE_EXCLUDES(mutex_);
  bool append(const LogEnd& expected, const LogEntry& entry) PERDURE_EXCLUDES(mutex_);
  bool fold(const Fold& fold) PERDURE_EXCLUDES(mutex_);
  /// Becomes what `earlier` is: a standby that lagged, or a backup.
  void restore(MemoryLog& earlier) PERDURE_EXCLUDES(mutex_);

 private:
  std::vector<Row> range(const RangeRead& read) const PERDURE_REQUIRES(mutex_);

  Mutex mutex_;
  LogEnd end_ PERDURE_GUARDED_BY(mutex_);
  Version folded_ PERDURE_GUARDED_BY(mutex_), trimmed_ PERDURE_GUARDED_BY(mutex_);
  std::map<Version, Bytes> log_ PERDURE_GUARDED_BY(mutex_);
  std::map<Bytes, Versioned, std::less<>> rows_ PERDURE_GUARDED_BY(mutex_);
};

/// Rings the bells of all who share the log.
class MemoryBells {
 public:
  void listen(const void* who, Bell bell) PERDURE_EXCLUDES(mutex_);
  void ring(Version version) PERDURE_EXCLUDES(mutex_);
  void ask_for_turn(const void* who) PERDURE_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<const void*, Bell> bells_ PERDURE_GUARDED_BY(mutex_);
};

struct MemoryStore {
  MemoryLog log;
  MemoryBells bells;
};

class MemoryServer final : public RowServer {
 public:
  explicit MemoryServer(std::shared_ptr<MemoryStore> store, ServerLimits limits = {.name = "memory log"})
      : store_(std::move(store)), limits_(std::move(limits)) {}
  ~MemoryServer() override { store_->bells.listen(this, {}); }

  const ServerLimits& limits() const override { return limits_; }
  Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override {
    return store_->log.read(since, keys, ranges);
  }
  Result<Appended> append(const LogEnd& expected, const LogEntry& entry) override;
  Result<bool> fold(const Fold& fold) override { return store_->log.fold(fold); }
  void ask_for_turn() override { store_->bells.ask_for_turn(this); }
  void listen(Bell bell) override { store_->bells.listen(this, std::move(bell)); }

 private:
  const std::shared_ptr<MemoryStore> store_;
  const ServerLimits limits_;
};

}  // namespace perdure::remote
