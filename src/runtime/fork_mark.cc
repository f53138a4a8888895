#include "runtime/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace perdure {
namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

ForkMark::ForkMark() : owner_(getpid()) {
  void* page = mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, page_bytes(), MADV_WIPEONFORK) == 0)
    page_ = new (page) std::atomic<int>(1);
  else
    munmap(page, page_bytes());
}

ForkMark::~ForkMark() {
  if (page_) munmap(page_, page_bytes());
}

bool ForkMark::is_other_process() const {
  return getpid() != owner_;
}

}  // namespace perdure
