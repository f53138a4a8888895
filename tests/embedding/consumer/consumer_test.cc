// How somebody else tests an application: it finds a simulation in what is installed, and a crash that it asked for.
#include <cstdio>

#include "perdure/testing.h"

int main() {
  using namespace perdure::testing;
  auto report = for_each_seed({.count = 20}, {.nodes = 2}, [](Simulation& sim) {
    sim.on_start([](Node& node) {
      node.store().transact_async([](perdure::Transaction& txn) { txn.add("starts", 1); },
                                  [](perdure::Result<void>) {});
    });
    sim.crash(0, Crash::kAfterApply);
    sim.run_for(std::chrono::seconds(5));
    auto starts = sim.read([](perdure::Reader& reader) { return perdure::decode_counter(reader.get("starts")); });
    sim.expect(starts == 3, "two nodes and three lives");
  });
  std::printf("%s\n", report.to_string().c_str());
  return report.ok() ? 0 : 1;
}
