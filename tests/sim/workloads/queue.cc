// An event that was emitted runs, at its time, with one effect, and is never lost.
//
// Nodes run handlers for the same workers; clients emit events of all kinds, hands claim some from outside and do with
// them what they like, also with tokens that are stale, and operators pause, block, cancel, redrive and configure.
// Handlers fail in every way, and write an effect with their completion. See queue_check.h for what must hold in the
// end, and queue_rows.h for what must hold at any time. Once faults stop, all that can run has run (Q5).
#include "queue/admin.h"
#include "queue/inspect.h"
#include "queue/worker_table.h"
#include "queue_check.h"
#include "queue_scene.h"
#include "store/system_access.h"

namespace perdure::sim::queues {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class QueueWorkload final : public ClientWorkload {
 public:
  explicit QueueWorkload(World& world)
      : ClientWorkload(world), scene_(world), lives_(static_cast<std::size_t>(world.nodes())) {}

  void setup(Setup& setup) override {
    setup.transact([this](Transaction& txn) {
      SystemAccess access(txn);
      for (const std::string& worker : scene_.workers())
        queue::write_settings(txn, "default", worker, scene_.settings(), {});
    });
  }

  void start(SimNode& node) override {
    scene_.begins(node);
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    node.scheduler().slow_down("perdure-worker", milliseconds(scene_.knob("handler_ms")));
    open(life);
    audit(life);
    if (scene_.is("hands")) hands_.start(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override {
    // Its store is closed, so that nothing is waited for.
    lives_[static_cast<std::size_t>(node.index())].reset();
  }

  void quiesce() override {
    ClientWorkload::quiesce();
    scene_.be_quiet();
  }
  bool idle() const override { return ClientWorkload::idle() && at_rest_; }

  void check(Store& store) override {
    QueueCheck(scene_.notes(), {.workers = scene_.workers(),
                                .settings = scene_.settings(),
                                .remembered = scene_.remembers(),
                                .ordered = scene_.is("ordered")})
        .check(store);
  }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life || !life->queue) return done();
    std::uint64_t pick = draw(node.random(), 0, 99);
    bool enough = static_cast<std::int64_t>(scene_.notes().sent().size()) > scene_.knob("events");
    if (scene_.is("operators")) {
      if (pick < 14) return operators_.change_rule(life, std::move(done));
      if (pick < 22) return operators_.cancel(life, std::move(done));
      if (pick < 24) return operators_.cancel_all(life, std::move(done));
      if (pick < 27) return operators_.redrive(life, std::move(done));
      if (pick < 29) return operators_.configure(life, std::move(done));
    }
    if (scene_.is("hands") && pick < 45) return hands_.present_old(life, std::move(done));
    if (enough) return later(life, seconds(1), std::move(done));
    if (scene_.is("ordered")) return clients_.emit_in_transaction(life, std::move(done));
    if (pick < 60) return clients_.emit(life, std::move(done));
    if (pick < 70) return clients_.emit_many(life, std::move(done));
    if (pick < 85) return clients_.emit_in_transaction(life, std::move(done));
    clients_.emit_surely(life, std::move(done));
  }

 private:
  // Nodes.

  void open(const LifePtr& life) {
    Duration ttl = milliseconds(scene_.knob("ttl_ms"));
    QueueOptions options{.session = {.ttl = ttl, .renew = ttl / 4, .name = life->node->name()}};
    Queue::open_async(life->node->store(), std::move(options), [this, life](Result<Queue> queue) {
      if (queue) life->queue.emplace(std::move(*queue));
      if (life->over()) return;
      if (queue) return serve(life);
      later(life, milliseconds(100), [this, life] { open(life); });
    });
  }

  void serve(const LifePtr& life) {
    // The first node always serves; others may only emit.
    if (life->node->index() > 0 && chance(life->random(), 250)) return;
    WorkOptions options{.concurrency = static_cast<unsigned>(scene_.knob("concurrency"))};
    if (scene_.is("timeout_ms")) options.timeout = milliseconds(scene_.knob("timeout_ms"));
    for (const std::string& worker : scene_.served()) {
      // Weak: the handler is part of the queue, and that of the life.
      auto served = life->queue->work(
          worker,
          [this, weak = std::weak_ptr(life)](Job& job) -> Result<Value> {
            auto there = weak.lock();
            if (!there || there->over()) return fail(ErrorCode::kClosed, "the node is dead");
            return handle(there, job);
          },
          options);
      if (!served) world().violation("a worker is not served: " + to_string(served.error()));
    }
  }

  Result<Value> handle(const LifePtr& life, Job& job) {
    Event event = job.event();
    event.token = job.token();
    scene_.claimed(life, event, "handler");
    Errand errand = Errand::from(job.value());
    bool fails = event.retries < errand.fails;
    job.complete([number = errand.number, token = job.token(),
                  breaks = fails && errand.way == Errand::Way::kBody](Transaction& txn) -> Result<void> {
      write_deed(txn, number, Did::kEffect, token);
      if (breaks) return fail(ErrorCode::kHandlerFailed, "not yet, in the body");
      return {};
    });
    if (!fails) return Value(errand.number);
    switch (errand.way) {
      case Errand::Way::kThrow:
        throw std::runtime_error("not yet");
      case Errand::Way::kError:
        return fail(ErrorCode::kHandlerFailed, "not yet, as an error");
      case Errand::Way::kBody:
        return Value(errand.number);
      case Errand::Way::kGiveUp:
        job.give_up();
        break;
      case Errand::Way::kSoon:
        job.retry_in(milliseconds(20));
        break;
    }
    throw std::runtime_error("not yet, and said when");
  }

  // Looking on.

