#include "http/io.h"

#include <boost/asio/post.hpp>

#include "http/io_context.h"

namespace perdure::http {

Io::Io(unsigned threads) : context_(std::make_unique<Context>(threads)) {
  for (Thread& runner : context_->runners) runner.start("perdure-io", [&loop = context_->loop] { loop.run(); });
}

Io::~Io() {
  stop();
}

void Io::stop() {
  context_->work.reset();
  context_->loop.stop();
  for (Thread& runner : context_->runners) runner.join();
}

void Io::post(Task task) {
  boost::asio::post(context_->loop, [task = std::move(task)]() mutable { task(); });
}

}  // namespace perdure::http
