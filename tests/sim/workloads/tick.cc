// Ticks: whatever becomes of leaders, what is pending is done once, by one run at a time.
//
// Nodes follow keys by the store's leadership, or by that of a bucket outside of it; clients leave rows that are
// pending, and a run takes those away that were there when it began, with its end. Foreigners take the key from its
// leader, and handlers stand still for longer than their leadership lasts, and so make two leaders: the token of the
// run must then be enough. What runs did is noted as those of debouncers do it, see debounce_check.h. Besides,
//   - no two nodes that are awake believe to lead a key, unless it was taken from one of them;
//   - what was told to be the end of a run is what became of it;
//   - nothing stays pending for long where nothing is in the way;
//   - who has stopped in good order owns nothing.
#include "perdure/tick.h"

#include "debounce/tick_table.h"
#include "debounce_check.h"
#include "session/rows.h"
#include "sim/client_workload.h"
#include "store/system_access.h"
#include "tick_bucket.h"

namespace perdure::sim::debouncing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookEach = milliseconds(25);

struct Life {
  SimNode* node = nullptr;
  std::shared_ptr<Leadership> leadership = {};
  std::optional<Tick> tick = {};
  bool stopping = false;
  /// When it was seen to lead a key; nothing if it did not at the last look, or was late for it.
  std::map<std::string, SteadyTime> led = {};
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

Bytes effect_key(const Token& token) {
  return tuple::pack("effect", token.stamp);
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
  write_run(txn, key, token, numbers.size(), numbers);
  txn.set(effect_key(token), {});
  return {};
}

class TickWorkload final : public ClientWorkload {
 public:
  explicit TickWorkload(World& world)
      : ClientWorkload(world),
        lives_(static_cast<std::size_t>(world.nodes())),
        bucket_(world, {.max_age = ms("ttl_ms"),
                        .slow = ms("ttl_ms") / 4,
                        .losses = static_cast<std::uint64_t>(world.knob("losses"))}) {}

  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    node.scheduler().slow_down("perdure-tick", ms("handler_ms"));
    open(life);
    look_later(life);
    see_leaders_later(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override { lives_[static_cast<std::size_t>(node.index())].reset(); }
  void quiesce() override {
    ClientWorkload::quiesce();
    quiet_ = true;
    bucket_.heal();
  }
  bool idle() const override { return ClientWorkload::idle() && at_rest_; }

  void check(Store& store) override {
    auto checked = store.read([&](Reader& reader) {
      debouncing::check(reader, {.owed = Owed::kOnce, .at_rest = at_rest_, .acknowledged = {}, .possible = {}},
                        [this](std::string what) { world().violation(std::move(what)); });
      check_ends(reader);
    });
    if (!checked) world().violation("tick: cannot be checked: " + to_string(checked.error()));
  }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life) return done();
    std::string key = key_of(draw(node.random(), 1, static_cast<std::uint64_t>(knob("keys"))));
    if (by_chance(life, "foreign")) return take_away(life, key, std::move(done));
    if (by_chance(life, "restarts")) return stop_for_a_while(life, std::move(done));
    const std::int64_t number = ++last_;
    node.store().transact_async(
        [key, number](Transaction& txn) {
          txn.set_stamped(tuple::pack_onto(pending_prefix(key), number), Stamped{{}, {}, 0});
          write_touch(txn, key, number);
        },
        [this, number, done = std::move(done)](Result<void> touched) mutable {
          if (touched) touched_at_[number] = world().now();
          done();
        });
  }

 private:
  static std::string key_of(std::uint64_t number) { return "w.k" + std::to_string(number); }
  std::int64_t knob(std::string_view name) { return world().knob(name); }
  Duration ms(std::string_view name) { return milliseconds(knob(name)); }
  bool by_chance(const LifePtr& life, std::string_view name) {
    return !quiet_ && chance(life->node->random(), static_cast<std::uint64_t>(knob(name)));
  }
  std::vector<std::string> keys() {
    std::vector<std::string> all;
    for (std::int64_t i = 1; i <= knob("keys"); ++i) all.push_back(key_of(static_cast<std::uint64_t>(i)));
    return all;
  }

  // What goes wrong.

  void take_away(const LifePtr& life, const std::string& key, Done done) {
    disturbed_at_ = world().now();
    bucket_.lose(key);
    life->node->store().transact_async(
        [key](Transaction& txn) {
          SystemAccess access(txn);
          txn.clear(session::lease_key("leadership/default/" + key));
        },
        [done = std::move(done)](Result<void>) mutable { done(); });
  }

  /// For longer than the leadership lasts, as a rule.
  void stall(const LifePtr& life) {
    std::uint64_t ttl = static_cast<std::uint64_t>(knob("ttl_ms"));
    SteadyTime until = world().now() + milliseconds(draw(life->node->random(), ttl / 2, 2 * ttl + 1000));
    life->node->scheduler().pause_until(until);
    disturbed_at_ = std::max(disturbed_at_, until);
  }

  void stop_for_a_while(const LifePtr& life, Done done) {
    if (!life->tick || std::exchange(life->stopping, true)) return done();
    SteadyTime since = world().now();
    life->tick->stop_async(seconds(30), [this, life, since, done = std::move(done)](Result<void> stopped) mutable {
      done();
      if (life->over()) return;
      if (stopped) check_stopped(life, since);
      later(life, milliseconds(draw(life->node->random(), 1, 3000)), [this, life] {
        life->tick.reset();
        life->stopping = false;
        follow(life, life->leadership);
      });
    });
  }

  // Following.

