// What the parts of the queue's workload share: its nodes, its workers, and the notes of somebody who watches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "queue_notes.h"

namespace perdure::sim::queues {

using Done = std::move_only_function<void()>;

/// One life of a node. What it has begun may be answered after its end, to nobody.
struct Life {
  SimNode* node = nullptr;
  std::optional<Queue> queue = {};
  bool over() const { return !node->alive(); }
  Random& random() const { return node->random(); }
};
using LifePtr = std::shared_ptr<Life>;

/// Runs `what` on the node later, if it is alive then.
template <class F>
void later(const LifePtr& life, Duration delay, F what) {
  NodeScheduler& scheduler = life->node->scheduler();
  scheduler.at(scheduler.now() + delay, [life, what = std::move(what)]() mutable {
    if (!life->over()) what();
  });
}

class Scene {
 public:
  explicit Scene(World& world);

  World& world() { return world_; }
  QueueNotes& notes() { return notes_; }
  std::int64_t knob(std::string_view name) const { return world_.knob(name); }
  bool is(std::string_view knob) const { return world_.knob(knob) != 0; }
  const std::vector<std::string>& workers() const { return workers_; }
  /// Those that have handlers: all, but the one that is left to hands.
  std::vector<std::string> served() const;
  const std::string& any_worker(const LifePtr& life) const {
    return workers_[draw(life->random(), 0, workers_.size() - 1)];
  }
  /// What all workers begin with.
  const WorkerSettings& settings() const { return settings_; }

  /// Whether it is known for the whole run how events ended.
  bool remembers() const { return knob("remember") == 1; }

  /// A node has begun, with a wall clock of its own.
  void begins(SimNode& node);
  /// The latest that store time can be, as nobody's clock is ahead of all clocks.
  WallTime latest() const;
  /// Somebody, on that node, has got a claim.
  void claimed(const LifePtr& life, const Event& event, std::string_view who);

  /// The faults are over: nothing new begins, and what there is comes to its end.
  bool quiet() const { return quiet_; }
  void be_quiet() { quiet_ = true; }

 private:
  World& world_;
  QueueNotes notes_;
  std::vector<std::string> workers_;
  WorkerSettings settings_;
  std::optional<Duration> ahead_;  ///< The wall clock that is furthest ahead, against the time of the world.
  bool quiet_ = false;
};

/// What unique keys without a time of their own begin with.
inline constexpr std::string_view kUnique = "key ";
/// The worker that has no handler, where there is one.
inline constexpr std::string_view kByHand = "hand";

/// Those who emit.
class Clients {
 public:
  explicit Clients(Scene& scene) : scene_(scene) {}
  void emit(const LifePtr& life, Done done);
  void emit_many(const LifePtr& life, Done done);
  void emit_in_transaction(const LifePtr& life, Done done);
  /// With an id of its own, and again until it is known to be there.
  void emit_surely(const LifePtr& life, Done done);

 private:
  Sent draw_sent(const LifePtr& life);
  NewEvent note(Sent sent);
  void say_again(const LifePtr& life, std::int64_t number, int times, Done done);

  Scene& scene_;
  std::uint64_t last_id_ = 0;
};

/// Those who claim by hand, from outside.
class Hands {
 public:
  explicit Hands(Scene& scene) : scene_(scene) {}
  /// Claims again and again, as long as the node lives.
  void start(const LifePtr& life);
  /// Presents a token that somebody had once.
  void present_old(const LifePtr& life, Done done);

 private:
  struct Held {
    std::int64_t number;
    Uuid id;
    Token token;
  };
  void claim(const LifePtr& life);
  void work(const LifePtr& life, const Held& held);
  void act(const LifePtr& life, const Held& held, Did what, Done done);
  void repeat_completion(const LifePtr& life, const Held& held, Done done);

  Scene& scene_;
  std::vector<Held> old_;
};

/// Those who pause, cancel, redrive and configure.
class Operators {
 public:
  explicit Operators(Scene& scene) : scene_(scene) {}
  void change_rule(const LifePtr& life, Done done);
  void cancel(const LifePtr& life, Done done);
  void cancel_all(const LifePtr& life, Done done);
  void redrive(const LifePtr& life, Done done);
  void configure(const LifePtr& life, Done done);
  /// Takes every rule away.
  void let_go(const LifePtr& life);

 private:
  void remove_rule(const LifePtr& life, const std::string& worker, Rule::Type type, Done done);
  Scene& scene_;
};

}  // namespace perdure::sim::queues
