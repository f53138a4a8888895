// Two nodes of which one leads at a time, and whose writes are fenced: a leader that was replaced changes nothing.
#include <cstdio>

#include "perdure/session.h"
#include "perdure/store.h"

using namespace perdure;
using namespace std::chrono_literals;

namespace {

/// Appends to the report on behalf of the lease; refused if it is not held any more.
Result<void> write_report(Store& store, const Lease& lease, const char* line) {
  return store.transact([&](Transaction& txn) {
    lease.fence(txn);
    txn.set("report", txn.get("report").value_or("") + line);
  });
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  // One session for each process; both are here only to keep the example short.
  Session ada = must(Session::open(store, {.name = "ada"}));
  Session bob = must(Session::open(store, {.name = "bob"}));
  (void)store.transact([](Transaction& txn) { txn.clear("report"); });

  Lease leader = must(ada.acquire("reports/leader"));
  leader.cancel_signal().then([] { std::printf("ada is told to stop\n"); });
  if (write_report(store, leader, "by ada;")) std::printf("ada leads\n");

  auto refused = bob.acquire("reports/leader");  // Only tries.
  if (!refused) std::printf("bob has to wait: %s\n", refused.error().name().data());

  // ada goes: by stop here, by a crash or a pause elsewhere. Whoever waits is next.
  (void)ada.stop();
  Lease next = must(bob.acquire("reports/leader", 10s));
  if (write_report(store, next, "by bob;")) std::printf("bob leads\n");

  auto late = write_report(store, leader, "by ada, late;");
  if (!late) std::printf("ada's late write: %s\n", late.error().name().data());

  auto report = store.read([](Reader& reader) { return reader.get("report").value_or(""); });
  std::printf("the report: %s\n", must(report).c_str());
  (void)bob.stop();
}
