// Rings when the key with the end of the log changes, or that of those who ask for a turn: a thread that blocks in a
// watch stream of etcd, and sets up a new one when that has ended.
#pragma once

#include "runtime/mutex.h"
#include "runtime/thread.h"
#include "store/etcd/etcd_client.h"
#include "store/etcd/etcd_layout.h"

namespace perdure::etcd {

class Bell {
 public:
  Bell(Client& client, const Layout& layout);
  ~Bell();

  /// As RowServer::listen. The thread begins with the first bell.
  void listen(remote::Bell bell) PERDURE_EXCLUDES(ringing_, mutex_);
  /// As RowServer::ask_for_turn.
  void ask_for_turn();

 private:
  void run() PERDURE_EXCLUDES(ringing_, mutex_);
  void heard(const KeyValue* row) PERDURE_EXCLUDES(ringing_);
  void ring(remote::Ring ring) PERDURE_EXCLUDES(ringing_);

  Client& client_;
  const Layout& layout_;
  const Bytes name_;  ///< It does not hear itself ask.

  /// Held while it rings: whoever replaces the bell waits for that.
  Mutex ringing_;
  remote::Bell bell_ PERDURE_GUARDED_BY(ringing_);

  Mutex mutex_;
  CondVar ending_changed_;
  bool ending_ PERDURE_GUARDED_BY(mutex_) = false;
  bool started_ PERDURE_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace perdure::etcd
