// Every message to an actor takes effect once, in the order of its mailbox, with all that it asked for.
//
// Nodes serve the same kind, or only send; clients call, cast, cast in transactions, ask, transfer money between
// actors, and give up waiting at times; handlers fail, for a while or for ever. With locks, some messages go on under
// the lock of their actor while others go past it, and it is taken away from some. What clients are told is noted
// outside of the world (account_notes.h), and compared with the states, mailboxes and dead letters in the end:
//
//   - a state is what the messages that it consumed make of it, and money is neither made nor lost (A1);
//   - what was acknowledged is consumed once, or a dead letter, or still in its mailbox; what failed is not; and what
//     was acknowledged before another was sent comes before it (A2);
//   - once faults stop, mailboxes become empty, nobody holds a lock, and nothing is left of those who waited (A3);
//   - what ends under a lock has not lost it, and overwrites nothing that went past it (A4).
#include "account_notes.h"
#include "actor/mailbox.h"
#include "actor/rows.h"
#include "session/rows.h"

namespace perdure::sim::accounts {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using What = AccountNotes::What;

constexpr int kAlways = 1'000;

std::vector<std::string> names(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back("a" + std::to_string(i));
  return names;
}

template <class M>
Value value(const M& message) {
  return internal::message_value(message);
}

class ActorWorkload final : public ClientWorkload {
 public:
  explicit ActorWorkload(World& world)
      : ClientWorkload(world),
        notes_(world, names(world.knob("actors"))),
        lives_(static_cast<std::size_t>(world.nodes())) {}

  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    if (auto most = world().knob("handler_us"); most > 0)
      node.scheduler().slow_down("perdure-handler", std::chrono::microseconds(most));
    node.scheduler().slow_down("perdure-locked", milliseconds(world().knob("locked_ms")));
    open(life);
    audit(life);
    ClientWorkload::start(node);
  }
  void node_gone(SimNode& node) override {
    // Its store is closed, so that nothing is waited for.
    lives_[static_cast<std::size_t>(node.index())].reset();
  }

  void quiesce() override {
    ClientWorkload::quiesce();
    quiet_ = true;
  }
  bool idle() const override { return ClientWorkload::idle() && at_rest_; }
  void check(Store& store) override { notes_.check(store); }

 protected:
  void operate(SimNode& node, std::uint64_t, Done done) override {
    LifePtr life = lives_[static_cast<std::size_t>(node.index())];
    if (!life || !life->actors) return done();
    std::uint64_t pick = draw(node.random(), 0, 99);
    bool locks = world().knob("locks") == 1, kills = world().knob("kills") == 1;
    if (pick < 22) return call(life, std::move(done));
    if (pick < 35) return cast(life, std::move(done));
    if (pick < 43) return cast_many(life, std::move(done));
    if (pick < 50) return cast_in_transaction(life, std::move(done));
    if (pick < 56) return call_in_transaction(life, std::move(done));
    if (pick < 67) return transfer(life, std::move(done));
    if (pick < 73) return ask(life, std::move(done));
    if (pick < 78) return cast_later(life, std::move(done));
    if (pick < 88 && life->serves) return past_the_mailbox(life, std::move(done));
    if (pick < 89) return stop(life, std::move(done));
    if (pick < 91 && kills) return kill(life, std::move(done));
    if (pick < 98 && locks) return slow(life, std::move(done));
    if (pick < 99 && locks) return unlock(life, std::move(done));
    call(life, std::move(done));
  }

 private:
  struct Life {
    SimNode* node = nullptr;
    std::optional<Actors> actors = {};
    bool serves = false;
    bool over() const { return !node->alive(); }
  };
  using LifePtr = std::shared_ptr<Life>;

  // Nodes.

