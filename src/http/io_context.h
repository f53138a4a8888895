// What Io is made of. Only the few files that talk to sockets include this: Boost's headers are slow to compile.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <vector>

#include "http/io.h"
#include "runtime/thread.h"

namespace perdure::http {

struct Io::Context {
  explicit Context(unsigned threads) : loop(static_cast<int>(threads)), work(loop.get_executor()), runners(threads) {}
  boost::asio::io_context loop;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<Thread> runners;
};

}  // namespace perdure::http
