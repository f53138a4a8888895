// Ticks: whatever becomes of leaders, what is pending is done once, by one run at a time.
//
// Nodes follow keys by the store's leadership; clients leave rows that are pending, and a run takes those away that
// were there when it began, with its end. Foreigners take the lease of a key from its leader, and so make two of them:
// the token of the run must then be enough. What runs did is noted as those of debouncers do it, see debounce_check.h.
#include "perdure/tick.h"

#include "debounce_check.h"
#include "session/rows.h"
#include "sim/client_workload.h"
#include "store/system_access.h"

namespace perdure::sim::debouncing {
namespace {

using std::chrono::milliseconds;

struct Life {
  SimNode* node = nullptr;
  std::shared_ptr<Leadership> leadership = {};
  std::optional<Tick> tick = {};
  bool over() const { return !node->alive(); }
};
using LifePtr = std::shared_ptr<Life>;

template <class F>
void later(const LifePtr& life, Duration delay, F what) {
  NodeScheduler& scheduler = life->node->scheduler();
  scheduler.at(scheduler.now() + delay, [life, what = std::move(what)]() mutable {
    if (!life->over()) what();
  });
}

Bytes pending_prefix(const std::string& key) {
  return tuple::pack("pending", key);
}

/// What was pending when the run began is done.
Result<void> do_pending(Transaction& txn, const std::string& key, const Token& token) {
  Bytes prefix = pending_prefix(key);
  std::vector<std::int64_t> numbers;
  for (const Row& row : txn.get_range(tuple::extensions(prefix))) {
    auto number = tuple::unpack_after<std::int64_t>(prefix, row.key);
    if (!number || Stamp::decode(row.value)->version >= token.stamp.version) continue;
    numbers.push_back(std::get<0>(*number));
    txn.clear(row.key);
  }
  if (!numbers.empty()) write_run(txn, key, token, numbers.size(), numbers);
  return {};
}

class TickWorkload final : public ClientWorkload {
 public:
  explicit TickWorkload(World& world) : ClientWorkload(world), lives_(static_cast<std::size_t>(world.nodes())) {}

  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    node.scheduler().slow_down("perdure-tick", milliseconds(world().knob("handler_ms")));
    open(life);
    look_later(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override { lives_[static_cast<std::size_t>(node.index())].reset(); }
  void quiesce() override {
    ClientWorkload::quiesce();
    quiet_ = true;
  }
  bool idle() const override { return ClientWorkload::idle() && at_rest_; }

  void check(Store& store) override {
    auto checked = store.read([&](Reader& reader) {
      debouncing::check(reader, {.owed = Owed::kOnce, .at_rest = at_rest_, .acknowledged = {}, .possible = {}},
                        [this](std::string what) { world().violation(std::move(what)); });
    });
    if (!checked) world().violation("tick: cannot be checked: " + to_string(checked.error()));
  }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life) return done();
    std::string key = key_of(draw(node.random(), 1, static_cast<std::uint64_t>(world().knob("keys"))));
    bool foreign = chance(node.random(), static_cast<std::uint64_t>(world().knob("foreign")));
    node.store().transact_async(
        [key, foreign, number = ++last_](Transaction& txn) {
          if (foreign) {
            SystemAccess access(txn);
            txn.clear(session::lease_key("leadership/default/" + key));
            return;
          }
          txn.set_stamped(tuple::pack_onto(pending_prefix(key), number), Stamped{{}, {}, 0});
          write_touch(txn, key, number);
        },
        [done = std::move(done)](Result<void>) mutable { done(); });
  }

 private:
  static std::string key_of(std::uint64_t number) { return "w.k" + std::to_string(number); }

  void open(const LifePtr& life) {
    Duration ttl = milliseconds(world().knob("ttl_ms"));
    StoreLeadershipOptions options{.session = {.ttl = ttl, .renew = ttl / 4, .name = life->node->name()},
                                   .instance_id = life->node->name()};
    store_leadership_async(life->node->store(), std::move(options),
                           [this, life](Result<std::shared_ptr<Leadership>> opened) {
                             if (life->over()) return;
                             if (opened) return follow(life, std::move(*opened));
                             later(life, milliseconds(100), [this, life] { open(life); });
                           });
  }

  void follow(const LifePtr& life, std::shared_ptr<Leadership> leadership) {
    // Weak: the handlers are part of the tick, and that of the life.
    std::weak_ptr<Life> weak = life;
    TickHandlers handlers;
    handlers.pending = [weak](const std::string&) -> Result<Pending> {
      auto there = weak.lock();
      if (!there || there->over()) return fail(ErrorCode::kClosed, "the node is dead");
      return chance(there->node->random(), 300) ? Pending::kNothing : Pending::kWork;
    };
    handlers.run = [this, weak](TickRun& run) -> Result<void> {
      auto there = weak.lock();
      if (!there || there->over()) return fail(ErrorCode::kClosed, "the node is dead");
      world().count_operation();
      run.complete([key = run.key(), token = run.token()](Transaction& txn) { return do_pending(txn, key, token); });
      if (chance(there->node->random(), static_cast<std::uint64_t>(world().knob("failing"))))
        return fail(ErrorCode::kHandlerFailed, "not this time");
      return {};
    };
    auto tick = Tick::open(life->node->store(), leadership, {.window = milliseconds(world().knob("window_ms"))},
                           std::move(handlers));
    if (!tick) return world().violation("tick: not opened: " + to_string(tick.error()));
    life->leadership = std::move(leadership);
    life->tick.emplace(std::move(*tick));
    for (std::int64_t i = 1; i <= world().knob("keys"); ++i)
      if (auto followed = life->tick->follow(key_of(static_cast<std::uint64_t>(i))); !followed)
        world().violation("tick: not followed: " + to_string(followed.error()));
  }

  void look_later(const LifePtr& life) {
    later(life, milliseconds(300), [this, life] {
      life->node->store().transact_async(
          [](Transaction& txn) {
            return txn.snapshot().get_range(tuple::extensions(tuple::pack("pending")), {.limit = 1}).empty();
          },
          [this, life](Result<bool> nothing) {
            if (life->over()) return;
            if (quiet_ && nothing && *nothing && ClientWorkload::idle()) at_rest_ = true;
            look_later(life);
          });
    });
  }

  std::vector<LifePtr> lives_;
  std::int64_t last_ = 0;
  bool quiet_ = false;
  bool at_rest_ = false;
};

const RegisterWorkload kTick({"tick",
                              "what is pending is done once, by one leader's run at a time",
                              {kClientsKnob,
                               {"think_ms", {50, 2000}, "the longest pause between a client's operations"},
                               {"keys", {1, 3}, "that all nodes follow"},
                               {"window_ms", {100, 2000}, "of the leader, before it asks what is pending"},
                               {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
                               {"handler_ms", {0, 1500}, "the longest that handlers take"},
                               {"failing", {0, 200}, "of 1000 runs fail"},
                               {"foreign", {0, 0}, "of 1000 operations take the lease from a leader"}},
                              make<TickWorkload>});

}  // namespace
}  // namespace perdure::sim::debouncing
