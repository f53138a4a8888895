// The worker program of these tests, and stores to use it on.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "child.h"
#include "perdure/store.h"
#include "store/store_test_util.h"

namespace perdure::e2e {

/// A store_worker; see store_worker.cc for its commands.
class Worker : public Child {
 public:
  Worker() : Child({PERDURE_E2E_WORKER}) {}
  /// With faults.h loaded: one of its faults by name, or "armed" for those that are armed by command.
  explicit Worker(const std::string& fault)
      : Child({PERDURE_E2E_WORKER}, {.environment = {{"LD_PRELOAD", PERDURE_E2E_FAULTS}, {"PERDURE_FAULT", fault}}}) {}
};

inline std::string lmdb_url(const std::string& directory) {
  return "lmdb:" + directory;
}

/// What differs by nature between a store in a directory and one on a server: times, and how much fits into one.
template <class T>
T by_engine(T on_lmdb, T on_server) {
  return on_test_server() ? on_server : on_lmdb;
}

/// The value of a result that must be good.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Expects that `store` verifies, and shows what is wrong if not.
inline void expect_sound(Store& store) {
  auto report = store.verify();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->ok()) << report->problem_count << " problems, the first: " << report->problems.front();
}

inline Result<void> set(Store& store, BytesView key, BytesView value, const TransactOptions& options = {}) {
  return store.transact([&](Transaction& txn) { txn.set(key, value); }, options);
}

inline std::optional<Bytes> get(Store& store, BytesView key) {
  return must(store.read([&](Reader& reader) { return reader.get(key); }));
}

}  // namespace perdure::e2e
