// The stores of tests. Each is empty, and of nobody else: in memory, or on a server if there is one in the environment,
// so that the same tests say of every engine what they say of one.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "perdure/store.h"
#include "runtime/latch.h"

namespace perdure {

/// What the URLs of stores on the server begin with: "postgres://…/db?perdure_schema=t", "etcd://…/t". Empty without
/// one.
inline std::string test_server() {
  const char* server = std::getenv("PERDURE_TEST_STORE");
  return server ? server : "";
}
inline bool on_test_server() {
  return !test_server().empty();
}

/// The URL of a new store: `otherwise` if there is no server.
inline std::string fresh_store_url(const std::string& otherwise = "memory:") {
  static std::atomic<int> made = 0;
  std::string server = test_server();
  return server.empty() ? otherwise : server + std::to_string(getpid()) + "_" + std::to_string(++made);
}

inline Store fresh_store(StoreOptions options = {}) {
  auto store = Store::open(fresh_store_url(), std::move(options));
  if (!store) throw std::runtime_error(to_string(store.error()));
  return std::move(*store);
}

/// Looks until it is so; the tests' own patience.
template <class F>
bool eventually(F holds) {
  for (SteadyTime until = steady_now() + std::chrono::seconds(20); !holds(); std::this_thread::yield())
    if (steady_now() > until) return false;
  return true;
}

}  // namespace perdure