  void open(const LifePtr& life) {
    constexpr std::size_t kCaches[] = {0, 3'000, 1'000'000};
    Duration ttl = milliseconds(world().knob("ttl_ms"));
    ActorsOptions options{.session = {.ttl = ttl, .renew = ttl / 4, .name = life->node->name()},
                          .handler_threads = static_cast<unsigned>(draw(life->node->random(), 1, 4)),
                          .cache_bytes = kCaches[draw(life->node->random(), 0, 2)]};
    Actors::open_async(life->node->store(), std::move(options), [this, life](Result<Actors> actors) {
      if (actors) life->actors.emplace(std::move(*actors));
      if (life->over()) return;
      if (actors) return serve(life);
      life->node->scheduler().at(life->node->scheduler().now() + milliseconds(100), [this, life] {
        if (!life->over()) open(life);
      });
    });
  }

  void serve(const LifePtr& life) {
    Random& random = life->node->random();
    // The first node always serves; others may only send, or only handle what goes past the mailbox.
    bool first = life->node->index() == 0;
    if (!first && chance(random, 250)) return;
    KindOptions options{.consume = first || chance(random, 750),
                        .attempts_max = static_cast<int>(world().knob("attempts")),
                        .back_off = milliseconds(world().knob("back_off_ms")),
                        .back_off_max = milliseconds(500),
                        .mailbox_max = static_cast<std::uint64_t>(world().knob("mailbox_max")),
                        .batch_max = static_cast<std::size_t>(world().knob("batch_max"))};
    Account account{.committed = [this](std::int64_t id) { notes_.committed(id); }};
    life->serves = true;
    if (auto served = life->actors->serve(account, options); !served)
      world().violation("the kind is not served: " + to_string(served.error()));
  }

  // Messages.

  const std::string& any(const LifePtr& life) {
    return notes_.actors()[draw(life->node->random(), 0, notes_.actors().size() - 1)];
  }
  Actor actor(const LifePtr& life, const std::string& name) { return life->actors->actor(Account::kKind, name); }
  Duration timeout(const LifePtr& life) {
    constexpr Duration kTimeouts[] = {milliseconds(3), milliseconds(30), milliseconds(300),
                                      seconds(5),      seconds(5),       Duration::max()};
    // A reset forgets who asked, so that nobody replies any more.
    return kTimeouts[draw(life->node->random(), 0, world().knob("kills") == 1 ? 4 : 5)];
  }
  /// Most of them succeed; some fail for a while, and some for ever.
  Put put(const LifePtr& life, AccountNotes::Sent sent) {
    std::uint64_t pick = draw(life->node->random(), 0, 99);
    int fails = pick < 2 ? kAlways : pick < 10 ? static_cast<int>(pick % 3) : 0;
    if (fails == kAlways) sent.what = What::kPoison;
    return {.id = notes_.send(std::move(sent)), .fails = fails};
  }
  /// Notes the answer to a message, and goes on.
  template <class T>
  auto noting(std::int64_t id, Done done) {
    return [this, id, done = std::move(done)](Result<T> result) mutable {
      notes_.answered(id, result);
      done();
    };
  }
  template <class M>
  void call(const LifePtr& life, const std::string& name, const M& message, Done done) {
    actor(life, name)
        .call_async(value(message), {.timeout = timeout(life)}, noting<Value>(message.id, std::move(done)));
  }

  void call(const LifePtr& life, Done done) {
    std::string name = any(life);
    call(life, name, put(life, {.actor = name}), std::move(done));
  }
  void cast(const LifePtr& life, Done done) {
    std::string name = any(life);
    Put message = put(life, {.actor = name});
    actor(life, name).cast_async(value(message), {}, noting<void>(message.id, std::move(done)));
  }
  void cast_many(const LifePtr& life, Done done) {
    std::string name = any(life);
    std::vector<Value> messages;
    std::vector<std::int64_t> ids;
    for (std::uint64_t left = draw(life->node->random(), 1, 5); left > 0; --left) {
      ids.push_back(notes_.send({.actor = name, .group = ids.empty() ? 0 : ids[0]}));
      messages.push_back(value(Put{.id = ids.back()}));
    }
    actor(life, name)
        .cast_many_async(std::move(messages), [this, ids, done = std::move(done)](Result<void> taken) mutable {
          for (std::int64_t id : ids) notes_.answered(id, taken);
          done();
        });
  }
  void cast_in_transaction(const LifePtr& life, Done done) {
    std::string name = any(life);
    Put message = put(life, {.actor = name, .with = AccountNotes::Sent::With::kCastInTransaction});
    life->node->store().transact_async(
        [to = actor(life, name), message](Transaction& txn) mutable {
          to.cast(txn, value(message));
          txn.set(AccountNotes::row_of(message.id), {});
        },
        noting<void>(message.id, std::move(done)), draw_options(*life->node));
  }
  void call_in_transaction(const LifePtr& life, Done done) {
    std::string name = any(life);
    Put message = put(life, {.actor = name, .with = AccountNotes::Sent::With::kCallInTransaction});
    life->node->store().transact_async(
        [to = actor(life, name), message](Transaction& txn) mutable {
          txn.set(AccountNotes::row_of(message.id), {});
          return to.call(txn, value(message));
        },
        [this, life, id = message.id, done = std::move(done)](Result<PendingCall> pushed) mutable {
          if (!pushed) return noting<void>(id, std::move(done))(std::unexpected(pushed.error()));
          pushed->wait_async(timeout(life), noting<Value>(id, std::move(done)));
        },
        draw_options(*life->node));
  }
  void transfer(const LifePtr& life, Done done) {
    std::string name = any(life), to = any(life);
    auto amount = static_cast<std::int64_t>(draw(life->node->random(), 1, 100));
    std::int64_t delay = chance(life->node->random(), 300) ? 200 : 0;
    Transfer message{.to = to, .amount = amount, .delay_ms = delay};
    message.id = notes_.send({.what = What::kTransfer, .actor = name, .amount = amount, .to = to});
    if (chance(life->node->random(), 500)) return call(life, name, message, std::move(done));
    actor(life, name).cast_async(value(message), {}, noting<void>(message.id, std::move(done)));
  }
  void ask(const LifePtr& life, Done done) {
    std::string name = any(life);
    call(life, name, Ask{notes_.send({.what = What::kAsk, .actor = name})}, std::move(done));
  }
  void cast_later(const LifePtr& life, Done done) {
    std::string name = any(life);
    Put message{.id = notes_.send({.what = What::kDelayed, .actor = name})};
    Duration delay = draw_delay(life->node->random(), seconds(2));
    actor(life, name).cast_async(value(message), {.delay = delay}, noting<void>(message.id, std::move(done)));
  }
  void past_the_mailbox(const LifePtr& life, Done done) {
    std::string name = any(life);
    CallOptions options{.timeout = timeout(life), .way = Way::kPriority};
    if (chance(life->node->random(), 500)) {
      Mark mark{notes_.send({.what = What::kMark, .actor = name})};
      return actor(life, name).call_async(value(mark), options, noting<Value>(mark.id, std::move(done)));
    }
    std::int64_t known = notes_.length_known(name);
    actor(life, name)
        .call_async(value(Length{}), options,
                    [this, name, known, done = std::move(done)](const Result<Value>& reply) mutable {
                      if (reply) saw_length(name, known, *reply->as_integer());
                      done();
                    });
  }
  void saw_length(const std::string& name, std::int64_t known, std::int64_t seen) {
    if (seen < known && world().knob("kills") == 0)
      world().violation("account " + name + ": a log of " + std::to_string(known) + " was seen to have " +
                        std::to_string(seen));
    notes_.saw_length(name, seen);
  }

  // Operators.

  static auto ignoring(Done done) {
    return [done = std::move(done)](const Result<void>&) mutable { done(); };
  }
  void stop(const LifePtr& life, Done done) { actor(life, any(life)).stop_async("a test", ignoring(std::move(done))); }
  void unlock(const LifePtr& life, Done done) { actor(life, any(life)).unlock_async(ignoring(std::move(done))); }
  void kill(const LifePtr& life, Done done) {
    notes_.killed();
    if (life->serves && chance(life->node->random(), 300))
      return actor(life, any(life)).reset_async(ignoring(std::move(done)));
    actor(life, any(life)).kill_async(ignoring(std::move(done)));
  }
  void slow(const LifePtr& life, Done done) {
    std::string name = any(life);
    Slow message{notes_.send({.what = What::kSlow, .actor = name})};
    if (chance(life->node->random(), 700)) return call(life, name, message, std::move(done));
    actor(life, name).cast_async(value(message), {}, noting<void>(message.id, std::move(done)));
  }

  // Looking on.

  void audit(const LifePtr& life) {
    life->node->scheduler().at(life->node->scheduler().now() + milliseconds(world().knob("audit_ms")), [this, life] {
      if (!life->over()) look(life);
    });
  }

  /// What is not at rest yet, in words; empty if all is.
  static std::string unrest(Reader& reader, const AccountNotes& notes, bool with_waiting) {
    SystemAccess access(reader);
    if (!reader.get_range(tuple::extensions(actor::due_prefix()), {.limit = 1}).empty()) return "a cast is delayed";
    for (const std::string& name : notes.actors()) {
      ActorId id = AccountNotes::id_of(name);
      Bytes prefix = actor::prefix_of(id);
      auto any = [&](const Bytes& under) { return !reader.get_range(tuple::extensions(under), {.limit = 1}).empty(); };
      auto head = actor::read_head(reader, prefix);
      if (any(actor::mailbox_key(prefix))) return name + " has messages";
      if (reader.get(actor::ready_key(id))) return name + " is marked as ready";
      if (head && head->lock) return name + " is locked";
      if (with_waiting && any(actor::waiting_key(prefix))) return name + " is waited for";
    }
    return {};
  }

  void look(const LifePtr& life) {
    bool calls_are_over = ClientWorkload::idle();
    life->node->store().transact_async(
        [this, calls_are_over](Transaction& txn) {
          Reader snapshot = txn.snapshot();
          for (const std::string& name : notes_.actors())
            AccountNotes::check_ready(snapshot, AccountNotes::id_of(name), [&](const std::string& what) {
              world().violation("account " + name + ": " + what);
            });
          return unrest(snapshot, notes_, calls_are_over);
        },
        [this, life, calls_are_over](Result<std::string> unrest) {
          if (life->over()) return;
          if (unrest && quiet_) come_to_rest(life, *unrest, calls_are_over);
          audit(life);
        });
  }

  void come_to_rest(const LifePtr& life, const std::string& unrest, bool calls_are_over) {
    if (!unrest.empty()) world().note(life->node->name(), "not at rest: " + unrest);
    if (calls_are_over && unrest.empty()) at_rest_ = true;
    if (!life->actors) return;
    // Those who asked wait for one more message.
    if (!calls_are_over) {
      for (const std::string& name : notes_.actors()) {
        Put last{.id = notes_.send({.actor = name})};
        actor(life, name).cast_async(value(last), {}, noting<void>(last.id, [] {}));
      }
    } else {
      // The clocks of those who died may have been ahead.
      life->actors->collect_async(std::chrono::hours(-2), [](const Result<std::uint64_t>&) {});
    }
  }

  AccountNotes notes_;
  std::vector<LifePtr> lives_;
  bool quiet_ = false;
  bool at_rest_ = false;
};

const RegisterWorkload kActor({"actor",
                               "every message to an actor takes effect once, in order, with all that it asked for",
                               {kClientsKnob,
                                {"think_ms", {50, 1500}, "the longest pause between a client's operations"},
                                {"actors", {1, 4}, "that all clients send to"},
                                {"ttl_ms", {500, 5000}, "the TTL of the sessions"},
                                {"batch_max", {1, 8}, "messages in one transaction"},
                                {"mailbox_max", {4, 200}, "messages in one mailbox"},
                                {"attempts", {8, 8}, "more than deaths and failures in one run come to"},
                                {"back_off_ms", {1, 100}, "before the second attempt"},
                                {"handler_us", {0, 5000}, "the longest that handlers take"},
                                {"locked_ms", {1, 3000}, "the longest that work under a lock takes"},
                                {"audit_ms", {200, 1000}, "between two looks at mailboxes"},
                                {"locks", {0, 0}, "1 where messages take locks"},
                                {"kills", {0, 0}, "1 where actors are deleted, and less can be said of their states"}},
                               make<ActorWorkload>});

}  // namespace
}  // namespace perdure::sim::accounts
