// A touch that was acknowledged is covered by a run that begins after it, and of a key one run at a time has an effect.
//
// Nodes touch keys, alone and in transactions, fire windows and run them; runs fail at times, and write what they ran
// for with their completion. Operators pause, cancel, change settings and remove the debouncer. See debounce_check.h
// for what must hold in the end; at any time the rows must fit each other, no window fires before it is due (D4), and
// where nothing disturbs, none much later.
#include "perdure/debounce.h"

#include "base/rfc3339.h"
#include "debounce/debounce_test_check.h"
#include "debounce/settings.h"
#include "debounce_check.h"
#include "queue/admin.h"
#include "queue/inspect.h"
#include "sim/client_workload.h"

namespace perdure::sim::debouncing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kName = "d";

struct Life {
  SimNode* node = nullptr;
  std::optional<Queue> queue = {};
  std::optional<Debouncers> debouncers = {};
  bool over() const { return !node->alive(); }
  Random& random() const { return node->random(); }
};
using LifePtr = std::shared_ptr<Life>;

template <class F>
void later(const LifePtr& life, Duration delay, F what) {
  NodeScheduler& scheduler = life->node->scheduler();
  scheduler.at(scheduler.now() + delay, [life, what = std::move(what)]() mutable {
    if (!life->over()) what();
  });
}

class DebounceWorkload final : public ClientWorkload {
 public:
  explicit DebounceWorkload(World& world) : ClientWorkload(world), lives_(static_cast<std::size_t>(world.nodes())) {
    settings_.quiet = ms("quiet_ms");
    if (is("max_wait_ms")) settings_.max_wait = settings_.quiet + ms("max_wait_ms");
    if (is("fixed")) {
      settings_.max_wait.reset();
      settings_.window = ms("quiet_ms");
    }
    settings_.max_count = static_cast<std::uint64_t>(knob("max_count"));
    settings_.edge = static_cast<Edge>(knob("edge"));
    settings_.payload = static_cast<Payload>(knob("payload"));
    settings_.back_off = {.delay = milliseconds(50), .factor = 2, .max_delay = seconds(1), .max = 1'000'000};
    if (is("redrive")) settings_.back_off.max = 1;
    settings_.worker = kName;
  }

