// Rings when the key with the end of the log changes: a thread that blocks in a watch stream of etcd, and sets up a new
// one when that has ended.
#pragma once

#include <functional>

#include "runtime/mutex.h"
#include "runtime/thread.h"
#include "store/etcd/etcd_client.h"
#include "store/etcd/etcd_layout.h"

namespace perdure::etcd {

class Bell {
 public:
  Bell(Client& client, const Layout& layout) : client_(client), layout_(layout) {}
  ~Bell();

  /// As RowServer::listen. The thread begins with the first bell.
  void listen(std::function<void(Version)> bell) PERDURE_EXCLUDES(ringing_, mutex_);

 private:
  void run() PERDURE_EXCLUDES(ringing_, mutex_);
  void ring(Version reached) PERDURE_EXCLUDES(ringing_);

  Client& client_;
  const Layout& layout_;

  /// Held while it rings: whoever replaces the bell waits for that.
  Mutex ringing_;
  std::function<void(Version)> bell_ PERDURE_GUARDED_BY(ringing_);

  Mutex mutex_;
  CondVar ending_changed_;
  bool ending_ PERDURE_GUARDED_BY(mutex_) = false;
  bool started_ PERDURE_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace perdure::etcd