  void open(const LifePtr& life) {
    if (knob("bucket") != 0) return follow(life, bucket_.open(*life->node));
    Duration ttl = ms("ttl_ms");
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
      if (by_chance(there, "stalls")) stall(there);
      if (chance(there->node->random(), static_cast<std::uint64_t>(knob("failing"))))
        return fail(ErrorCode::kHandlerFailed, "not this time");
      return {};
    };
    handlers.ended = [this](const TickEnd& end) { ends_.push_back(end); };
    auto tick = Tick::open(life->node->store(), leadership, {.window = ms("window_ms"), .restart_max = seconds(5)},
                           std::move(handlers));
    if (!tick) return world().violation("tick: not opened: " + to_string(tick.error()));
    life->leadership = std::move(leadership);
    life->tick.emplace(std::move(*tick));
    for (const std::string& key : keys())
      if (auto followed = life->tick->follow(key); !followed)
        world().violation("tick: not followed: " + to_string(followed.error()));
  }

  // Looking on.

  void look_later(const LifePtr& life) {
    later(life, milliseconds(300), [this, life] {
      life->node->store().transact_async(
          [](Transaction& txn) { return txn.snapshot().get_range(tuple::extensions(tuple::pack("pending"))); },
          [this, life](Result<std::vector<Row>> pending) {
            if (life->over()) return;
            if (pending) check_ages(*pending);
            if (quiet_ && pending && pending->empty() && ClientWorkload::idle()) at_rest_ = true;
            look_later(life);
          });
    });
  }

  /// Many times what a round takes, for one in two of them comes to nothing by chance.
  Duration patience() { return 5 * ms("ttl_ms") + 25 * (ms("window_ms") + 2 * ms("handler_ms") + milliseconds(500)); }

  bool disturbed_since(SteadyTime since) {
    return world().disturbed_since(since) || disturbed_at_ >= since || bucket_.lost_at() >= since;
  }

  void check_ages(const std::vector<Row>& pending) {
    SteadyTime since = world().now() - patience();
    if (disturbed_since(since)) return;
    for (const Row& row : pending) {
      auto parts = tuple::unpack_as<std::string, std::string, std::int64_t>(row.key);
      auto touched = parts ? touched_at_.find(std::get<2>(*parts)) : touched_at_.end();
      if (touched != touched_at_.end() && touched->second < since)
        world().violation("tick: " + std::get<1>(*parts) + " is pending, and nobody comes");
    }
  }

  void see_leaders_later(const LifePtr& life) {
    later(life, kLookEach, [this, life, due = world().now() + kLookEach] {
      // Whoever has just woken up may not know yet.
      bool awake = world().now() < due + milliseconds(5);
      for (const std::string& key : keys()) see_leader(life, key, awake);
      see_leaders_later(life);
    });
  }

  void see_leader(const LifePtr& life, const std::string& key, bool awake) {
    auto info = life->tick ? life->tick->info(key) : std::nullopt;
    bool leads = info && awake && debounce::leads(info->state) && info->state != TickState::kDeleting;
    SteadyTime before = std::exchange(life->led[key], leads ? world().now() : SteadyTime());
    if (!leads || before == SteadyTime() || knob("foreign") != 0) return;
    // Who leads it now has done so all the time since then, for a window takes longer.
    for (const LifePtr& other : lives_)
      if (other && other != life && other->led[key] > before)
        world().violation("tick: " + life->node->name() + " and " + other->node->name() + " both lead " + key);
  }

  void check_stopped(const LifePtr& life, SteadyTime since) {
    // A key whose creation was not heard of is left to its ageing out.
    if (disturbed_since(since - 2 * ms("ttl_ms"))) return;
    for (const std::string& key : keys())
      if (auto* entry = bucket_.find(key); entry && entry->owner == life->node->name())
        world().violation("tick: " + key + " was not given back in good order");
  }

  void check_ends(Reader& reader) {
    for (const TickEnd& end : ends_) {
      bool effect = reader.get(effect_key(end.token)).has_value();
      if (end.result && !effect)
        world().violation("tick: a run of " + end.key + " was said to have ended, and has not");
      if (!end.result && end.result.error().outcome() == Outcome::kNone && effect)
        world().violation("tick: a run of " + end.key +
                          " has had an effect, although that was denied: " + to_string(end.result.error()));
    }
  }

  std::vector<LifePtr> lives_;
  Bucket bucket_;
  std::map<std::int64_t, SteadyTime> touched_at_;
  std::vector<TickEnd> ends_;
  /// When the workload itself was last in the way.
  SteadyTime disturbed_at_ = {};
  std::int64_t last_ = 0;
  bool quiet_ = false;
  bool at_rest_ = false;
};

const RegisterWorkload kTick(
    {"tick",
     "what is pending is done once, by one leader's run at a time",
     {kClientsKnob,
      {"think_ms", {50, 2000}, "the longest pause between a client's operations"},
      {"keys", {1, 3}, "that all nodes follow"},
      {"window_ms", {100, 2000}, "of the leader, before it asks what is pending"},
      {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
      {"handler_ms", {0, 1500}, "the longest that handlers take"},
      {"failing", {0, 200}, "of 1000 runs fail"},
      {"foreign", {0, 0}, "of 1000 operations take the key from a leader"},
      {"stalls", {0, 0}, "of 1000 runs stand still for about as long as their leadership lasts"},
      {"restarts", {0, 0}, "of 1000 operations stop the node's tick in good order, for a while"},
      {"bucket", {0, 0}, "1 for a leadership outside of the store"},
      {"losses", {0, 0}, "of 1000 messages from and to that one are lost"}},
     make<TickWorkload>});

}  // namespace
}  // namespace perdure::sim::debouncing
