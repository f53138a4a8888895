// The ring stays a ring, whoever swaps its nodes at the same time. See sim/ring.h.
#include "sim/ring.h"

#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

class Ring final : public ClientWorkload {
 public:
  explicit Ring(World& world) : ClientWorkload(world), size_(static_cast<RingNode>(world.knob("size"))) {}

  void setup(Setup& setup) override {
    setup.transact([this](Transaction& txn) {
      auto initial = ring_initial(size_);
      for (RingNode node = 0; node < size_; ++node) txn.set(key(node), encode_counter(initial[node]));
    });
  }

  void operate(SimNode& node, std::uint64_t, Done done) override {
    if (chance(node.random(), 150)) return look(node, std::move(done));
    RingNode start = ring_draw(size_, node.random()());
    node.store().transact_async(
        [this, start](Transaction& txn) -> Result<void> {
          auto writes = ring_step(start, size_, [&](RingNode at) -> Result<RingNode> {
            return static_cast<RingNode>(decode_counter(txn.get(key(at))));
          });
          if (!writes) return std::unexpected(writes.error());
          for (const RingWrite& write : *writes) txn.set(key(write.node), encode_counter(write.successor));
          return {};
        },
        [this, done = std::move(done)](Result<void> result) mutable {
          judge(result);
          done();
        },
        draw_options(node));
  }

  void check(Store& store) override {
    auto ring = store.read([](Reader& reader) { return read_ring(reader); });
    judge(check_ring(ring.value()));
  }

 private:
  /// A client that reads all of it in one transaction must see a ring too.
  void look(SimNode& node, Done done) {
    node.store().transact_async([](Transaction& txn) -> Result<void> { return check_ring(read_ring(txn)); },
                                [this, done = std::move(done)](Result<void> result) mutable {
                                  judge(result);
                                  done();
                                },
                                draw_options(node));
  }

  void judge(const Result<void>& result) {
    if (!result && result.error().code == ErrorCode::kCorrupt) world().violation("ring: " + result.error().message);
  }

  static Bytes key(RingNode node) {
    Bytes digits = std::to_string(node);
    return "ring/" + Bytes(4 - digits.size(), '0') + digits;
  }
  static std::vector<RingNode> read_ring(Reader& reader) {
    std::vector<RingNode> ring;
    for (const Row& row : reader.get_range(prefix_range("ring/")))
      ring.push_back(static_cast<RingNode>(decode_counter(row.value)));
    return ring;
  }

  const RingNode size_;
};

const RegisterWorkload kRing({"ring",
                              "clients swap the nodes of a ring, which stays a ring",
                              {kClientsKnob, kThinkKnob, {"size", {3, 24}, "nodes of the ring"}},
                              make<Ring>});

}  // namespace
}  // namespace perdure::sim
