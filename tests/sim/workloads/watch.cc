// Whoever sleeps on a watch hears of every change in bounded time.
//
// On each node a producer raises the number in its own row, and a consumer looks at all rows only when a watch on one
// of them fires. A bell that is lost may cost it one heartbeat, after which the node asks what it has not heard of; it
// must not cost more.
#include <deque>
#include <map>

#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kHeartbeat = seconds(1);
constexpr Duration kWatchman = milliseconds(500);
/// From an acknowledged change until every consumer has seen it, as long as nothing stands still: a heartbeat, a few
/// commits, and back-off left over from earlier trouble.
constexpr Duration kBound = seconds(8);

class Watches final : public ClientWorkload {
 public:
  explicit Watches(World& world) : ClientWorkload(world), rows_(static_cast<std::size_t>(world.nodes())) {}

  void setup(Setup&) override { look_around(); }

  void start(SimNode& node) override {
    ClientWorkload::start(node);
    consumers_[node.index()] = {.seen = std::vector<std::int64_t>(rows_.size())};
    look(node);
    beat(node);
  }

  void node_stopped(SimNode& node) override {
    ClientWorkload::node_stopped(node);
    consumers_.erase(node.index());
  }

  /// Raises the number of the node's row. Only this node writes it, one operation at a time for each client.
  void operate(SimNode& node, std::uint64_t, Done done) override {
    Produced& row = rows_[static_cast<std::size_t>(node.index())];
    std::int64_t number = ++row.last;
    node.store().transact_async(
        [&node, number](Transaction& txn) {
          // Another client of the node may have been faster.
          if (decode_counter(txn.get(key(node.index()))) < number) txn.set(key(node.index()), encode_counter(number));
        },
        [this, &row, number, done = std::move(done)](Result<void> result) mutable {
          if (result) row.acknowledged.push_back({number, world().now()});
          done();
        },
        draw_options(node));
  }

  bool idle() const override {
    if (!ClientWorkload::idle()) return false;
    for (const auto& [index, consumer] : consumers_)
      for (std::size_t row = 0; row < rows_.size(); ++row)
        if (overdue(rows_[row], consumer.seen[row])) return false;
    return true;
  }

  void check(Store&) override {}

 private:
  struct Acknowledged {
    std::int64_t number;
    SteadyTime when;
  };
  struct Produced {
    std::int64_t last = 0;
    std::deque<Acknowledged> acknowledged;
  };
  struct Consumer {
    std::vector<std::int64_t> seen;
    std::vector<Watch> watches = {};
    /// Which of its looks the watches belong to: the first that fires ends the round.
    std::uint64_t round = 0;
  };

  static Bytes key(int index) { return "watched/" + std::to_string(index); }

  void look(SimNode& node) {
    if (!node.alive()) return;
    struct Look {
      std::vector<std::int64_t> numbers;
      std::vector<Watch> watches;
    };
    node.store().transact_async(
        [this](Transaction& txn) {
          Look found;
          for (std::size_t row = 0; row < rows_.size(); ++row) {
            found.watches.push_back(txn.watch(key(static_cast<int>(row))));
            found.numbers.push_back(decode_counter(txn.get(key(static_cast<int>(row)))));
          }
          return found;
        },
        [this, &node](Result<Look> found) {
          if (!node.alive()) return;
          if (!found) {
            node.scheduler().at(node.scheduler().now() + milliseconds(50), [this, &node] { look(node); });
            return;
          }
          Consumer& consumer = consumers_.at(node.index());
          consumer.seen = std::move(found->numbers);
          sleep_on(node, consumer, std::move(found->watches));
        },
        {.body = chance(node.random(), 300) ? Body::kShort : Body::kOptimistic});
  }

  void sleep_on(SimNode& node, Consumer& consumer, std::vector<Watch> watches) {
    consumer.watches = std::move(watches);
    std::uint64_t round = ++consumer.round;
    for (Watch& watch : consumer.watches)
      watch.then([this, &node, round] {
        if (!node.alive()) return;
        Consumer& woken = consumers_.at(node.index());
        if (woken.round != round) return;
        ++woken.round;
        for (Watch& other : woken.watches) other.cancel();
        look(node);
      });
  }

  /// What a session does: it writes now and then, and asks for what the node has not heard of up to there.
  void beat(SimNode& node) {
    node.scheduler().at(node.scheduler().now() + kHeartbeat, [this, &node] {
      if (!node.alive()) return;
      node.store().transact_async([&node](Transaction& txn) { txn.add("beat/" + std::to_string(node.index()), 1); },
                                  [this, &node](Result<void> done, Receipt receipt) {
                                    if (!node.alive()) return;
                                    if (done) node.catch_up(receipt.version);
                                    beat(node);
                                  },
                                  {.timeout = kHeartbeat, .reserve = Reserve::kMayUse});
    });
  }

  /// The first acknowledged change that somebody who has seen `seen` does not know.
  static const Acknowledged* overdue(const Produced& row, std::int64_t seen) {
    for (const Acknowledged& change : row.acknowledged)
      if (change.number > seen) return &change;
    return nullptr;
  }

  /// The watchman: he sees all nodes at once, and stands outside of them.
  void look_around() {
    for (auto& [index, consumer] : consumers_)
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const Acknowledged* change = overdue(rows_[row], consumer.seen[row]);
        if (!change) continue;
        SteadyTime since = std::max(change->when, world().node(index)->started());
        if (world().now() - since <= kBound || world().disturbed_since(since)) continue;
        world().violation("watch: node " + std::to_string(index) + " has not heard that row " + std::to_string(row) +
                          " became " + std::to_string(change->number) + ", " + show_time(world().now() - since) +
                          " s after it was acknowledged");
        return;
      }
    forget_what_all_have_seen();
    world().at(world().now() + kWatchman, [this] { look_around(); });
  }

  void forget_what_all_have_seen() {
    constexpr std::size_t kKept = 64;
    for (Produced& row : rows_)
      while (row.acknowledged.size() > kKept) row.acknowledged.pop_front();
  }

  std::vector<Produced> rows_;
  std::map<int, Consumer> consumers_;
};

const RegisterWorkload kWatch({"watch",
                               "whoever sleeps on a watch hears of every change in bounded time",
                               {kClientsKnob, kThinkKnob},
                               make<Watches>});

}  // namespace
}  // namespace perdure::sim
