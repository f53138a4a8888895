// Tests a handler of your own under crashes: a node pays bob once, whatever happens to it in between.
#include <cstdio>

#include "perdure/testing.h"

using namespace perdure;
using namespace perdure::testing;
using namespace std::chrono_literals;

namespace {

// [naive]
/// Pays, and then notes that it has paid: between the two, the node may die.
void pay_naively(Node& node) {
  node.store().transact_async(
      [](Transaction& txn) {
        if (txn.get("paid")) return false;
        txn.add("account/ada", -30);
        txn.add("account/bob", 30);
        return true;
      },
      [&node](Result<bool> pays) {
        if (!pays || !*pays) return;
        node.store().transact_async([](Transaction& txn) { txn.set("paid", "yes"); }, [](Result<void>) {});
      });
}
// [naive]

// [right]
/// The same in one transaction.
void pay(Node& node) {
  node.store().transact_async(
      [](Transaction& txn) {
        if (txn.get("paid")) return;
        txn.add("account/ada", -30);
        txn.add("account/bob", 30);
        txn.set("paid", "yes");
      },
      [](Result<void>) {});
}
// [right]

// [test]
/// Kills the node twice, each time at a moment that the seed picks, and looks at the accounts.
Report test(void (*handler)(Node&)) {
  return for_each_seed({.count = 500}, {}, [handler](Simulation& sim) {
    sim.setup([](Transaction& txn) { txn.set("account/ada", encode_counter(100)); });
    sim.on_start(handler);
    for (int i = 0; i < 2; ++i) {
      sim.crash(0, static_cast<Crash>(sim.random() % 3), 1s);
      sim.run_for(std::chrono::milliseconds(sim.random() % 3000));
    }
    sim.heal();
    sim.run_for(10s);
    auto bob = sim.read([](Reader& reader) { return decode_counter(reader.get("account/bob")); });
    sim.expect(bob == 30, "bob has " + std::to_string(bob.value_or(-1)) + " and not 30");
  });
}
// [test]

void print(const char* name, const Report& report) {
  if (report.ok())
    std::printf("%s: %llu seeds passed\n", name, static_cast<unsigned long long>(report.passed));
  else
    std::printf("%s: seed %llu failed: %s\n", name, static_cast<unsigned long long>(report.failure->seed),
                report.failure->what.c_str());
}

}  // namespace

int main() {
  print("in two transactions", test(pay_naively));
  print("in one transaction", test(pay));
}
