// A lease has one holder, and whoever has lost it cannot write.
//
// Every node opens a session and contends for the same leases. A holder appends to the log of its lease, under a fence,
// and gives the lease back after a while; a node that has lost its session tries all the same to release what it held,
// and opens a new one. Seen from outside:
//
//   - no two nodes believe in the same lease at once, and nobody is fenced out while it believes;
//   - the log of a lease never shows an older token after a newer one (D1), nor anything written under a token once the
//     lease has been seen free, also where the token was handed to somebody on another node;
//   - no token is given out twice, and whoever loses its session is told so on each lease;
//   - whoever waits for what another holds gets it within TTL + 1 s once that one stands still;
//   - once faults stop, each lease has a holder who can write within TTL + 1 s (D5), and nothing is left of the dead.
#include <map>
#include <set>

#include "perdure/session.h"
#include "session/rows.h"
#include "sim/client_workload.h"
#include "store/system_access.h"

namespace perdure::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kFree = "free";
constexpr std::string_view kWhileFree = " while free";

class LeaseWorkload final : public Workload {
 public:
  explicit LeaseWorkload(World& world)
      : world_(world), ttl_(milliseconds(world.knob("ttl_ms"))), lives_(static_cast<std::size_t>(world.nodes())) {
    for (std::int64_t i = 0; i < world.knob("leases"); ++i) names_.push_back("lease " + std::to_string(i));
  }

  void setup(Setup&) override { look_around(); }

  void start(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life = std::make_shared<Life>(Life{.node = &node});
    open(life);
    audit(life);
  }

  void node_stopped(SimNode& node) override {
    auto& life = lives_[static_cast<std::size_t>(node.index())];
    life->node = nullptr;
    life->held.clear();
    // Dropped once the store is closed: until then calls of it may be under way.
    graveyard_.push_back(std::move(life->session));
  }

  void quiesce() override {
    healed_ = world_.now();
    world_.at(healed_ + ttl_ + seconds(1), [this] { check_leaders(); });
  }
  bool idle() const override { return leaders_checked_ && swept_; }

  void check(Store& store) override {
    for (const std::string& name : names_) check_log(store, name);
  }

 private:
  /// One life of a node. What it has begun may be answered after its end, to nobody.
  struct Life {
    SimNode* node = nullptr;
    std::optional<Session> session = {};
    std::map<std::string, Lease> held = {};

    bool over() const { return !node || !node->alive(); }
  };
  using LifePtr = std::shared_ptr<Life>;

  void later(const LifePtr& life, Duration delay, std::function<void()> what) {
    NodeScheduler& scheduler = life->node->scheduler();
    scheduler.at(scheduler.now() + delay, [life, what = std::move(what)] {
      if (!life->over()) what();
    });
  }
  Duration pause(const LifePtr& life, std::string_view knob) {
    return draw_delay(life->node->random(), milliseconds(world_.knob(knob)));
  }

  // Sessions.

  SessionOptions options(const LifePtr& life) {
    Duration renew = ttl_ * world_.knob("renew_percent") / 100;
    // Somebody who outlives every outage, and looks on.
    bool patient = world_.knob("patient") == 1 && life->node->index() == 0;
    return {.ttl = patient ? std::chrono::minutes(2) : ttl_,
            .renew = renew,
            .name = life->node->name(),
            // Weak: the session is part of the life.
            .on_lost = [this, weak = std::weak_ptr(life)](const Error& why) {
              if (auto there = weak.lock(); there && !there->over()) lost(there, why);
            }};
  }

  void open(const LifePtr& life) {
    auto done = [this, life](Result<Session> session) { opened(life, std::move(session)); };
    if (life->session)
      life->session->reopen_async(std::move(done));
    else
      Session::open_async(life->node->store(), options(life), std::move(done));
  }

  void opened(const LifePtr& life, Result<Session> session) {
    if (life->over()) {
      if (session) graveyard_.emplace_back(std::move(*session));
      return;
    }
    if (!session) return later(life, milliseconds(100), [this, life] { open(life); });
    world_.note(life->node->name(), "opens session " + session->id().to_string());
    life->session = std::move(*session);
    for (const std::string& name : names_) contend(life, name);
  }

  void lost(const LifePtr& life, const Error& why) {
    world_.note(life->node->name(), "loses its session: " + why.message);
    for (auto& [name, lease] : life->held) {
      if (!lease.cancel_signal().cancelled())
        world_.violation(life->node->name() + " lost " + name + " with its session, and was not told");
      // It is too late, and must come to nothing.
      lease.release_async([](Result<void>) {});
    }
    life->held.clear();
    if (world_.knob("nobody_dies") == 1) return look_whether_ended(life, life->session->id());
    later(life, milliseconds(10), [this, life] { open(life); });
  }

  /// For worlds in which nobody may be taken for dead: the session is still there when the store can be reached again.
  void look_whether_ended(const LifePtr& life, SessionId id) {
    life->node->store().transact_async(
        [id](Transaction& txn) {
          SystemAccess access(txn);
          return session::is_open(txn, id);
        },
        [this, life, id](Result<bool> is_open) {
          if (life->over()) return;
          if (!is_open) return later(life, milliseconds(50), [this, life, id] { look_whether_ended(life, id); });
          if (!*is_open)
            world_.violation("session " + id.to_string() + " was taken for dead while nobody could be seen");
          open(life);
        });
  }

