#include "faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace perdure::e2e {
namespace {

bool chosen(std::string_view fault) {
  const char* wanted = std::getenv("PERDURE_FAULT");
  return wanted && fault == wanted;
}

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

std::atomic<int> meta_fd = -1;
std::atomic<const char*> armed = nullptr;
std::atomic<int> calls_left = 0;
std::atomic<bool> came_true = false;
std::atomic<int> counted_after = 0;
/// Of the thread that has just written a meta page: what it unlocks next is LMDB's writer lock.
thread_local bool stop_at_unlock = false;

void arm(const char* what, int calls) {
  static std::string_view const kKnown[] = {"fdatasync", "meta", "stop-before-unlock", "die-after-meta"};
  for (std::string_view known : kKnown)
    if (known == what) armed = known.data();
  calls_left = calls;
}

int syncs_after() {
  return counted_after;
}

/// Whether the fault `what` is armed and this call is the one that it hits.
bool hits(std::string_view what) {
  const char* now = armed;
  if (!now || what != now || calls_left-- > 0) return false;
  armed = nullptr;
  came_true = true;
  return true;
}

void count_sync() {
  if (came_true) ++counted_after;
}

/// Opens as told, but for what the faults take away, and remembers LMDB's synchronous descriptor.
template <class Open>
int open_with(int flags, Open open) {
  bool synchronous = (flags & O_DSYNC) != 0;
  if (synchronous && (chosen("no-sync") || chosen("lazy-meta"))) flags &= ~O_SYNC;
  int fd = open(flags);
  if (synchronous && fd >= 0) meta_fd = fd;
  return fd;
}

ssize_t write_at(int fd, const void* bytes, size_t size, off_t offset) {
  static auto* const real_pwrite = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (fd != meta_fd) return real_pwrite(fd, bytes, size, offset);
  count_sync();
  if (hits("meta")) {
    errno = EIO;
    return -1;
  }
  ssize_t result = real_pwrite(fd, bytes, size, offset);
  if (hits("die-after-meta")) kill(getpid(), SIGKILL);
  if (hits("stop-before-unlock")) stop_at_unlock = true;
  return result;
}

bool is_lock(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

}  // namespace
}  // namespace perdure::e2e

using namespace perdure::e2e;

extern "C" {

PerdureFaults perdure_faults = {&arm, &syncs_after};

int open(const char* path, int flags, ...) {
  static auto* const real_open = real<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with(flags, [&](int kept) { return real_open(path, kept, mode); });
}

int openat(int directory, const char* path, int flags, ...) {
  static auto* const real_openat = real<int(int, const char*, int, ...)>("openat");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with(flags, [&](int kept) { return real_openat(directory, path, kept, mode); });
}

int fdatasync(int fd) {
  static auto* const real_fdatasync = real<int(int)>("fdatasync");
  count_sync();
  if (hits("fdatasync")) {
    errno = EIO;
    return -1;
  }
  return chosen("no-sync") ? 0 : real_fdatasync(fd);
}

int fsync(int fd) {
  static auto* const real_fsync = real<int(int)>("fsync");
  count_sync();
  return chosen("no-sync") ? 0 : real_fsync(fd);
}

int msync(void* address, size_t size, int flags) {
  static auto* const real_msync = real<int(void*, size_t, int)>("msync");
  count_sync();
  return chosen("no-sync") ? 0 : real_msync(address, size, flags);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return write_at(fd, bytes, size, offset);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static auto* const real_unlock = real<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  // raise, not kill: it is this thread that must not go on.
  if (stop_at_unlock) raise(SIGSTOP);
  stop_at_unlock = false;
  return real_unlock(mutex);
}

int fcntl(int fd, int command, ...) {
  static auto* const real_fcntl = real<int(int, int, ...)>("fcntl");
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (is_lock(command) && chosen("no-lock")) {
    errno = ENOLCK;
    return -1;
  }
  return real_fcntl(fd, command, argument);
}

// The names that programs built for large files use for the same calls.
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char* path, int flags, ...) __attribute__((alias("openat")));
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) __attribute__((alias("pwrite")));
int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
}