  void setup(Setup& setup) override {
    setup.transact([this](Transaction& txn) {
      SystemAccess access(txn);
      debounce::set(txn, "default", kName, settings_, {});
    });
  }

  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    node.scheduler().slow_down("perdure-worker", ms("handler_ms"));
    // Somebody fires.
    bool fires = node.index() == 0 || !by_chance(life, "silent");
    if (auto opened = Debouncers::open(node.store(), {.fire = fires})) life->debouncers.emplace(std::move(*opened));
    open_queue(life);
    audit(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override { lives_[static_cast<std::size_t>(node.index())].reset(); }
  void quiesce() override {
    ClientWorkload::quiesce();
    quiet_ = true;
  }
  bool idle() const override { return ClientWorkload::idle() && at_rest_; }

  void check(Store& store) override {
    CheckOptions options{.owed = owed(), .at_rest = at_rest_, .acknowledged = made_, .possible = possible_};
    auto checked = store.read([&](Reader& reader) {
      debouncing::check(reader, options, [this](std::string what) { world().violation(std::move(what)); });
      check_rows(reader);
    });
    if (!checked) world().violation("debounce: cannot be checked: " + to_string(checked.error()));
  }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life || !life->debouncers) return done();
    std::uint64_t pick = draw(node.random(), 0, 99);
    if (is("operators")) {
      if (pick < 6) return change_pause(life, std::move(done));
      if (pick < 10) return cancel(life, std::move(done));
    }
    if (is("changes")) {
      if (pick < 5) return change_settings(life, std::move(done));
      if (pick < 7) return remove(life, std::move(done));
    }
    if (is("redrive") && pick > 80) return redrive(life, std::move(done));
    if (pick < 50) return touch(life, std::move(done));
    touch_in_transaction(life, std::move(done));
  }

 private:
  std::int64_t knob(std::string_view name) { return world().knob(name); }
  bool is(std::string_view name) { return knob(name) != 0; }
  Duration ms(std::string_view name) { return milliseconds(knob(name)); }
  bool by_chance(const LifePtr& life, std::string_view name) {
    return chance(life->random(), static_cast<std::uint64_t>(knob(name)));
  }
  std::string any_key(const LifePtr& life) {
    return "k" + std::to_string(draw(life->random(), 1, static_cast<std::uint64_t>(knob("keys"))));
  }
  Owed owed() {
    if (settings_.edge == Edge::kLeading) return Owed::kSome;
    bool all = settings_.payload == Payload::kAll || settings_.payload == Payload::kMerge;
    return all ? Owed::kOnce : Owed::kCounted;
  }

  // Touching.

  /// From which a run can tell all touches that it is for, if it gets them all.
  perdure::Value payload(const LifePtr& life, std::int64_t number) {
    perdure::Value::Map map{{std::to_string(number), number}};
    if (by_chance(life, "large")) map["padding"] = std::string(draw(life->random(), 10'000, 60'000), 'x');
    return map;
  }

  void touch(const LifePtr& life, Done done) {
    std::string key = any_key(life);
    std::int64_t number = ++last_;
    possible_[key].insert(number);
    life->debouncers->touch_async(kName, key, payload(life, number),
                                  [this, key, number, done = std::move(done)](Result<Window> window) mutable {
                                    settle_touch(key, number, window);
                                    done();
                                  });
  }

  void settle_touch(const std::string& key, std::int64_t number, const Result<Window>& window) {
    if (window && window->latest < window->first) world().violation("debounce: a window ends before it begins");
    if (window) made_[key].insert(number);
    if (!window && window.error().outcome() == Outcome::kNone) possible_[key].erase(number);
  }

  void touch_in_transaction(const LifePtr& life, Done done) {
    struct Touch {
      std::string key;
      std::int64_t number;
      perdure::Value payload;
    };
    std::vector<Touch> touches;
    for (std::uint64_t i = draw(life->random(), 1, 3); i > 0; --i) {
      std::string key = any_key(life);
      possible_[key].insert(++last_);
      touches.push_back({key, last_, payload(life, last_)});
    }
    life->node->store().transact_async(
        [life, touches](Transaction& txn) {
          for (auto& [key, number, given] : touches) {
            life->debouncers->touch(txn, kName, key, given);
            write_touch(txn, key, number);
          }
        },
        [done = std::move(done)](Result<void>) mutable { done(); }, draw_options(*life->node));
  }

  // Operating.

  void change_pause(const LifePtr& life, Done done) {
    bool pause = chance(life->random(), 500);
    life->node->store().transact_async(
        [life, pause](Transaction& txn) {
          if (pause)
            life->debouncers->pause(txn, kName, {.by = "operator"});
          else
            life->debouncers->unpause(txn, kName);
        },
        [done = std::move(done)](Result<void>) mutable { done(); });
  }

  void cancel(const LifePtr& life, Done done) {
    life->node->store().transact_async(
        [life, key = any_key(life)](Transaction& txn) {
          note_closed(txn, life, key);
          life->debouncers->cancel(txn, kName, key);
        },
        [done = std::move(done)](Result<void>) mutable { done(); });
  }

  static void note_closed(Transaction& txn, const LifePtr& life, const std::string& key) {
    auto state = life->debouncers->key(txn, kName, key);
    if (state && state->window) write_closed(txn, key, state->window->count);
  }

  /// Of what says when windows fire; what is in them stays as it is.
  void change_settings(const LifePtr& life, Done done) {
    DebounceSettings other = settings_;
    other.max_count = draw(life->random(), 0, 5);
    (other.window ? *other.window : other.quiet) = milliseconds(draw(life->random(), 10, 3000));
    other.max_wait.reset();
    if (!other.window && chance(life->random(), 500)) other.max_wait = other.quiet * 2;
    life->node->store().transact_async([life, other](Transaction& txn) { life->debouncers->set(txn, kName, other); },
                                       [done = std::move(done)](Result<void>) mutable { done(); });
  }

  /// With its windows, and makes it again a little later: touches in between are refused.
  void remove(const LifePtr& life, Done done) {
    life->node->store().transact_async(
        [this, life](Transaction& txn) {
          for (std::int64_t i = 1; i <= knob("keys"); ++i) note_closed(txn, life, "k" + std::to_string(i));
          SystemAccess access(txn);
          (void)debounce::remove_some(txn, "default", kName, {}, {});
        },
        [this, life, done = std::move(done)](Result<void>) mutable {
          done();
          if (!life->over())
            later(life, milliseconds(draw(life->random(), 0, 500)), [this, life] { make_again(life); });
        });
  }

  void make_again(const LifePtr& life) {
    life->node->store().transact_async([this, life](Transaction& txn) { life->debouncers->set(txn, kName, settings_); },
                                       [](Result<void>) {});
  }

  /// Puts back what has died.
  void redrive(const LifePtr& life, Done done) {
    life->node->store().transact_async(
        [life](Transaction& txn) {
          SystemAccess access(txn);
          queue::redrive_some(txn, "default", kName, {}, 0, life->node->scheduler().wall_now(),
                              life->node->scheduler().wall_now());
        },
        [done = std::move(done)](Result<void>) mutable { done(); });
  }

  // Running.

  void open_queue(const LifePtr& life) {
    Duration ttl = ms("ttl_ms");
    QueueOptions options{.session = {.ttl = ttl, .renew = ttl / 4, .name = life->node->name()}};
    Queue::open_async(life->node->store(), std::move(options), [this, life](Result<Queue> queue) {
      if (queue) life->queue.emplace(std::move(*queue));
      if (life->over()) return;
      if (queue) return serve(life);
      later(life, milliseconds(100), [this, life] { open_queue(life); });
    });
  }

  void serve(const LifePtr& life) {
    // Weak: the handler is part of the queue, and that of the life.
    auto served = Debouncers::work(*life->queue, kName,
                                   [this, weak = std::weak_ptr(life)](DebounceRun& run) -> Result<perdure::Value> {
                                     auto there = weak.lock();
                                     if (!there || there->over()) return fail(ErrorCode::kClosed, "the node is dead");
                                     return handle(there, run);
                                   },
                                   {.concurrency = 8});
    if (!served) world().violation("debounce: not served: " + to_string(served.error()));
  }

  Result<perdure::Value> handle(const LifePtr& life, DebounceRun& run) {
    world().count_operation();
    world().note(life->node->name(), "runs " + run.key() + " for " + std::to_string(run.count()) + ", attempt " +
                                         std::to_string(run.attempt()));
    std::vector<std::int64_t> numbers;
    if (owed() == Owed::kOnce) {
      for (const perdure::Value& one : run.payloads()) add_numbers(one, numbers);
      add_numbers(run.payload(), numbers);
    }
    run.complete(
        [key = run.key(), token = run.token(), count = run.count(), numbers](Transaction& txn) -> Result<void> {
          write_run(txn, key, token, count, numbers);
          return {};
        });
    if (by_chance(life, "failing")) return fail(ErrorCode::kHandlerFailed, "not this time");
    return perdure::Value();
  }

  static void add_numbers(const perdure::Value& payload, std::vector<std::int64_t>& numbers) {
    if (!payload.is_map()) return;
    for (const auto& [name, number] : *payload.as_map())
      if (number.is_integer()) numbers.push_back(*number.as_integer());
  }

  // Looking on.

  void audit(const LifePtr& life) {
    later(life, ms("audit_ms"), [this, life] { look(life); });
  }

  void look(const LifePtr& life) {
    life->node->store().transact_async(
        [this](Transaction& txn) {
          Reader snapshot = txn.snapshot();
          check_rows(snapshot);
          check_times(snapshot);
          return at_rest(snapshot);
        },
        [this, life](Result<bool> rest) {
          if (life->over()) return;
          if (quiet_ && rest && *rest && ClientWorkload::idle()) at_rest_ = true;
          if (quiet_ && is("redrive")) redrive(life, [] {});
          // Whoever removed it may have died since.
          if (is("changes") && chance(life->random(), 200)) make_again(life);
          if (quiet_ && is("operators"))
            life->node->store().transact_async([life](Transaction& txn) { life->debouncers->unpause(txn, kName); },
                                               [](Result<void>) {});
          audit(life);
        });
  }

  void check_rows(Reader& reader) {
    for (const std::string& what : debounce::RowCheck::run(reader)) world().violation("debounce: " + what);
  }

  /// Of the events that windows have become: none was made before its time, nor long after it where nothing held it up.
  void check_times(Reader& reader) {
    if (is("changes")) return;
    SystemAccess access(reader);
    // At first the time of the store moves on with each node that joins: their clocks differ by seconds.
    bool settled = is("calm") && world().now() > begun_ + seconds(10);
    Bytes prefix = tuple::pack_onto(kSystemKeys, "event");
    // Ids are by time, and old events have ended.
    RangeOptions newest{.limit = 100, .direction = Direction::kReverse};
    for (const Row& row : reader.get_range(tuple::extensions(prefix), newest)) {
      if (queue::state_of(row.value) == queue::Stored::kEnded) continue;
      auto event = queue::EventRow::decode(row.value);
      auto given = event ? queue::Given::decode(event->given()) : Result<queue::Given>(queue::Given{});
      auto run = given ? perdure::Value::decode(given->value) : Result<perdure::Value>(perdure::Value());
      if (!event || !run || !run->is_map() || given->apart_bytes > 0) continue;
      Due due = due_of(*run);
      // Times in runs are cut to milliseconds.
      if (event->enqueued_at < due.earliest) world().violation("debounce: a window has fired before it was due");
      if (settled && event->enqueued_at > due.latest + seconds(3))
        world().violation("debounce: a window has fired long after it was due");
    }
  }

  struct Due {
    WallTime earliest;
    WallTime latest;
  };
  Due due_of(const perdure::Value& run) {
    auto time = [&](std::string_view name) { return parse_rfc3339(*run.find(name)->as_text()).value(); };
    WallTime first = time("first"), latest = time("latest");
    // The first touch of a burst is due at once.
    if (settings_.edge != Edge::kTrailing) return {first, first};
    WallTime due = settings_.window ? first + *settings_.window : latest + settings_.quiet;
    if (settings_.max_wait) due = std::min(due, first + *settings_.max_wait);
    // So is a window that is full. Which touch made it so is not known: others may have come before it fired.
    bool full = settings_.max_count > 0 && *run.find("count")->as_integer() >= std::int64_t(settings_.max_count);
    return full ? Due{first, std::min(due, latest)} : Due{due, due};
  }

  bool at_rest(Reader& reader) {
    SystemAccess access(reader);
    auto none = [&](const Bytes& prefix) { return reader.get_range(tuple::extensions(prefix), {.limit = 1}).empty(); };
    bool dead = queue::worker_info(reader, "default", kName, {}).dead > 0;
    return !dead && none(tuple::pack_onto(kSystemKeys, "window")) && none(queue::told_prefix(debounce::kModule)) &&
           none(debounce::timetable());
  }

  const SteadyTime begun_ = world().now();
  DebounceSettings settings_;
  std::vector<LifePtr> lives_;
  std::map<std::string, std::set<std::int64_t>> made_, possible_;
  std::int64_t last_ = 0;
  bool quiet_ = false;
  bool at_rest_ = false;
};

