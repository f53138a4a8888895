#include "queue/admin.h"
#include "queue/list.h"
#include "queue/worker_table.h"
#include "queue_scene.h"
#include "store/system_access.h"

namespace perdure::sim::queues {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

auto ignoring(Scene& scene, Done done) {
  return [&scene, done = std::move(done)](const auto&) mutable {
    scene.world().count_operation();
    done();
  };
}

std::int64_t number_of(Reader& reader, const Uuid& id) {
  SystemAccess access(reader);
  auto event = queue::load(reader, "default", id);
  auto given = event ? queue::Given::decode(event->row.given()) : Result<queue::Given>();
  if (!event || !given) return 0;
  return Errand::from(queue::read_value(reader, event->key, *given).value_or(Value())).number;
}

}  // namespace

void Operators::change_rule(const LifePtr& life, Done done) {
  Random& random = life->random();
  std::string worker = scene_.any_worker(life);
  auto type = chance(random, 600) ? Rule::Type::kPause : Rule::Type::kBlock;
  if (!chance(random, 450)) return remove_rule(life, worker, type, std::move(done));
  RuleOptions options{.reason = "a test", .by = life->node->name()};
  if (chance(random, 400))
    options.until =
        std::chrono::floor<milliseconds>(life->node->scheduler().wall_now() + draw_delay(random, seconds(4)));
  life->node->store().transact_async(
      [queue = *life->queue, worker, type, options](Transaction& txn) mutable {
        queue.add_rule(txn, worker, type, options);
        write_rule(txn, worker, RuleChange::Way::kAdded, type, options.until);
      },
      ignoring(scene_, std::move(done)));
}

void Operators::remove_rule(const LifePtr& life, const std::string& worker, Rule::Type type, Done done) {
  life->node->store().transact_async(
      [queue = *life->queue, worker, type](Transaction& txn) mutable {
        queue.remove_rule(txn, worker, type);
        write_rule(txn, worker, RuleChange::Way::kRemoved, type, {});
      },
      ignoring(scene_, std::move(done)));
}

void Operators::let_go(const LifePtr& life) {
  for (const std::string& worker : scene_.workers())
    for (Rule::Type type : {Rule::Type::kPause, Rule::Type::kBlock}) remove_rule(life, worker, type, [] {});
}

void Operators::cancel(const LifePtr& life, Done done) {
  auto known = scene_.notes().any_known(life->random());
  if (!known) return done();
  auto force = chance(life->random(), 500) ? Queue::Force::kYes : Queue::Force::kNo;
  life->node->store().transact_async(
      [queue = *life->queue, id = known->second, force](Transaction& txn) mutable {
        // An id may name another event by now.
        std::int64_t number = number_of(txn, id);
        queue.cancel(txn, id, force);
        write_deed(txn, number, Did::kCancel, {});
      },
      [this, number = known->first, done = std::move(done)](const Result<void>& result) mutable {
        scene_.notes().did(number, Did::kCancel, result);
        done();
      });
}

void Operators::cancel_all(const LifePtr& life, Done done) {
  constexpr EventState kStates[] = {EventState::kReady, EventState::kScheduled, EventState::kDead,
                                    EventState::kRunning};
  std::string worker = scene_.any_worker(life);
  EventState state = kStates[draw(life->random(), 0, 3)];
  WallTime now = life->node->scheduler().wall_now();
  life->node->store().transact_async(
      [worker, state, now](Transaction& txn) {
        SystemAccess access(txn);
        std::vector<std::pair<Uuid, std::int64_t>> listed;
        for (const Uuid& id : queue::walk(txn, "default", worker, state, {}, 1000).ids)
          listed.emplace_back(id, number_of(txn, id));
        // It may be bounded; those that are gone were cancelled.
        queue::Part part = queue::cancel_some(txn, "default", worker, state, queue::Views::kAny, now);
        std::uint64_t gone = 0;
        for (const auto& [id, number] : listed) {
          if (queue::load(txn, "default", id)) continue;
          write_deed(txn, number, Did::kCancel, {});
          ++gone;
        }
        return gone == part.count && (part.more || gone == listed.size());
      },
      [this, done = std::move(done)](const Result<bool>& right) mutable {
        scene_.world().count_operation();
        if (right && !*right) scene_.notes().wrong("not those were cancelled that are listed");
        done();
      });
}

void Operators::redrive(const LifePtr& life, Done done) {
  std::string worker = scene_.any_worker(life);
  scene_.notes().redrove(worker);
  RedriveOptions options;
  if (chance(life->random(), 400)) options.rate = Rate{static_cast<std::uint32_t>(draw(life->random(), 1, 20))};
  if (auto known = scene_.notes().any_known(life->random()); known && chance(life->random(), 300))
    options.ids.push_back(known->second);
  WallTime now = life->node->scheduler().wall_now();
  life->node->store().transact_async(
      [worker, options, now](Transaction& txn) {
        SystemAccess access(txn);
        return queue::redrive_some(txn, "default", worker, options, 0, now, now).count;
      },
      ignoring(scene_, std::move(done)));
}

void Operators::configure(const LifePtr& life, Done done) {
  WorkerSettings settings = scene_.settings();
  settings.retry.delay = draw_delay(life->random(), settings.retry.delay);
  settings.retry.max = static_cast<int>(draw(life->random(), 0, 3));
  life->node->store().transact_async(
      [worker = scene_.any_worker(life), settings](Transaction& txn) {
        SystemAccess access(txn);
        queue::write_settings(txn, "default", worker, settings, {});
      },
      ignoring(scene_, std::move(done)));
}

}  // namespace perdure::sim::queues
