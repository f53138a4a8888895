// Invoices whose numbers have no gap, by a process that is killed again and again.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

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

std::string invoice_key(std::uint64_t customer, Number number) {
  return "invoice/" + std::to_string(customer) + "/" + std::to_string(number);
}

/// Writes invoices for three customers until it is killed.
[[noreturn]] void work(Store store) {
  // [first]
  Sequences sequences = must(Sequences::open(store));
  must(sequences.set("billing", {.types = {{"customer", {{"invoice", 1}}}}}));
  for (std::uint64_t i = 0;; ++i)
    must(store.transact([&](Transaction& txn) {
      // The number, the entry in the log and whatever else you write are there together, or not at all.
      std::uint64_t customer = i % 3 + 1;
      auto made = sequences.append(txn, "billing", {.type = "customer", .workspace = customer, .next = {"invoice"}});
      txn.set(invoice_key(customer, made.numbers[0]), "42.00");
    }));
  // [first]
}

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "lmdb:./perdure-data";
  if (argc > 2) work(must(Store::open(url)));
  for (int i = 0; i < 5; ++i) {
    pid_t worker = fork();
    if (worker == 0) execl("/proc/self/exe", argv[0], url, "work", nullptr);
    std::this_thread::sleep_for(150ms);
    kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
  }
  std::printf("killed five times\n");

  Store store = must(Store::open(url));
  Sequences sequences = must(Sequences::open(store));
  for (std::uint64_t customer = 1; customer <= 3; ++customer) {
    Number last = must(sequences.numbers("billing", customer))["invoice"];
    Number found = 0;
    for (Number number = 1; number <= last + 1; ++number)
      found += must(store.read([&](Reader& reader) { return reader.get(invoice_key(customer, number)); })).has_value();
    std::printf(
        "customer %d: %s\n", static_cast<int>(customer),
        last > 0 && found == last ? "an invoice for each number, and no number without one" : "something is wrong");
  }
}