  // Leases.

  void contend(const LifePtr& life, const std::string& name) {
    constexpr Duration kTimeouts[] = {Duration::zero(), milliseconds(300), seconds(5), std::chrono::hours(1)};
    bool calm = world_.now() >= healed_ || world_.knob("followed") == 1;
    Duration timeout = kTimeouts[calm ? 3 : draw(life->node->random(), 0, 3)];
    SessionId id = life->session->id();
    life->session->acquire_async(name, timeout, [this, life, name, id](Result<Lease> lease) {
      // Of a session that is lost meanwhile nobody wants it any more.
      if (life->over() || life->session->id() != id || !life->session->alive()) return;
      if (lease) return got(life, *lease);
      later(life, pause(life, "think_ms"), [this, life, name, id] { contend_again(life, name, id); });
    });
  }

  void contend_again(const LifePtr& life, const std::string& name, SessionId id) {
    if (life->session->id() == id) contend(life, name);
  }

  void got(const LifePtr& life, const Lease& lease) {
    const std::string& who = life->node->name();
    world_.count_operation();
    world_.note(who, "gets " + lease.name() + " with token " + lease.token().to_string());
    if (!tokens_.insert({lease.name(), lease.token().to_string()}).second)
      world_.violation(who + " got " + lease.name() + " with a token that was given out before");
    life->held.insert_or_assign(lease.name(), lease);
    const LifePtr& helper = lives_[draw(life->node->random(), 0, lives_.size() - 1)];
    if (helper && !helper->over() && chance(life->node->random(), 500)) help(helper, lease.name(), lease.token(), 15);
    work(life, lease, static_cast<int>(draw(life->node->random(), 1, 12)));
  }

  void work(const LifePtr& life, const Lease& lease, int steps) {
    if (steps == 0) return give_back(life, lease);
    life->node->store().transact_async(
        [lease](Transaction& txn) {
          lease.fence(txn);
          txn.set_stamped(Stamped{log_prefix(lease.name()), {}}, lease.token().to_string());
        },
        [this, life, lease, steps](Result<void> result) {
          if (!life->over()) worked(life, lease, steps, result);
        },
        ClientOptions::draw_options(*life->node));
  }

  void worked(const LifePtr& life, const Lease& lease, int steps, const Result<void>& result) {
    world_.count_operation();
    if (result) last_written_[lease.name()] = world_.now();
    if (!result && result.error().code == ErrorCode::kStaleToken) {
      if (lease.held())
        world_.violation(life->node->name() + " is fenced out of " + lease.name() + " while it believes in it");
      return;
    }
    later(life, pause(life, "hold_ms"), [this, life, lease, steps] { work(life, lease, steps - 1); });
  }

  /// Somebody who was handed the token, and goes on until he is refused.
  void help(const LifePtr& life, const std::string& name, const Token& token, int steps) {
    if (steps == 0) return;
    bool look = chance(life->node->random(), 500);
    life->node->store().transact_async(
        [name, token, look](Transaction& txn) {
          fence(txn, name, token);
          bool is_free = look && !Session::holder_of(txn, name);
          txn.set_stamped(Stamped{log_prefix(name), {}}, token.to_string() + std::string(is_free ? kWhileFree : ""));
        },
        [this, life, name, token, steps](Result<void> result) {
          if (life->over() || (!result && result.error().code == ErrorCode::kStaleToken)) return;
          world_.count_operation();
          later(life, pause(life, "hold_ms"), [this, life, name, token, steps] { help(life, name, token, steps - 1); });
        },
        ClientOptions::draw_options(*life->node));
  }

  void give_back(const LifePtr& life, Lease lease) {
    auto held = life->held.find(lease.name());
    // A new session of the node may have it by now.
    if (held == life->held.end() || held->second.token() != lease.token()) return;
    lease.release_async([this, life, lease, id = life->session->id()](const Result<void>&) {
      if (life->over() || life->session->id() != id) return;
      auto mine = life->held.find(lease.name());
      if (mine != life->held.end() && mine->second.token() == lease.token()) life->held.erase(mine);
      later(life, pause(life, "think_ms"), [this, life, name = lease.name(), id] { contend_again(life, name, id); });
    });
  }

  // Looking on.

  /// Marks in the log when a lease was free, and sees whether something is left of the dead.
  void audit(const LifePtr& life) {
    life->node->store().transact_async(
        [this, life](Transaction& txn) {
          check_open(*life, txn);
          for (const std::string& name : names_)
            if (!Session::holder_of(txn, name)) txn.set_stamped(Stamped{log_prefix(name), {}}, kFree);
          SystemAccess access(txn);
          return txn.snapshot().get_range(session::table_range("ended"), {.limit = 1}).empty();
        },
        [this, life](Result<bool> swept) {
          if (life->over()) return;
          if (swept && world_.now() > healed_ + ttl_ + seconds(1)) swept_ = *swept;
          later(life, milliseconds(world_.knob("audit_ms")), [this, life] { audit(life); });
        });
  }

