// Money moves between accounts, and none is made or lost. See sim/bank.h.
#include "sim/bank.h"

#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

constexpr Money kTotal = 1000;

class Bank final : public ClientWorkload {
 public:
  explicit Bank(World& world) : ClientWorkload(world), accounts_(static_cast<Account>(world.knob("accounts"))) {}

  void setup(Setup& setup) override {
    setup.transact([this](Transaction& txn) {
      auto initial = bank_initial(accounts_, kTotal);
      for (Account account = 0; account < accounts_; ++account) txn.set(key(account), encode_counter(initial[account]));
    });
  }

  void operate(SimNode& node, std::uint64_t, Done done) override {
    if (chance(node.random(), 200)) return look(node, std::move(done));
    Transfer transfer = bank_draw({.accounts = accounts_, .amount_max = 200}, node.random()());
    node.store().transact_async(
        [transfer](Transaction& txn) {
          auto after = bank_apply(
              transfer, {decode_counter(txn.get(key(transfer.from))), decode_counter(txn.get(key(transfer.to)))});
          if (!after) return;
          txn.set(key(transfer.from), encode_counter(after->from));
          txn.set(key(transfer.to), encode_counter(after->to));
        },
        [done = std::move(done)](Result<void>) mutable { done(); }, draw_options(node));
  }

  void check(Store& store) override {
    judge(check_bank(store.read([](Reader& reader) { return balances(reader); }).value(), kTotal));
  }

 private:
  void look(SimNode& node, Done done) {
    node.store().transact_async([](Transaction& txn) { return balances(txn); },
                                [this, done = std::move(done)](Result<std::vector<Money>> seen) mutable {
                                  if (seen) judge(check_bank(*seen, kTotal));
                                  done();
                                },
                                draw_options(node));
  }

  void judge(const Result<void>& result) {
    if (!result) world().violation("bank: " + result.error().message);
  }

  static Bytes key(Account account) { return "bank/" + std::to_string(account); }
  static std::vector<Money> balances(Reader& reader) {
    std::vector<Money> all;
    for (const Row& row : reader.get_range(prefix_range("bank/"))) all.push_back(decode_counter(row.value));
    return all;
  }

  const Account accounts_;
};

const RegisterWorkload kBank({"bank",
                              "clients move money between accounts, and none is made or lost",
                              {kClientsKnob, kThinkKnob, {"accounts", {2, 12}, "accounts"}},
                              make<Bank>});

}  // namespace
}  // namespace perdure::sim
