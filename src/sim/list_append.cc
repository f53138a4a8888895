#include "sim/list_append.h"

#include "base/assert.h"
#include "sim/cycle_explain.h"
#include "sim/cycles.h"
#include "sim/dependency_graph.h"
#include "sim/version_order.h"

namespace perdure::sim {
namespace {

/// An acknowledged append must be in the last read of its key, if that read began after the append completed. An
/// earlier read that misses it while the last one has it is stale and becomes a cycle with real time.
std::optional<Finding> find_lost_append(const VersionOrder& order) {
  const History& history = order.history();
  std::vector<VersionOrder::Read> last(order.keys().size(), {kNone, kNone, 0});
  for (const VersionOrder::Read& read : order.reads()) {
    VersionOrder::Read& known = last[read.key];
    if (known.txn == kNone || history.txn(known.txn).invoked_ns < history.txn(read.txn).invoked_ns) known = read;
  }
  for (const VersionOrder::Append& append : order.appends()) {
    const VersionOrder::Read& read = last[append.key];
    const History::Txn& writer = history.txn(append.txn);
    if (writer.ending != Ending::kOk || read.txn == kNone) continue;
    if (writer.completed_ns >= history.txn(read.txn).invoked_ns || append.position < read.length) continue;
    const VersionOrder::KeyOrder& key = order.keys()[append.key];
    return Finding{"lost-append", show_txn(history, append.txn) + " appended " + std::to_string(append.value) +
                                      " to key " + std::to_string(key.key) + " and was acknowledged, but " +
                                      show_txn(history, read.txn) + ", which began later and read the key last, read " +
                                      show_list(key.longest.first(read.length)) + " without it" +
                                      show_records(history, {append.txn, read.txn})};
  }
  return {};
}

/// The name of the anomaly that a cycle is.
std::string classify(const std::vector<CycleStep>& cycle) {
  std::size_t counts[4] = {};
  for (const CycleStep& step : cycle) ++counts[static_cast<std::size_t>(step.kind)];
  auto count = [&](EdgeKind kind) { return counts[static_cast<std::size_t>(kind)]; };
  std::string name = count(EdgeKind::kReadWrite) > 1    ? "G2"
                     : count(EdgeKind::kReadWrite) == 1 ? "G-single"
                     : count(EdgeKind::kWriteRead) > 0  ? "G1c"
                                                        : "G0";
  return count(EdgeKind::kRealTime) > 0 ? name + "-realtime" : name;
}

std::optional<Finding> find_cycle(const VersionOrder& order, const DependencyGraph& graph) {
  constexpr EdgeKinds kWw = bit(EdgeKind::kWriteWrite), kWr = bit(EdgeKind::kWriteRead),
                      kRw = bit(EdgeKind::kReadWrite), kTime = bit(EdgeKind::kRealTime);
  if (find_knot(graph, kWw | kWr | kRw | kTime).empty()) return {};
  // From the worst anomaly to the mildest: the fewer kinds of edges a cycle needs, the more it says.
  for (EdgeKinds kinds : {kWw, kWw | kWr, kWw | kWr | kRw, kWw | kTime, kWw | kWr | kTime, kWw | kWr | kRw | kTime}) {
    std::vector<std::uint32_t> knot = find_knot(graph, kinds);
    if (knot.empty()) continue;
    std::vector<CycleStep> cycle = find_short_cycle(graph, order.history(), knot, kinds, ReadWrites::kAtMostOne);
    if (cycle.empty()) cycle = find_short_cycle(graph, order.history(), knot, kinds, ReadWrites::kAny);
    return Finding{classify(cycle), explain_cycle(order, cycle)};
  }
  die("a cycle that is gone when it is looked for again");
}

void count_txns(const History& history, Verdict& verdict) {
  verdict.txns = history.size();
  for (std::size_t t = 0; t < history.size(); ++t) {
    Ending ending = history.txn(t).ending;
    ++(ending == Ending::kOk ? verdict.ok_txns : ending == Ending::kFail ? verdict.failed_txns : verdict.unknown_txns);
  }
}

void count_order(const VersionOrder& order, Verdict& verdict) {
  verdict.keys = order.keys().size();
  verdict.appends = order.appends().size();
  verdict.reads = order.reads().size();
  for (std::uint32_t t = 0; t < order.history().size(); ++t)
    verdict.unknown_committed += order.history().txn(t).ending == Ending::kUnknown && order.committed(t);
}

}  // namespace

Verdict check_list_append(const History& history) {
  Verdict verdict;
  count_txns(history, verdict);
  VersionOrder order(history);
  std::optional<Finding> finding = order.infer();
  if (!finding) count_order(order, verdict);
  if (!finding) finding = find_lost_append(order);
  if (!finding) {
    DependencyGraph graph(order);
    verdict.edges = graph.edge_count();
    finding = find_cycle(order, graph);
  }
  if (finding) {
    verdict.ok = false;
    verdict.anomaly = std::move(finding->anomaly);
    verdict.explanation = std::move(finding->explanation);
  }
  return verdict;
}

std::string to_string(const Verdict& verdict) {
  if (!verdict.ok) return verdict.anomaly + ": " + verdict.explanation;
  return "ok: " + std::to_string(verdict.txns) + " txns (" + std::to_string(verdict.ok_txns) + " ok, " +
         std::to_string(verdict.failed_txns) + " failed, " + std::to_string(verdict.unknown_txns) +
         " unknown of which " + std::to_string(verdict.unknown_committed) + " took effect), " +
         std::to_string(verdict.keys) + " keys, " + std::to_string(verdict.appends) + " appends, " +
         std::to_string(verdict.reads) + " reads, " + std::to_string(verdict.edges) + " edges";
}

}  // namespace perdure::sim