  void audit(const LifePtr& life) {
    later(life, milliseconds(scene_.knob("audit_ms")), [this, life] { look(life); });
  }

  void look(const LifePtr& life) {
    auto most = static_cast<std::size_t>(scene_.knob("concurrency")) * scene_.served().size();
    if (life->queue && life->queue->activity().running > most)
      scene_.notes().wrong(life->node->name() + " runs more handlers at once than it may");
    life->node->store().transact_async(
        [this, life](Transaction& txn) {
          Reader snapshot = txn.snapshot();
          StoredRows rows = check_rows(snapshot, "default", scene_.workers(),
                                       [this](const std::string& what) { scene_.notes().wrong(what); });
          if (life->queue) check_info(snapshot, *life->queue, rows);
          check_unique(rows);
          return unrest(snapshot, rows);
        },
        [this, life](Result<std::string> unrest) {
          if (life->over()) return;
          if (!unrest) world().note(life->node->name(), "cannot look: " + to_string(unrest.error()));
          if (unrest && scene_.quiet()) come_to_rest(life, *unrest);
          audit(life);
        });
  }

  /// What people are shown is what is there.
  void check_info(Reader& reader, const Queue& queue, const StoredRows& rows) {
    for (const std::string& worker : scene_.workers()) {
      std::map<queue::Stored, std::uint64_t> there;
      for (const auto& [id, row] : rows.events)
        if (row.names().worker == worker) ++there[row.state];
      WorkerInfo info = queue.worker(reader, worker);
      using enum queue::Stored;
      if (info.ready != there[kReady] || info.scheduled != there[kScheduled] || info.running != there[kRunning] ||
          info.dead != there[kDead] || info.total != there[kReady] + there[kScheduled] + there[kRunning])
        scene_.notes().wrong("what is shown of " + worker + " is not what is there");
      auto listed = queue.list(reader, {.worker = worker, .limit = 1000});
      std::uint64_t all = there[kReady] + there[kScheduled] + there[kRunning] + there[kDead];
      if (!listed || (listed->next.empty() && listed->events.size() != all))
        scene_.notes().wrong("the list of " + worker + " is not that of its events" +
                             (listed ? "" : ": " + to_string(listed.error())));
    }
  }

  /// Of a unique key without a time of its own there is one event at a time, unless dead ones were put back.
  void check_unique(const StoredRows& rows) {
    std::set<std::pair<std::string, std::string>> taken;
    for (const auto& [id, row] : rows.events) {
      const auto names = row.names();
      std::string worker(names.worker), key(names.unique_key);
      if (!key.starts_with(kUnique) || row.state == queue::Stored::kDead || scene_.notes().redriven(worker)) continue;
      if (!taken.emplace(worker, key).second)
        scene_.notes().wrong("of the unique key " + key + " there are two events");
    }
  }

  /// What is not at rest yet, in words; empty if all is.
  std::string unrest(Reader& reader, const StoredRows& rows) const {
    for (const auto& [id, row] : rows.events)
      if (row.state != queue::Stored::kDead) return to_string(id) + " is " + static_cast<char>(row.state);
    SystemAccess access(reader);
    bool forgets = !reader.get_range(tuple::extensions(queue::forget_prefix()), {.limit = 1}).empty();
    if (forgets && scene_.knob("remember") != 1) return "something is still remembered";
    return {};
  }

  void come_to_rest(const LifePtr& life, const std::string& unrest) {
    if (!unrest.empty()) world().note(life->node->name(), "not at rest: " + unrest);
    if (ClientWorkload::idle() && unrest.empty()) at_rest_ = true;
    if (life->queue && scene_.is("operators")) operators_.let_go(life);
  }

  Scene scene_;
  Clients clients_{scene_};
  Hands hands_{scene_};
  Operators operators_{scene_};
  std::vector<LifePtr> lives_;
  bool at_rest_ = false;
};

const RegisterWorkload kQueue(
    {"queue",
     "an event that was emitted runs at its time, with one effect, and is never lost",
     {kClientsKnob,
      {"think_ms", {50, 1500}, "the longest pause between a client's operations"},
      {"events", {20, 250}, "that are emitted, at most and about"},
      {"workers", {1, 3}, "that all clients emit to"},
      {"concurrency", {1, 4}, "handlers of a worker at once, on each node"},
      {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
      {"handler_ms", {0, 800}, "the longest that handlers take"},
      {"timeout_ms", {0, 0}, "of an attempt; none if 0"},
      {"retry_ms", {0, 1500}, "before the first retry"},
      {"retry_max", {0, 3}, "retries"},
      {"drop", {0, 1}, "1 where events that fail too often are dropped"},
      {"remember", {0, 2}, "how long it is remembered how events ended: not at all, always, for a while"},
      {"limit", {1, 3}, "events of a limit key at once"},
      {"rate", {0, 0}, "claims a second; any number if 0"},
      {"losses_max", {1000, 1000}, "losses before an event is dead"},
      {"delay_ms", {10, 3000}, "the longest delay of an event"},
      {"lock_ms", {100, 3000}, "the longest claim by hand"},
      {"poison", {0, 60}, "of 1000 events always fail; four times as many do for a while"},
      {"audit_ms", {200, 1000}, "between two looks at the rows"},
      {"hands", {0, 0}, "1 where events are claimed by hand as well"},
      {"operators", {0, 0}, "1 where workers are paused, and events cancelled"},
      {"unique", {0, 1}, "1 where events have unique keys"},
      {"limits", {0, 1}, "1 where events have limit keys"},
      {"ordered", {0, 0}, "1 where events must be claimed in order"},
      {"jumps", {0, 0}, "1 where wall clocks jump"}},
     make<QueueWorkload>});

}  // namespace
}  // namespace perdure::sim::queues
