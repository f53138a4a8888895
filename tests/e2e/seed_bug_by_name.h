// How a worker is told to make one of the bugs of base/seeded_bug.h, to see the tests fail.
#pragma once

#include <cstdlib>

#include "base/seeded_bug.h"

namespace perdure::e2e {

/// The one that PERDURE_SEED_BUG in the environment names; none if it is not set, or the build has none.
inline void seed_bug_by_name() {
#ifdef PERDURE_SEEDED_BUGS
  const char* name = std::getenv("PERDURE_SEED_BUG");
  for (const SeededBugInfo& info : seeded_bugs())
    if (name && info.name == name) seed_bug(info.bug);
#endif
}

}  // namespace perdure::e2e
