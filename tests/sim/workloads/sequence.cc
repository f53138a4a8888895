// Sequences: whoever dies, numbers and offsets have neither gaps nor doubles.
//
// Clients append with numbers in one transaction. Beside them nodes take the partition for themselves now and then, and
// hand out numbers from memory: with caches and bounds so small that all that can happen does, with numbers in the log
// in any order, and with events that are given up in the middle. See sequence_check.h for what must hold.
#include "perdure/sequence.h"

#include <algorithm>

#include "perdure/session.h"
#include "sequence/rows.h"
#include "sequence_check.h"
#include "sim/client_workload.h"
#include "store/system_access.h"

namespace perdure::sim::sequencing {
namespace {

using std::chrono::milliseconds;

/// One life of a node, and the partition while it has it.
struct Life {
  SimNode* node = nullptr;
  std::optional<Sequences> sequences = {};
  std::optional<Session> session = {};
  std::optional<OwnedPartition> owner = {};
  std::optional<Sequencer> sequencer = {};
  /// Events until it gives the partition back.
  std::uint64_t left = 0;
  /// Of the event that is under way.
  LogOffset offset = 0;
  WorkspaceId workspace = {};
  std::vector<std::pair<std::string, Number>> drawn = {};

  bool over() const { return !node->alive(); }
};
using LifePtr = std::shared_ptr<Life>;

std::string sequence_name(std::uint64_t random) {
  return std::next(kFloors.begin(), static_cast<std::ptrdiff_t>(random % kFloors.size()))->first;
}

class SequenceWorkload final : public ClientWorkload {
 public:
  explicit SequenceWorkload(World& world) : ClientWorkload(world), lives_(static_cast<std::size_t>(world.nodes())) {}

  void setup(Setup& setup) override {
    setup.transact([](Transaction& txn) {
      SystemAccess access(txn);
      sequence::PartitionRow row;
      in_txn(txn, row.take({.types = {{kType, kFloors}}}));
      txn.set(sequence::partition_key("default", kPartition), row.encode());
    });
  }
  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    life->sequences = Sequences::open(node.store()).value();
    open_session(life);
    look_later(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override { lives_[static_cast<std::size_t>(node.index())].reset(); }
  void node_stopped(SimNode& node) override {
    ClientWorkload::node_stopped(node);
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    if (!life) return;
    let_go(life);
    life->session.reset();
    life->sequences.reset();
  }
  void quiesce() override {
    ClientWorkload::quiesce();
    quiet_ = true;
  }
  bool idle() const override { return ClientWorkload::idle() && known_.at_rest; }

  void check(Store& store) override {
    auto checked = store.read([&](Reader& reader) {
      sequencing::check(reader, known_, [this](std::string what) { world().violation(std::move(what)); });
    });
    if (!checked) world().violation("sequence: cannot be checked: " + to_string(checked.error()));
  }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life || !life->sequences) return done();
    Append event{.type = kType, .workspace = draw_workspace(node)};
    for (std::uint64_t i = draw(node.random(), 0, 3); i > 0; --i) event.next.push_back(sequence_name(node.random()()));
    life->sequences->append_async(kPartition, event,
                                  [this, event, done = std::move(done)](Result<Appended> appended) mutable {
                                    world().count_operation();
                                    if (appended) {
                                      Told told{event.workspace, {}};
                                      for (std::size_t i = 0; i < event.next.size(); ++i)
                                        told.numbers.emplace_back(event.next[i], appended->numbers[i]);
                                      tell(appended->offset, std::move(told));
                                    }
                                    done();
                                  });
  }

 private:
  std::uint64_t draw_workspace(SimNode& node) {
    return draw(node.random(), 1, static_cast<std::uint64_t>(world().knob("workspaces")));
  }
  template <class F>
  void later(const LifePtr& life, Duration delay, F what) {
    NodeScheduler& scheduler = life->node->scheduler();
    scheduler.at(scheduler.now() + delay, [life, what = std::move(what)]() mutable {
      if (!life->over()) what();
    });
  }
  void tell(LogOffset offset, Told told) {
    if (!known_.told.emplace(offset, std::move(told)).second)
      world().violation("offset " + std::to_string(offset) + " was told twice");
  }
  static void let_go(const LifePtr& life) {
    life->sequencer.reset();
    life->owner.reset();
  }

  void open_session(const LifePtr& life) {
    Duration ttl = milliseconds(world().knob("ttl_ms"));
    Session::open_async(life->node->store(), {.ttl = ttl, .renew = ttl / 4, .name = life->node->name()},
                        [this, life](Result<Session> session) {
                          if (life->over()) return;
                          if (session) life->session.emplace(std::move(*session));
                          own_later(life);
                        });
  }

  void own_later(const LifePtr& life) {
    let_go(life);
    if (world().knob("owners") == 0) return;
    later(life, milliseconds(draw(life->node->random(), 1, 2000)), [this, life] {
      if (quiet_) return;
      if (!life->session || !life->session->alive()) return open_session(life);
      life->sequences->own_async(*life->session, kPartition, milliseconds(500),
                                 [this, life](Result<OwnedPartition> owner) {
                                   if (life->over()) return;
                                   if (!owner) return own_later(life);
                                   owned(life, std::move(*owner));
                                 });
    });
  }