  /// Nobody is ended who may still believe in itself.
  void check_open(const Life& life, Transaction& txn) {
    if (life.over() || !life.session || !life.session->alive()) return;
    SystemAccess access(txn);
    Reader snapshot = txn.snapshot();
    if (!session::is_open(snapshot, life.session->id()))
      world_.violation("the session of " + life.node->name() + " has been ended while it believes in itself");
  }

  /// Somebody who sees all nodes at once.
  void look_around() {
    constexpr Duration kOften = milliseconds(10);
    for (const std::string& name : names_) {
      std::vector<std::string> believers;
      for (const LifePtr& life : lives_) {
        if (!life || life->over()) continue;
        auto held = life->held.find(name);
        if (held != life->held.end() && held->second.held()) believers.push_back(life->node->name());
      }
      if (believers.size() > 1)
        world_.violation(believers[0] + " and " + believers[1] + " believe in " + name + " at once");
      if (world_.knob("followed") == 1) check_heir(name);
    }
    world_.at(world_.now() + kOften, [this] { look_around(); });
  }

  void check_leaders() {
    if (world_.disturbed_since(healed_)) {
      // A node is still standing still.
      healed_ = world_.now();
      world_.at(healed_ + ttl_ + seconds(1), [this] { check_leaders(); });
      return;
    }
    for (const std::string& name : names_)
      if (last_written_[name] < healed_)
        world_.violation("nobody has written under " + name + " within TTL + 1 s after the last fault");
    leaders_checked_ = true;
  }

  /// A holder may stand still, and its lease is taken over by the other who waits for it, within TTL + 1 s.
  void check_heir(const std::string& name) {
    bool held = false, awaited = false;
    for (const LifePtr& life : lives_) {
      if (!life || life->over() || !life->session || !world_.reachable(life->node->index())) continue;
      awaited |= life->session->alive();
      auto lease = life->held.find(name);
      held |= lease != life->held.end() && lease->second.held();
    }
    SteadyTime& since = unheld_since_[name];
    if (held || !awaited) since = world_.now();
    if (world_.now() - since > ttl_ + seconds(1))
      world_.violation("nobody has got " + name + " within TTL + 1 s after its holder stood still");
  }

  static Bytes log_prefix(const std::string& name) { return "log/" + name + "/"; }

  void check_log(Store& store, const std::string& name) {
    std::vector<Row> rows;
    auto read = store.read([&](Reader& reader) { rows = reader.get_range(prefix_range(log_prefix(name))); });
    if (!read) return world_.violation("the log cannot be read: " + to_string(read.error()));
    Stamp newest;
    for (const Row& row : rows) {
      if (row.value == kFree) {
        newest = std::max(newest, *Stamp::decode(BytesView(row.key).substr(log_prefix(name).size())));
        continue;
      }
      std::string_view written = row.value;
      if (written.ends_with(kWhileFree)) {
        written.remove_suffix(kWhileFree.size());
        world_.violation(name + " was written to while it was free, in the transaction " +
                         std::to_string(row.version.number));
      }
      Stamp token = Token::parse(written)->stamp;
      if (token < newest)
        world_.violation(name + " was written to under an old token, in the transaction " +
                         std::to_string(row.version.number));
      newest = std::max(newest, token);
    }
  }

  /// Only for its options.
  struct ClientOptions : ClientWorkload {
    using ClientWorkload::draw_options;
  };

  World& world_;
  const Duration ttl_;
  std::vector<std::string> names_;
  std::vector<LifePtr> lives_;
  std::vector<std::optional<Session>> graveyard_;
  std::set<std::pair<std::string, std::string>> tokens_;
  std::map<std::string, SteadyTime> last_written_;
  /// Since when no node that is awake has held it, though one waits for it.
  std::map<std::string, SteadyTime> unheld_since_;
  SteadyTime healed_ = SteadyTime::max() - std::chrono::hours(48);
  bool leaders_checked_ = false;
  bool swept_ = false;
};

const RegisterWorkload kLease({"lease",
                               "a lease has one holder, and whoever has lost it cannot write",
                               {{"ttl_ms", {200, 6000}, "the TTL of the sessions"},
                                {"renew_percent", {10, 80}, "of the TTL is their period of renewal"},
                                {"leases", {1, 3}, "that all nodes contend for"},
                                {"hold_ms", {20, 800}, "the longest pause between two writes of a holder"},
                                {"think_ms", {1, 3000}, "the longest pause between holding and contending"},
                                {"audit_ms", {50, 400}, "between two looks at what is free"},
                                {"patient", {0, 0}, "1 if the first node has a TTL of minutes"},
                                {"followed", {0, 0}, "1 where somebody always waits, and takes over within TTL + 1 s"},
                                {"nobody_dies", {0, 0}, "1 where nobody may be taken for dead"}},
                               make<LeaseWorkload>});

}  // namespace
}  // namespace perdure::sim
