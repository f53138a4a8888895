#include "sim/cycle_explain.h"

#include <algorithm>

#include "perdure/bytes.h"

namespace perdure::sim {
namespace {

std::string_view short_name(EdgeKind kind) {
  constexpr std::string_view kNames[] = {"ww", "wr", "rw", "rt", "via"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Says why one transaction precedes another. The graph does not keep which key an edge came from, so that a million
/// edges stay small; it is found again here, for the few edges of a cycle.
class Reasons {
 public:
  explicit Reasons(const VersionOrder& order) : order_(order), history_(order.history()) {}

  std::string why(const CycleStep& step) const {
    switch (step.kind) {
      case EdgeKind::kWriteWrite:
        return write_write(step.from, step.to);
      case EdgeKind::kWriteRead:
        return write_read(step.from, step.to);
      case EdgeKind::kReadWrite:
        return read_write(step.from, step.to) + " appended";
      default:
        return name(step.from) + " completed at " + std::to_string(history_.txn(step.from).completed_ns) + ", before " +
               name(step.to) + " began at " + std::to_string(history_.txn(step.to).invoked_ns);
    }
  }

  /// "T12 read [1 2] of key 7 and missed 3, which T15", to be ended by what T15 did.
  std::string read_write(std::uint32_t reader, std::uint32_t writer) const {
    for (const VersionOrder::Read& read : order_.reads()) {
      if (read.txn != reader) continue;
      for (const VersionOrder::Append& append : order_.appends()) {
        if (append.txn != writer || append.key != read.key || append.previous != kNone) continue;
        if (append.position != read.length && !follows_all(append, read.length)) continue;
        return saw(read) + " and missed " + std::to_string(append.value) + ", which " + name(writer);
      }
    }
    return name(reader) + " missed what " + name(writer);
  }

 private:
  std::string name(std::uint32_t txn) const { return show_txn(history_, txn); }
  const VersionOrder::KeyOrder& key(std::uint32_t number) const { return order_.keys()[number]; }

  std::string saw(const VersionOrder::Read& read) const {
    return name(read.txn) + " read " + show_list(key(read.key).longest.first(read.length)) + " of key " +
           std::to_string(key(read.key).key);
  }

  /// Whether nobody read the append and all that was read of its key is `length` elements.
  bool follows_all(const VersionOrder::Append& append, std::size_t length) const {
    return append.position == kNone && key(append.key).longest.size() == length;
  }

  std::string write_write(std::uint32_t from, std::uint32_t to) const {
    for (const VersionOrder::Append& later : order_.appends()) {
      if (later.txn != to || later.previous != kNone) continue;
      std::span<const std::uint32_t> list = order_.order(key(later.key));
      std::size_t position = later.position == kNone ? list.size() : later.position;
      if (position == 0 || order_.appends()[list[position - 1]].txn != from) continue;
      return name(from) + " appended " + std::to_string(order_.appends()[list[position - 1]].value) + " to key " +
             std::to_string(key(later.key).key) + " before " + name(to) + " appended " + std::to_string(later.value);
    }
    return name(from) + " appended before " + name(to) + " did";
  }

  std::string write_read(std::uint32_t from, std::uint32_t to) const {
    for (const VersionOrder::Read& read : order_.reads()) {
      if (read.txn != to || read.length == 0) continue;
      const VersionOrder::Append& last = order_.appends()[order_.order(key(read.key))[read.length - 1]];
      if (last.txn == from)
        return saw(read) + " and saw " + std::to_string(last.value) + ", which " + name(from) + " appended";
    }
    return name(to) + " read what " + name(from) + " appended";
  }

  const VersionOrder& order_;
  const History& history_;
};

}  // namespace

std::string show_records(const History& history, std::vector<std::uint32_t> txns) {
  constexpr std::size_t kRecordMax = 300;
  std::string out;
  for (std::uint32_t txn : txns) {
    const History::Txn& record = history.txn(txn);
    Operation operation = history.operation(txn);
    out += "\n  T" + std::to_string(txn) + ": ";
    out += printable(record.is_final ? format_final_read(operation.micro_ops[0].key, *operation.micro_ops[0].list)
                                     : format_record(operation),
                     kRecordMax);
  }
  return out;
}

std::string explain_cycle(const VersionOrder& order, const std::vector<CycleStep>& cycle) {
  // Nobody reads more, and each step costs a search through the history.
  constexpr std::size_t kStepsMax = 20;
  const std::span<const CycleStep> steps = std::span(cycle).first(std::min(cycle.size(), kStepsMax));
  Reasons reasons(order);
  std::vector<std::uint32_t> txns;
  for (const CycleStep& step : steps) txns.push_back(step.from);
  std::string records = show_records(order.history(), txns);
  if (cycle.size() == 2)
    for (int i : {0, 1})
      if (cycle[i].kind == EdgeKind::kReadWrite && cycle[1 - i].kind == EdgeKind::kRealTime)
        return reasons.read_write(cycle[i].from, cycle[i].to) + " had appended before " +
               show_txn(order.history(), cycle[i].from) + " began" + records;
  std::string out = "no order of these transactions is possible:";
  for (const CycleStep& step : steps)
    out += "\n  " + show_txn(order.history(), step.from) + " -" + std::string(short_name(step.kind)) + "-> " +
           show_txn(order.history(), step.to) + ": " + reasons.why(step);
  if (steps.size() < cycle.size()) out += "\n  ... and " + std::to_string(cycle.size() - steps.size()) + " more steps";
  return out + records;
}

}  // namespace perdure::sim
