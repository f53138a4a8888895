#include "runtime/thread.h"

#include <pthread.h>

namespace perdure {

void Thread::start(const std::string& name, std::move_only_function<void()> loop) {
  thread_ = std::thread(std::move(loop));
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

Thread::~Thread() {
  join();
}

void Thread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace perdure