const RegisterWorkload kDebounce({"debounce",
                                  "a touch is covered by a run that begins after it, one run of a key at a time",
                                  {kClientsKnob,
                                   {"think_ms", {20, 1000}, "the longest pause between a client's operations"},
                                   {"keys", {1, 6}, "that are touched"},
                                   {"quiet_ms", {10, 2000}, "without a touch before a window fires"},
                                   {"max_wait_ms", {0, 3000}, "that it may take longer than that; any time if 0"},
                                   {"fixed", {0, 1}, "1 where windows have a fixed length"},
                                   {"max_count", {0, 5}, "touches with which a window fires; any number if 0"},
                                   {"edge", {0, 2}, "trailing, leading, both"},
                                   {"payload", {0, 3}, "last, first, all, merged"},
                                   {"failing", {0, 200}, "of 1000 runs fail"},
                                   {"handler_ms", {0, 1500}, "the longest that runs take"},
                                   {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
                                   {"audit_ms", {100, 600}, "between two looks at the rows"},
                                   {"operators", {0, 0}, "1 where the debouncer is paused, and windows are cancelled"},
                                   {"redrive", {0, 0}, "1 where runs that fail twice die, and are redriven"},
                                   {"changes", {0, 0}, "1 where the debouncer is changed and removed"},
                                   {"large", {0, 0}, "of 1000 touches have tens of kilobytes"},
                                   {"silent", {0, 0}, "of 1000 lives of nodes fire nothing, but for the first node"},
                                   {"calm", {0, 0}, "1 where nothing holds up a window"}},
                                  make<DebounceWorkload>});

}  // namespace
}  // namespace perdure::sim::debouncing
