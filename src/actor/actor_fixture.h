// What the tests of actors have in common: a store of their own, a node that serves Counter, and looks at the rows.
#pragma once

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "actor/mailbox.h"
#include "actor/rows.h"
#include "actor/test_kinds.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure::actor {

using namespace std::chrono_literals;

class ActorFixture : public ::testing::Test {
 protected:
  Store store = fresh_store();
  Counter counter;

  static KindOptions quick() { return {.back_off = 1ms, .back_off_max = 2ms}; }
  Actors open(ActorsOptions options = {}) { return *Actors::open(store, std::move(options)); }
  /// A node that serves the counter.
  Actors node(const KindOptions& options = quick()) {
    Actors actors = open();
    EXPECT_TRUE(actors.serve(counter, options));
    return actors;
  }
  static ActorId id(std::string name) { return {"default", "counter", std::move(name)}; }

  /// The rows of perdure's own that begin with `prefix`.
  std::vector<Row> rows(const Bytes& prefix) {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return txn.get_range(tuple::extensions(prefix));
    });
  }
  std::vector<Row> rows_of(const std::string& name) { return rows(prefix_of(id(name))); }
  std::size_t waiting(const std::string& name) { return rows(waiting_key(prefix_of(id(name)))).size(); }
  bool ready(const std::string& name) {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return txn.get(ready_key(id(name))).has_value();
    });
  }
  /// Nothing if it succeeded; error() of what succeeded is undefined, and may well look as expected.
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
};

}  // namespace perdure::actor
