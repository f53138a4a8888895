// Invariants under threads: the ring, the bank, and list-append histories. The logic and the checkers are those that
// simulation uses.
#include <chrono>
#include <mutex>
#include <random>

#include "conformance/conformance.h"
#include "sim/bank.h"
#include "sim/list_append.h"
#include "sim/ring.h"

namespace perdure::conformance {
namespace {

constexpr int kThreads = 8;

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

TEST_P(Conformance, RingStaysARing) {
  constexpr sim::RingNode kNodes = 40;
  auto key = [](sim::RingNode node) { return numbered("node", static_cast<int>(node)); };
  auto read_ring = [&](Reader& reader) {
    std::vector<sim::RingNode> ring;
    for (const Row& row : reader.get_range(prefix_range("node")))
      ring.push_back(static_cast<sim::RingNode>(decode_counter(row.value)));
    return ring;
  };
  must(store().transact([&](Transaction& txn) {
    auto initial = sim::ring_initial(kNodes);
    for (sim::RingNode node = 0; node < kNodes; ++node) txn.set(key(node), encode_counter(initial[node]));
  }));
  on_threads(kThreads, [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread));
    for (int i = 0; i < 40; ++i) {
      auto start = sim::ring_draw(kNodes, random());
      must(store().transact(
          [&](Transaction& txn) -> Result<void> {
            auto writes = sim::ring_step(start, kNodes, [&](sim::RingNode node) -> Result<sim::RingNode> {
              return static_cast<sim::RingNode>(decode_counter(txn.get(key(node))));
            });
            if (!writes) return std::unexpected(writes.error());
            for (const auto& write : *writes) txn.set(key(write.node), encode_counter(write.successor));
            return {};
          },
          {.timeout = kSoon, .body = thread % 2 == 0 ? Body::kOptimistic : Body::kShort}));
      if (i % 8 == 0) must(sim::check_ring(must(store().read(read_ring))));
    }
  });
  must(sim::check_ring(must(store().read(read_ring))));
}

TEST_P(Conformance, BankNeitherMakesNorLosesMoney) {
  constexpr sim::Account kAccounts = 12;
  constexpr sim::Money kTotal = 1000;
  auto key = [](sim::Account account) { return numbered("account", static_cast<int>(account)); };
  auto read_all = [&](Reader& reader) {
    std::vector<sim::Money> balances;
    for (const Row& row : reader.get_range(prefix_range("account"))) balances.push_back(decode_counter(row.value));
    return balances;
  };
  must(store().transact([&](Transaction& txn) {
    auto initial = sim::bank_initial(kAccounts, kTotal);
    for (sim::Account account = 0; account < kAccounts; ++account)
      txn.set(key(account), encode_counter(initial[account]));
  }));
  on_threads(kThreads, [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread));
    for (int i = 0; i < 40; ++i) {
      auto transfer = sim::bank_draw({.accounts = kAccounts, .amount_max = 60}, random());
      must(store().transact(
          [&](Transaction& txn) {
            auto after = sim::bank_apply(
                transfer, {decode_counter(txn.get(key(transfer.from))), decode_counter(txn.get(key(transfer.to)))});
            if (!after) return;
            txn.set(key(transfer.from), encode_counter(after->from));
            txn.set(key(transfer.to), encode_counter(after->to));
          },
          {.timeout = kSoon}));
      if (i % 4 == 0) must(sim::check_bank(must(store().read(read_all)), kTotal));
    }
  });
  must(sim::check_bank(must(store().read(read_all)), kTotal));
}

std::vector<sim::Value> decode_list(const std::optional<Bytes>& value) {
  std::vector<sim::Value> list;
  for (std::size_t at = 0; value && at < value->size(); at += 8)
    list.push_back(static_cast<sim::Value>(decode_counter(value->substr(at, 8))));
  return list;
}

TEST_P(Conformance, ListAppendHistoryIsStrictlySerializable) {
  constexpr sim::Key kKeys = 6;
  constexpr int kOps = 60;
  auto name = [](sim::Key key) { return numbered("list", static_cast<int>(key)); };
  std::mutex mutex;
  sim::History history;
  std::atomic<sim::Value> next_value = 1;
  on_threads(kThreads, [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread) + 100);
    for (int i = 0; i < kOps; ++i) {
      std::vector<sim::MicroOp> plan;
      for (std::uint64_t left = 1 + random() % 4; left > 0; --left) {
        sim::Key key = random() % kKeys;
        plan.push_back(random() % 2 == 0 ? sim::append(key, next_value++) : sim::read(key));
      }
      sim::Operation operation;
      operation.process = static_cast<std::uint64_t>(thread);
      operation.invoked_ns = now_ns();
      auto done = store().transact(
          [&](Transaction& txn) {
            auto seen = plan;
            for (sim::MicroOp& op : seen) {
              auto list = txn.get(name(op.key));
              if (op.kind == sim::MicroOp::Kind::kRead)
                op.list = decode_list(list);
              else
                txn.set(name(op.key), list.value_or("") + encode_counter(static_cast<std::int64_t>(op.value)));
            }
            return seen;
          },
          {.timeout = kSoon, .body = i % 3 == 0 ? Body::kShort : Body::kOptimistic});
      operation.completed_ns = now_ns();
      operation.ending = done ? sim::Ending::kOk : sim::Ending::kUnknown;
      operation.micro_ops = must(std::move(done));
      std::lock_guard lock(mutex);
      history.add(operation);
    }
  });
  for (sim::Key key = 0; key < kKeys; ++key) history.add_final_read(key, decode_list(get(name(key))));
  sim::Verdict verdict = sim::check_list_append(history);
  EXPECT_TRUE(verdict.ok) << to_string(verdict);
  EXPECT_EQ(verdict.ok_txns, kThreads * kOps + kKeys);
}

}  // namespace
}  // namespace perdure::conformance