  void owned(const LifePtr& life, OwnedPartition owner) {
    SimNode& node = *life->node;
    known_.tokens.push_back(owner.lease().token());
    SequencerParams params = owner.params();
    params.cached_max = static_cast<std::int64_t>(draw(node.random(), 0, 4));
    params.unflushed_max = draw(node.random(), 0, 4);
    params.flush_timeout = milliseconds(draw(node.random(), 1, 300));
    life->owner.emplace(std::move(owner));
    life->sequencer.emplace(Sequencer::open(node.store(), std::move(params), life->owner->storage()).value());
    life->left = draw(node.random(), 1, 60);
    begin(life);
  }

  void give_back(const LifePtr& life) {
    Lease lease = life->owner->lease();
    // Now and then without a word.
    if (chance(life->node->random(), 500)) lease.release_async([](const Result<void>&) {});
    own_later(life);
  }

  void begin(const LifePtr& life) {
    if (life->over() || !life->sequencer || quiet_) return;
    if (life->left-- == 0) return give_back(life);
    life->workspace = WorkspaceId{draw_workspace(*life->node)};
    auto offset = life->sequencer->start(life->owner->kind(kType).value(), life->workspace);
    if (!offset && life->sequencer->status().fenced) return own_later(life);
    if (!offset)
      return life->sequencer->when_ready([this, life] { later(life, Duration(1), [this, life] { begin(life); }); });
    life->offset = *offset;
    life->drawn.clear();
    draw_next(life, draw(life->node->random(), 0, 3));
  }

  void draw_next(const LifePtr& life, std::uint64_t left) {
    if (left == 0) return write(life);
    std::string name = sequence_name(life->node->random()());
    life->sequencer->next_async(life->owner->seq(name).value(), [this, life, name, left](Result<Number> number) {
      if (life->over() || !life->sequencer) return;
      if (!number) return give_up(life);
      life->drawn.emplace_back(name, *number);
      // As a task of its own: the answer may be part of a call of the sequencer.
      later(life, Duration(1), [this, life, left] { draw_next(life, left - 1); });
    });
  }

  void give_up(const LifePtr& life) {
    life->sequencer->actualize();
    begin_later(life);
  }

  void write(const LifePtr& life) {
    if (!life->sequencer) return;
    SimNode& node = *life->node;
    if (chance(node.random(), static_cast<std::uint64_t>(world().knob("given_up")))) return give_up(life);
    LogWrite entry{life->owner->kind(kType).value(), life->workspace, {}, {}, payload_of(life->owner->lease().token())};
    for (auto& [name, number] : life->drawn) entry.numbers.emplace_back(life->owner->seq(name).value(), number);
    std::ranges::reverse(entry.numbers);
    entry.updated.emplace_back(life->owner->seq("invoice").value(), 1'000'000);
    node.store().transact_async(
        [owner = *life->owner, offset = life->offset, entry](Transaction& txn) { owner.write(txn, offset, entry); },
        [this, life, offset = life->offset](Result<void> written) {
          if (life->over() || !life->sequencer) return;
          world().count_operation();
          if (!written) return give_up(life);
          tell(offset, {static_cast<std::uint64_t>(life->workspace), life->drawn});
          life->sequencer->flush();
          begin_later(life);
        },
        draw_options(node));
  }

  /// The end: owners stop once all is stored, and the last append brings up what others left.
  void look_later(const LifePtr& life) {
    later(life, milliseconds(300), [this, life] {
      look_later(life);
      if (!quiet_ || !ClientWorkload::idle()) return;
      if (life->sequencer) {
        SequencerStatus status = life->sequencer->status();
        if (!status.fenced && (status.actualizing || status.flushed_offset != status.offset)) return;
        let_go(life);
      }
      // Whatever it holds without knowing goes with the session.
      if (life->session) life->session->stop_async(Duration(0), [](const Result<void>&) {});
      life->session.reset();
      life->sequences->append_async(kPartition, {.type = kType, .workspace = 1}, [this](Result<Appended> appended) {
        if (appended) known_.at_rest = true;
      });
    });
  }

  void begin_later(const LifePtr& life) {
    later(life, milliseconds(draw(life->node->random(), 0, 60)), [this, life] { begin(life); });
  }

  std::vector<LifePtr> lives_;
  Known known_;
  bool quiet_ = false;
};

const RegisterWorkload kSequence({"sequence",
                                  "offsets and numbers have neither gaps nor doubles, whoever hands them out",
                                  {kClientsKnob,
                                   {"think_ms", {100, 3000}, "the longest pause between a client's operations"},
                                   {"workspaces", {1, 3}, "that events belong to"},
                                   {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
                                   {"owners", {1, 1}, "0: nobody takes the partition for himself"},
                                   {"given_up", {0, 300}, "of 1000 events are given up before they are written"}},
                                  make<SequenceWorkload>});

}  // namespace
}  // namespace perdure::sim::sequencing
