// Stands in for the daemon until it is there.
#include <cstdio>

#include "http/serve.h"

namespace perdure {

int serve(const ServeOptions&) {
  std::fputs("perdure: this binary was built without the daemon\n", stderr);
  return 1;
}

}  // namespace perdure
