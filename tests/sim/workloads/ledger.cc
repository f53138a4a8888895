// Acknowledged means present, and applied means once.
//
// Each operation has a number of its own and leaves it in three ways that a second application would show: an add to
// its own row, an add to a counter that it shares with others, and a row under a stamp. At the end an acknowledged
// operation is there once, a failed one is not, and one of unknown outcome is there once or not at all; and the shared
// counters hold what the operations say.
#include <map>

#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

class Ledger final : public ClientWorkload {
 public:
  explicit Ledger(World& world)
      : ClientWorkload(world), counters_(static_cast<std::uint64_t>(world.knob("counters"))) {}

  void operate(SimNode& node, std::uint64_t, Done done) override {
    std::uint64_t number = ++last_number_;
    bool reads_too = chance(node.random(), 300);
    node.store().transact_async([this, number, reads_too](Transaction& txn) { enter(txn, number, reads_too); },
                                [this, &node, number, done = std::move(done)](Result<void> result) mutable {
                                  Ending ending = ending_of(result);
                                  endings_[number] = ending;
                                  world().note(node.name(),
                                               "entry " + std::to_string(number) + ": " +
                                                   (result ? std::string("ok") : std::string(result.error().name())));
                                  done();
                                },
                                draw_options(node));
  }

  void check(Store& store) override {
    auto entries = rows(store, "entry/"), stamped = rows(store, "stamped/"), counts = rows(store, "count/");
    std::map<std::uint64_t, std::int64_t> times, times_stamped, per_counter;
    for (const Row& row : entries) times[std::stoull(row.key.substr(6))] = decode_counter(row.value);
    for (const Row& row : stamped) ++times_stamped[std::stoull(row.value)];
    for (std::uint64_t number = 1; number <= last_number_; ++number) {
      judge(number, times[number], times_stamped[number]);
      per_counter[number % counters_] += times[number];
    }
    for (const Row& row : counts) {
      std::uint64_t counter = std::stoull(row.key.substr(6));
      if (decode_counter(row.value) != per_counter[counter])
        world().violation("ledger: counter " + std::to_string(counter) + " holds " +
                          std::to_string(decode_counter(row.value)) + ", and its entries make " +
                          std::to_string(per_counter[counter]));
    }
  }

 private:
  void enter(Transaction& txn, std::uint64_t number, bool reads_too) const {
    Bytes shared = "count/" + std::to_string(number % counters_);
    txn.add("entry/" + std::to_string(number), 1);
    // With a read it can lose to others, and is run again; without, it never can.
    if (reads_too)
      txn.set(shared, encode_counter(decode_counter(txn.get(shared)) + 1));
    else
      txn.add(shared, 1);
    txn.set_stamped(Stamped{"stamped/", ""}, std::to_string(number));
  }

  void judge(std::uint64_t number, std::int64_t times, std::int64_t times_stamped) {
    auto known = endings_.find(number);
    Ending ending = known == endings_.end() ? Ending::kUnknown : known->second;
    bool right = ending == Ending::kOk ? times == 1 : ending == Ending::kFail ? times == 0 : times == 0 || times == 1;
    std::string name = "ledger: entry " + std::to_string(number);
    if (!right)
      world().violation(name +
                        (ending == Ending::kOk     ? " was acknowledged"
                         : ending == Ending::kFail ? " failed without effect"
                                                   : " has an unknown outcome") +
                        ", and is there " + std::to_string(times) + " times");
    if (times != times_stamped)
      world().violation(name + " is there " + std::to_string(times) + " times, and stamped " +
                        std::to_string(times_stamped) + " times");
  }

  static std::vector<Row> rows(Store& store, BytesView prefix) {
    return store.read([prefix](Reader& reader) { return reader.get_range(prefix_range(prefix)); }).value();
  }

  const std::uint64_t counters_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Ending> endings_;
};

const RegisterWorkload kLedger({"ledger",
                                "acknowledged means present, and applied means once",
                                {kClientsKnob, kThinkKnob, {"counters", {1, 8}, "counters that entries share"}},
                                make<Ledger>});

}  // namespace
}  // namespace perdure::sim
