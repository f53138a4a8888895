#pragma once

#include <sys/types.h>

#include <atomic>

namespace perdure {

/// Tells a process from the children that fork() makes of it afterwards. The mark is a page that the kernel hands to a
/// child empty, so that asking costs a load: getpid() is a system call, and as dear as a read from the store.
class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  /// Whether this process is a child of the one that made the mark, or a child's child.
  bool forked() const { return page_ ? page_->load(std::memory_order_relaxed) == 0 : is_other_process(); }

 private:
  bool is_other_process() const;

  /// Null where the kernel cannot do it.
  std::atomic<int>* page_ = nullptr;
  const pid_t owner_;
};

}  // namespace perdure
