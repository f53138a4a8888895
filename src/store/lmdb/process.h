#pragma once

#include <cstdint>

namespace perdure::lmdb {

/// When the process began, in ticks of the kernel since the boot. With its number it names the process among all since
/// then. 0 if that cannot be seen.
std::uint64_t start_of_process(int pid);

/// Whether the process of that number that began then has surely ended, reaped or not; `started` may be 0, not known.
bool process_is_gone(int pid, std::uint64_t started);

}  // namespace perdure::lmdb
