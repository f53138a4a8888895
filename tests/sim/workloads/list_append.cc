// Clients append to lists and read them; afterwards there must be one order of all transactions that explains what each
// saw and agrees with real time. See sim/list_append.h.
#include "sim/list_append.h"

#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

/// How a list is stored: in one row, or in a row for each element. The second is read as a range, so that phantoms
/// matter.
enum class Layout { kOneRow, kRowForEach };

class ListAppend final : public ClientWorkload {
 public:
  explicit ListAppend(World& world)
      : ClientWorkload(world),
        keys_(static_cast<Key>(world.knob("keys"))),
        layout_(world.knob("rows") == 0 ? Layout::kOneRow : Layout::kRowForEach) {}

  void operate(SimNode& node, std::uint64_t client, Done done) override {
    Operation operation;
    operation.process =
        (static_cast<std::uint64_t>(node.index()) * 1000 + client) * 1000 + static_cast<std::uint64_t>(node.life());
    operation.invoked_ns = now_ns(node);
    operation.micro_ops = draw_plan(node);
    node.store().transact_async(
        [this, plan = operation.micro_ops](Transaction& txn) { return carry_out(txn, plan); },
        [this, &node, operation, done = std::move(done)](Result<std::vector<MicroOp>> seen) mutable {
          operation.completed_ns = now_ns(node);
          operation.ending = ending_of(seen);
          if (seen) operation.micro_ops = std::move(*seen);
          history_.add(operation);
          done();
        },
        draw_options(node));
  }

  void check(Store& store) override {
    for (Key key = 0; key < keys_; ++key)
      history_.add_final_read(key, store.read([&](Reader& reader) { return read_list(reader, key); }).value());
    Verdict verdict = check_list_append(history_);
    if (!verdict.ok) world().violation("list_append: " + to_string(verdict));
  }

 private:
  static std::int64_t now_ns(SimNode& node) { return node.scheduler().now().time_since_epoch().count(); }

  std::vector<MicroOp> draw_plan(SimNode& node) {
    std::vector<MicroOp> plan;
    for (std::uint64_t left = 1 + node.random()() % 4; left > 0; --left) {
      Key key = node.random()() % keys_;
      plan.push_back(node.random()() % 2 == 0 ? append(key, ++last_value_) : read(key));
    }
    return plan;
  }

  std::vector<MicroOp> carry_out(Transaction& txn, std::vector<MicroOp> plan) {
    for (MicroOp& op : plan) {
      auto list = read_list(txn, op.key);
      if (op.kind == MicroOp::Kind::kRead)
        op.list = std::move(list);
      else if (layout_ == Layout::kRowForEach)
        txn.set(row(op.key, list.size()), encode_counter(static_cast<std::int64_t>(op.value)));
      else
        txn.set(prefix(op.key),
                txn.get(prefix(op.key)).value_or("") + encode_counter(static_cast<std::int64_t>(op.value)));
    }
    return plan;
  }

  std::vector<Value> read_list(Reader& reader, Key key) {
    std::vector<Value> list;
    if (layout_ == Layout::kRowForEach) {
      for (const Row& row : reader.get_range(prefix_range(prefix(key))))
        list.push_back(static_cast<Value>(decode_counter(row.value)));
      return list;
    }
    auto value = reader.get(prefix(key));
    for (std::size_t at = 0; value && at < value->size(); at += 8)
      list.push_back(static_cast<Value>(decode_counter(value->substr(at, 8))));
    return list;
  }

  static Bytes prefix(Key key) { return "list/" + std::to_string(key) + "/"; }
  static Bytes row(Key key, std::size_t place) {
    Bytes digits = std::to_string(place);
    return prefix(key) + Bytes(6 - digits.size(), '0') + digits;
  }

  const Key keys_;
  const Layout layout_;
  Value last_value_ = 0;
  History history_;
};

const RegisterWorkload kListAppend({"list_append",
                                    "clients append to lists and read them; one order explains it all",
                                    {kClientsKnob,
                                     kThinkKnob,
                                     {"keys", {1, 6}, "lists"},
                                     {"rows", {0, 1}, "1: a row for each element, so that phantoms matter"}},
                                    make<ListAppend>});

}  // namespace
}  // namespace perdure::sim
