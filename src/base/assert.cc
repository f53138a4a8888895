#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace perdure {

void die(std::string_view what, std::source_location where) {
  std::fprintf(stderr, "perdure: broken invariant: %.*s (%s:%u)\n", static_cast<int>(what.size()), what.data(),
               where.file_name(), where.line());
  std::abort();
}

}  // namespace perdure
