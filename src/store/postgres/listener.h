// Hears what is notified on the channel of the schema, on a connection and a thread of its own.
#pragma once

#include <string>

#include "runtime/mutex.h"
#include "runtime/thread.h"
#include "store/postgres/pool.h"
#include "store/remote/row_server.h"

namespace perdure::postgres {

class Listener {
 public:
  /// If the server has no room for a connection to listen on, `yields` gives way.
  Listener(const Target& target, Reach& reach, Pool& yields);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// As RowServer::listen. The thread starts with the first bell.
  void listen(remote::Bell bell);
  /// What others hear if this is notified: that this one asks for a turn. It does not hear itself.
  const std::string& plea() const { return plea_; }

 private:
  enum class Waited { kHeard, kQuiet, kEnd };

  void loop();
  /// Listens until the connection is lost or the end has come.
  void hear(Connection& connection);
  /// Until something comes on `socket` (-1 for none), for a while, or to the end.
  Waited wait(int socket, Duration time);
  void ring(remote::Ring ring);

  const Target target_;
  Reach& reach_;
  Pool& yields_;
  const std::string plea_;
  const int end_;  ///< An eventfd: readable when the loop is to end.
  Mutex mutex_;
  bool started_ PERDURE_GUARDED_BY(mutex_) = false;
  remote::Bell bell_ PERDURE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace perdure::postgres
