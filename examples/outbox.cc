// An outbox: what an actor wants done elsewhere is emitted in the transaction that commits its state. So there is a
// receipt for each sale, and none for a sale that was refused or lost, whenever this program is killed.
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <stdexcept>

#include "perdure/actor.h"
#include "perdure/queue.h"

using namespace perdure;

struct Sale {
  using Reply = std::int64_t;  // What is in the till afterwards.
  std::int64_t amount = 0;
  PERDURE_DESCRIBE(Sale, amount)
};

struct Till {
  static constexpr std::string_view kKind = "till";
  struct State {
    std::int64_t sum = 0;
    PERDURE_DESCRIBE(State, sum)
  };
  using Messages = MessageList<Sale>;

  Queue queue;

  // [outbox]
  Answer<std::int64_t> handle_call(const Sale& sale, State& state, Turn& turn) {
    turn.add({"emit a receipt", [queue = queue, sale](Transaction& txn) mutable -> Result<void> {
                queue.emit(txn, "receipts", sale);  // Stored if the sale is, and not otherwise.
                return {};
              }});
    if (sale.amount <= 0) throw std::invalid_argument("nothing was sold");  // Nor is a receipt emitted.
    return state.sum += sale.amount;
  }
  // [outbox]
};

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Queue queue = must(Queue::open(store));
  Actors actors = must(Actors::open(store));
  if (!actors.serve(Till{queue}, {.attempts_max = 1})) return 1;

  auto till = actors.of<Till>("front");
  for (std::int64_t amount : {5, 0, 7}) {
    auto sum = till.call(Sale{amount});
    if (!sum) std::printf("%lld: %s\n", static_cast<long long>(amount), sum.error().name().data());
  }

  // Usually in another process: this one could end here.
  std::latch printed(2);
  auto print = [&](Job& job) {
    std::printf("a receipt for %lld\n", static_cast<long long>(must(job.value_as<Sale>()).amount));
    printed.count_down();
  };
  if (!queue.work("receipts", print, {.concurrency = 1})) return 1;
  printed.wait();
}
