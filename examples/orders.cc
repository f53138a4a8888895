// Numbers from memory: a process takes a partition for itself, and what it hands out is stored behind it.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "perdure/sequence.h"

using namespace perdure;
using namespace std::chrono_literals;

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Takes so many orders, and answers the number of the last.
Number take_orders(Store store, int count) {
  Sequences sequences = must(Sequences::open(store));
  must(sequences.set("orders", {.types = {{"shop", {{"order", 1000}}}}}));
  Session session = must(Session::open(store));
  Number last = 0;
  // [first]
  OwnedPartition partition = must(sequences.own(session, "orders", 10s));
  Sequencer sequencer = must(Sequencer::open(store, partition.params(), partition.storage()));
  WorkspaceKind shop = must(partition.kind("shop"));
  SeqId order = must(partition.seq("order"));

  for (int taken = 0; taken < count;) {
    auto offset = sequencer.start(shop, WorkspaceId{7});
    if (!offset) {  // It is reading its log, or has too much to store.
      if (!sequencer.wait_ready(10s)) must(std::move(offset));
      continue;
    }
    last = must(sequencer.next(order));
    auto written = store.transact([&](Transaction& txn) {
      partition.write(txn, *offset, {shop, WorkspaceId{7}, {{order, last}}, {}, "a book"});
    });
    if (!written) {  // Perhaps it is in the log, perhaps not: the log will tell.
      sequencer.actualize();
      continue;
    }
    sequencer.flush();
    ++taken;
  }
  // [first]
  return last;
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Number first = take_orders(store, 100);
  // What was not stored when the sequencer went is found in the log.
  Number second = take_orders(store, 100);
  std::printf("a hundred orders, and %d more\n", static_cast<int>(second - first));
}
