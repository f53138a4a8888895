#pragma once

#include "perdure/time.h"

namespace perdure {

/// What the clock of the machine says: for what is shown to people, as the lines of a log.
WallTime wall_now();

}  // namespace perdure
