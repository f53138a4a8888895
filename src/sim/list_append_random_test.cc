// Random histories: correct ones are accepted, spoilt ones are rejected, and small ones are judged as by trying out
// every order there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "sim/list_append.h"

namespace perdure::sim {
namespace {

using Random = std::mt19937_64;
using Lists = std::map<Key, std::vector<Value>>;

/// Runs the micro-ops on the lists and fills in what they read.
void execute(Operation& operation, Lists& lists) {
  for (MicroOp& op : operation.micro_ops) {
    if (op.kind == MicroOp::Kind::kAppend)
      lists[op.key].push_back(op.value);
    else
      op.list = lists[op.key];
  }
}

History to_history(const std::vector<Operation>& operations) {
  History history;
  for (const Operation& operation : operations) history.add(operation);
  return history;
}

/// Transactions executed one after the other, each at a moment within its interval; the intervals overlap widely. New
/// keys replace old ones so that lists stay short. Some fail, and some of unknown outcome took effect.
struct Generated {
  std::vector<Operation> operations;
  Lists lists;
};

Generated generate_serial(Random& random, std::size_t count) {
  constexpr std::int64_t kStep = 10, kReach = 80;
  Generated result;
  Value next_value = 1;
  for (std::size_t i = 0; i < count; ++i) {
    auto moment = static_cast<std::int64_t>(i) * kStep;
    Operation operation{random() % 8,
                        moment - static_cast<std::int64_t>(random() % kReach),
                        moment + static_cast<std::int64_t>(random() % kReach),
                        Ending::kOk,
                        {}};
    for (std::size_t ops = 1 + random() % 4; ops > 0; --ops) {
      Key key = i / 40 + random() % 6;
      operation.micro_ops.push_back(random() % 2 ? read(key) : append(key, next_value++));
    }
    std::uint64_t fate = random() % 20;
    if (fate == 0) operation.ending = Ending::kFail;
    if (fate == 1 || fate == 2) operation.ending = Ending::kUnknown;
    if (fate > 1) execute(operation, result.lists);
    result.operations.push_back(std::move(operation));
  }
  std::ranges::shuffle(result.operations, random);
  return result;
}

History with_final_reads(const Generated& generated) {
  History history = to_history(generated.operations);
  for (const auto& [key, list] : generated.lists) history.add_final_read(key, list);
  return history;
}

TEST(ListAppendRandom, OverlappingSerialHistoriesAreAccepted) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Generated generated = generate_serial(random, 300);
    Verdict verdict = check_list_append(to_history(generated.operations));
    EXPECT_TRUE(verdict.ok) << "seed " << seed << ": " << to_string(verdict);
    verdict = check_list_append(with_final_reads(generated));
    EXPECT_TRUE(verdict.ok) << "seed " << seed << ": " << to_string(verdict);
    EXPECT_GT(verdict.unknown_committed, 0u);
  }
}

/// A random list of at least two elements that an acknowledged operation read.
std::vector<Value>& pick_list(Random& random, std::vector<Operation>& operations) {
  while (true) {
    Operation& operation = operations[random() % operations.size()];
    if (operation.ending != Ending::kOk) continue;
    for (MicroOp& op : operation.micro_ops)
      if (op.list && op.list->size() >= 2) return *op.list;
  }
}

TEST(ListAppendRandom, DroppedElementInTheMiddleIsRejected) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Generated generated = generate_serial(random, 300);
    std::vector<Value>& list = pick_list(random, generated.operations);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(random() % (list.size() - 1)));
    EXPECT_FALSE(check_list_append(with_final_reads(generated)).ok) << seed;
  }
}

TEST(ListAppendRandom, SwappedElementsAreRejected) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Generated generated = generate_serial(random, 300);
    std::vector<Value>& list = pick_list(random, generated.operations);
    std::size_t at = random() % (list.size() - 1);
    std::swap(list[at], list[at + 1]);
    EXPECT_FALSE(check_list_append(with_final_reads(generated)).ok) << seed;
  }
}

TEST(ListAppendRandom, AppendCompletedBeforeAReadThatMissesItIsRejected) {
  int spoilt = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Generated generated = generate_serial(random, 300);
    const Operation& reader = generated.operations[random() % generated.operations.size()];
    if (reader.ending != Ending::kOk || reader.micro_ops[0].kind != MicroOp::Kind::kRead) continue;
    const MicroOp& seen = reader.micro_ops[0];
    const std::vector<Value>& all = generated.lists[seen.key];
    if (seen.list->size() == all.size()) continue;
    MicroOp missed = append(seen.key, all[seen.list->size()]);
    for (Operation& writer : generated.operations) {
      if (&writer == &reader || std::ranges::count(writer.micro_ops, missed) == 0) continue;
      writer.ending = Ending::kOk;
      writer.completed_ns = reader.invoked_ns - 1;
      writer.invoked_ns = std::min(writer.invoked_ns, writer.completed_ns);
      EXPECT_FALSE(check_list_append(with_final_reads(generated)).ok) << seed;
      ++spoilt;
    }
  }
  EXPECT_GT(spoilt, 20);
}

TEST(ListAppendRandom, MutationsDoNotDependOnTheOrderOfTheRecords) {
  Random random(7);
  Generated generated = generate_serial(random, 100);
  std::vector<Value>& list = pick_list(random, generated.operations);
  std::swap(list[0], list[1]);
  for (int i = 0; i < 50; ++i) {
    std::ranges::shuffle(generated.operations, random);
    EXPECT_FALSE(check_list_append(with_final_reads(generated)).ok);
  }
}

