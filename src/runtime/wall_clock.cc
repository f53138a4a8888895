#include "runtime/wall_clock.h"

namespace perdure {

WallTime wall_now() {
  return WallTime(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace perdure
