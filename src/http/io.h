// The threads that wait for sockets: one loop for the server and the client of a process.
//
// Nothing that runs in it may block. What it hands out it calls on its threads, what it is handed it takes on any.
#pragma once

#include <memory>

#include "perdure/time.h"
#include "runtime/scheduler.h"

namespace perdure::http {

class Io {
 public:
  explicit Io(unsigned threads = 1);
  /// Stops it and joins the threads: whatever uses it is gone by then.
  ~Io();
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  void post(Task task);
  /// Runs nothing any more, and joins the threads. Idempotent; not on one of them.
  void stop();

  /// The loop itself, for those in this folder that know Boost: defined in http/io_context.h.
  struct Context;
  Context& context() { return *context_; }

 private:
  std::unique_ptr<Context> context_;
};

}  // namespace perdure::http