/// Whether executing the operations in this order reads what they read and agrees with real time.
bool explains(const std::vector<Operation>& operations, const std::vector<std::size_t>& order) {
  Lists lists;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Operation operation = operations[order[i]];
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const Operation& later = operations[order[j]];
      if (later.ending == Ending::kOk && later.completed_ns < operation.invoked_ns) return false;
    }
    execute(operation, lists);
    if (operation.micro_ops != operations[order[i]].micro_ops) return false;
  }
  return true;
}

/// Strict serializability by its definition: some of the unknown ones took effect, in some order.
bool strictly_serializable(const std::vector<Operation>& operations) {
  for (unsigned chosen = 0; chosen < 1u << operations.size(); ++chosen) {
    std::vector<std::size_t> order;
    bool fits = true;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      bool in = chosen >> i & 1;
      fits &= in ? operations[i].ending != Ending::kFail : operations[i].ending != Ending::kOk;
      if (in) order.push_back(i);
    }
    if (!fits) continue;
    do
      if (explains(operations, order)) return true;
    while (std::next_permutation(order.begin(), order.end()));
  }
  return false;
}

/// Lets one read see another part of the list, such as half a transaction or what comes only later.
void spoil_a_read(Random& random, std::vector<Operation>& operations, const Lists& lists) {
  std::vector<MicroOp>& ops = operations[random() % operations.size()].micro_ops;
  MicroOp& op = ops[random() % ops.size()];
  if (op.kind != MicroOp::Kind::kRead || !lists.contains(op.key)) return;
  op.list = lists.at(op.key);
  op.list->resize(random() % (op.list->size() + 1));
}

/// Operations that each see some earlier state, not always the latest: about half of such histories are wrong.
std::vector<Operation> generate_sloppy(Random& random) {
  std::vector<Operation> operations;
  std::vector<Lists> states(1);
  Value next_value = 1;
  for (std::size_t i = 0, count = 2 + random() % 4; i < count; ++i) {
    auto begin = static_cast<std::int64_t>(random() % 6 + i * 2);
    Operation operation{i, begin, begin + static_cast<std::int64_t>(random() % 8), Ending::kOk, {}};
    for (std::size_t ops = 1 + random() % 3; ops > 0; --ops)
      operation.micro_ops.push_back(random() % 2 ? read(random() % 2) : append(random() % 2, next_value++));
    std::uint64_t fate = random() % 10;
    if (fate <= 2) operation.ending = fate == 0 ? Ending::kFail : Ending::kUnknown;
    Lists seen = random() % 3 ? states.back() : states[random() % states.size()], after = states.back();
    Operation blind = operation;
    execute(operation, seen);
    execute(blind, after);
    if (random() % 8) states.push_back(after);
    operations.push_back(std::move(operation));
  }
  if (random() % 3 == 0) spoil_a_read(random, operations, states.back());
  return operations;
}

TEST(ListAppendRandom, SmallHistoriesAreJudgedAsByTryingEveryOrder) {
  std::size_t right = 0, wrong = 0;
  std::map<std::string, std::size_t> anomalies;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random(seed);
    std::vector<Operation> operations = generate_sloppy(random);
    bool expected = strictly_serializable(operations);
    Verdict verdict = check_list_append(to_history(operations));
    std::string records;
    for (const Operation& operation : operations) records += format_record(operation) + "\n";
    ASSERT_EQ(verdict.ok, expected) << "seed " << seed << ": " << to_string(verdict) << "\n" << records;
    ++(expected ? right : wrong);
    ++anomalies[verdict.anomaly];
  }
  EXPECT_GT(right, 2000u);
  EXPECT_GT(wrong, 2000u);
  for (const char* name : {"internal", "G1a", "G1b", "incompatible-order", "lost-append", "G1c", "G-single", "G2",
                           "G0-realtime", "G1c-realtime", "G-single-realtime", "G2-realtime"})
    EXPECT_GT(anomalies[name], 0u) << name;
}

TEST(ListAppendScale, TwoHundredThousandTransactionsAreChecked) {
  Random random(3);
  Generated generated = generate_serial(random, 200'000);
  EXPECT_TRUE(check_list_append(with_final_reads(generated)).ok);

  // One client reads the first key as it was at the beginning, long after: a cycle of two in a knot of nearly all.
  History stale = with_final_reads(generated);
  stale.add({99, 2'100'000, 2'100'001, Ending::kOk, {read(0, {})}});
  Verdict verdict = check_list_append(stale);
  EXPECT_EQ(verdict.anomaly, "G-single-realtime");
  EXPECT_NE(verdict.explanation.find("T" + std::to_string(stale.size() - 1) + " read [] of key 0 and missed"),
            std::string::npos)
      << verdict.explanation;
}

TEST(ListAppendScale, ChainAsLongAsTheHistoryDoesNotOverflowTheStack) {
  History history;
  const std::size_t count = 300'000;
  for (std::size_t i = 0; i < count; ++i) history.add({1, 0, 10, Ending::kOk, {read(i, {i}), append(i + 1, i + 1)}});
  history.add({1, 0, 10, Ending::kOk, {append(0, 0)}});
  EXPECT_TRUE(check_list_append(history).ok);
  history.add({1, 0, 10, Ending::kOk, {read(count, {count}), read(1, {})}});
  Verdict verdict = check_list_append(history);
  EXPECT_EQ(verdict.anomaly, "G-single");
  EXPECT_NE(verdict.explanation.find("... and 299981 more steps"), std::string::npos);
}

}  // namespace
}  // namespace perdure::sim
