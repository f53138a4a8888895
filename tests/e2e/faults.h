// Faults between a process and the kernel, for tests: a library that is loaded before all others with LD_PRELOAD, so
// that the code under test, LMDB included, is the one that ships.
//
// By environment variable, from the first call on:
//   PERDURE_FAULT=no-sync    syncs do nothing and say that all is well: the bug that power cuts must find
//   PERDURE_FAULT=no-lock    the file system answers ENOLCK to every lock
//   PERDURE_FAULT=lazy-meta  LMDB's meta pages are written without waiting for the disk, so that a process can be
//                            caught with a commit that others see and the disk does not have
// By call, looked up with dlsym since a program without the library has none: see PerdureFaults.
#pragma once

namespace perdure::e2e {

/// What the library does to the process that arms it.
extern "C" struct PerdureFaults {
  /// After `calls` good ones, "fdatasync" or "meta" (the synchronous write of a meta page) fails once with EIO; or the
  /// process kills itself right behind such a write ("die-after-meta"); or it stops itself with the commit visible to
  /// others, but its writer lock still held ("stop-before-unlock").
  void (*arm)(const char* what, int calls);
  /// Calls of fsync, fdatasync, msync and meta writes since a fault that was armed came true.
  int (*syncs_after)();
};

/// The name under which the library exports its PerdureFaults.
inline constexpr const char* kFaultsSymbol = "perdure_faults";

}  // namespace perdure::e2e
