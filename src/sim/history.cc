#include "sim/history.h"

#include "base/assert.h"

namespace perdure::sim {
namespace {

/// Final reads begin after everything that ever completed.
constexpr std::int64_t kFinalInvoked = kNever - 1;

std::string_view word(Ending ending) {
  switch (ending) {
    case Ending::kOk:
      return "ok";
    case Ending::kFail:
      return "fail";
    case Ending::kUnknown:
      return "unknown";
  }
  die("an ending outside of its enum");
}

enum class Lists { kShow, kHide };

void put_list(std::string& out, std::span<const Value> list) {
  if (list.empty()) out += '-';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(list[i]);
  }
}

void put_micro_ops(std::string& out, const Operation& operation, Lists lists) {
  for (const MicroOp& op : operation.micro_ops) {
    bool appends = op.kind == MicroOp::Kind::kAppend;
    out += appends ? " a " : " r ";
    out += std::to_string(op.key) + ' ';
    if (appends)
      out += std::to_string(op.value);
    else if (op.list && lists == Lists::kShow)
      put_list(out, *op.list);
    else
      out += '?';
  }
}

}  // namespace

MicroOp append(Key key, Value value) {
  return {MicroOp::Kind::kAppend, key, value, {}};
}

MicroOp read(Key key) {
  return {MicroOp::Kind::kRead, key, 0, {}};
}

MicroOp read(Key key, std::vector<Value> list) {
  return {MicroOp::Kind::kRead, key, 0, std::move(list)};
}

void History::add(const Operation& operation) {
  bool ended = operation.ending != Ending::kUnknown;
  check(!ended || operation.completed_ns >= operation.invoked_ns, "an operation completed before it was invoked");
  check(operation.invoked_ns < kFinalInvoked, "an operation invoked at the end of time");
  std::uint64_t first_step = steps_.size();
  for (const MicroOp& op : operation.micro_ops) add_step(op);
  txns_.push_back({operation.process, operation.invoked_ns, ended ? operation.completed_ns : kNever, first_step,
                   static_cast<std::uint32_t>(operation.micro_ops.size()), operation.ending, false});
}

void History::add_step(const MicroOp& op) {
  if (op.kind == MicroOp::Kind::kAppend) {
    steps_.push_back({op.key, op.value, 0, Step::Kind::kAppend});
  } else if (!op.list) {
    steps_.push_back({op.key, 0, 0, Step::Kind::kUnseenRead});
  } else {
    steps_.push_back({op.key, elements_.size(), static_cast<std::uint32_t>(op.list->size()), Step::Kind::kRead});
    elements_.insert(elements_.end(), op.list->begin(), op.list->end());
  }
}

void History::add_final_read(Key key, std::span<const Value> list) {
  txns_.push_back({0, kFinalInvoked, kNever, steps_.size(), 1, Ending::kOk, true});
  steps_.push_back({key, elements_.size(), static_cast<std::uint32_t>(list.size()), Step::Kind::kRead});
  elements_.insert(elements_.end(), list.begin(), list.end());
}

void History::merge(const History& other) {
  check(&other != this, "a history merged with itself");
  const std::size_t step_shift = steps_.size(), element_shift = elements_.size(), txns = size();
  txns_.insert(txns_.end(), other.txns_.begin(), other.txns_.end());
  for (std::size_t i = txns; i < txns_.size(); ++i) txns_[i].first_step += step_shift;
  steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end());
  for (std::size_t i = step_shift; i < steps_.size(); ++i)
    if (steps_[i].kind == Step::Kind::kRead) steps_[i].value_or_first += element_shift;
  elements_.insert(elements_.end(), other.elements_.begin(), other.elements_.end());
}

Operation History::operation(std::size_t number) const {
  const Txn& txn = txns_[number];
  Operation result{txn.process, txn.invoked_ns, txn.completed_ns, txn.ending, {}};
  for (const Step& step : steps(txn)) {
    if (step.kind == Step::Kind::kAppend)
      result.micro_ops.push_back(append(step.key, step.value_or_first));
    else if (step.kind == Step::Kind::kUnseenRead)
      result.micro_ops.push_back(read(step.key));
    else
      result.micro_ops.push_back(read(step.key, {list(step).begin(), list(step).end()}));
  }
  return result;
}

void HistoryWriter::invoke(const Operation& operation) {
  line_ = "invoke " + std::to_string(operation.process) + ' ' + std::to_string(operation.invoked_ns);
  put_micro_ops(line_, operation, Lists::kHide);
  line_ += '\n';
  sink_(line_);
}

void HistoryWriter::complete(const Operation& operation) {
  line_ = format_record(operation) + '\n';
  sink_(line_);
}

void HistoryWriter::final_read(Key key, std::span<const Value> list) {
  line_ = format_final_read(key, list) + '\n';
  sink_(line_);
}

std::string format_record(const Operation& operation) {
  std::string out(word(operation.ending));
  out += ' ' + std::to_string(operation.process) + ' ' + std::to_string(operation.invoked_ns) + ' ' +
         std::to_string(operation.completed_ns);
  put_micro_ops(out, operation, Lists::kShow);
  return out;
}

std::string format_final_read(Key key, std::span<const Value> list) {
  std::string out = "final " + std::to_string(key) + ' ';
  put_list(out, list);
  return out;
}

std::string show_list(std::span<const Value> list) {
  constexpr std::size_t kEnds = 8;
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ' ';
    if (i == kEnds && list.size() > 2 * kEnds) {
      i = list.size() - kEnds;
      out += "... ";
    }
    out += std::to_string(list[i]);
  }
  return out + ']';
}

}  // namespace perdure::sim
