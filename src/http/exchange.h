// One request, and the way to answer it.
#pragma once

#include <memory>
#include <string>

#include "http/message.h"
#include "perdure/cancel.h"
#include "runtime/scheduler.h"

namespace perdure::http {

/// An answer that comes piece by piece. Any thread may use it; what is written after the client has gone is dropped.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;
  /// Sends `piece`, and calls `sent` when the next may come, on a thread of Io; never in this call. One at a time.
  virtual void write(std::string piece, Task sent) = 0;
  virtual void end() = 0;
};

/// Held by whoever is to answer. One that is dropped without an answer is answered with status 500.
class Exchange {
 public:
  virtual ~Exchange() = default;
  const Request& request() const { return request_; }
  Request& request() { return request_; }
  /// Whether it came over a unix socket: only its owner can have opened that.
  virtual bool is_local_socket() const = 0;

  /// Once; on any thread.
  virtual void answer(Response response) = 0;
  /// Instead of `answer`: the status and the headers now, the body by and by.
  virtual std::shared_ptr<ResponseStream> stream(Response head) = 0;
  /// Given when the client has gone away, or the server stops and everybody who waits should come to an end. To find
  /// out costs something, so it is done from the first time that this is asked for.
  virtual CancelSignal gone() = 0;

 protected:
  explicit Exchange(Request request) : request_(std::move(request)) {}

 private:
  Request request_;
};

}  // namespace perdure::http
