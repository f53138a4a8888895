#include "queue_scene.h"

#include <algorithm>

namespace perdure::sim::queues {

using std::chrono::milliseconds;

Scene::Scene(World& world) : world_(world), notes_(world) {
  for (std::int64_t i = 0; i < knob("workers"); ++i) workers_.push_back("w" + std::to_string(i));
  if (is("hands")) workers_.emplace_back(kByHand);
  settings_.retry = {.delay = milliseconds(knob("retry_ms")),
                     .factor = knob("retry_max") % 2 == 0 ? 1.0 : 1.5,
                     .jitter = milliseconds(knob("retry_ms") / 2),
                     .max = static_cast<int>(knob("retry_max")),
                     .then = is("drop") ? RetryPolicy::Then::kDrop : RetryPolicy::Then::kDead};
  settings_.limit_per_key = static_cast<std::uint32_t>(knob("limit"));
  constexpr Duration kRetentions[] = {Duration::zero(), std::chrono::hours(24), std::chrono::seconds(3)};
  settings_.retention = kRetentions[knob("remember")];
  settings_.losses_max = static_cast<int>(knob("losses_max"));
  if (is("rate")) settings_.rate = Rate{static_cast<std::uint32_t>(knob("rate")), std::chrono::seconds(1)};
}

std::vector<std::string> Scene::served() const {
  std::vector<std::string> served = workers_;
  std::erase(served, kByHand);
  return served;
}

void Scene::begins(SimNode& node) {
  NodeScheduler& scheduler = node.scheduler();
  Duration ahead = scheduler.wall_now().time_since_epoch() - scheduler.now().time_since_epoch();
  ahead_ = std::max(ahead_.value_or(ahead), ahead);
}

WallTime Scene::latest() const {
  if (is("jumps")) return WallTime::max();
  return WallTime(world_.now().time_since_epoch() + *ahead_);
}

void Scene::claimed(const LifePtr& life, const Event& event, std::string_view who) {
  notes_.claimed(event, life->node->name() + " " + std::string(who), latest());
}

}  // namespace perdure::sim::queues
