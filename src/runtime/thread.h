#pragma once

#include <functional>
#include <string>
#include <thread>

namespace perdure {

/// A thread for the few loops that can only block in the kernel (a futex, a poll). Whoever owns it must make the loop
/// end before destroying it; the destructor joins.
class Thread {
 public:
  Thread() = default;
  ~Thread();

  void start(const std::string& name, std::move_only_function<void()> loop);
  void join();

 private:
  std::thread thread_;
};

}  // namespace perdure
