#include "sim/timeline.h"

#include <algorithm>

#include "base/assert.h"
#include "sim/node_scheduler.h"
#include "sim/streams.h"

namespace perdure::sim {
namespace {

/// What one task costs at most. With tasks that take no time, races would vanish: everybody would be done before
/// anybody else begins.
constexpr std::uint64_t kTaskCostMax = 20'000;

}  // namespace

Timeline::Timeline(std::uint64_t seed, Trace::Keep keep) : random_(stream(seed, "timeline")), trace_(keep) {}

bool Timeline::step(SteadyTime until) {
  check(!running_, "a simulated task must not run the timeline that runs it");
  std::uint64_t choices = 0;
  for (;;) {
    SteadyTime next = SteadyTime::max();
    choices = 0;
    for (NodeScheduler* node : nodes_) {
      choices += node->ready_at(now_);
      next = std::min(next, node->next_at());
    }
    if (choices > 0 && now_ < until) break;
    if (next > until || next == SteadyTime::max() || now_ >= until) {
      if (until != SteadyTime::max()) now_ = std::max(now_, until);
      return false;
    }
    now_ = std::max(now_, next);
  }
  std::uint64_t pick = random_() % choices;
  auto node = nodes_.begin();
  while (pick >= (*node)->ready_at(now_)) pick -= (*node++)->ready_at(now_);
  running_ = *node;
  auto ready = running_->take(pick);
  trace_.mark(ready.number * 64 + static_cast<std::uint64_t>(node - nodes_.begin()), now_);
  ++steps_;
  ready.task();
  ready.task = nullptr;
  running_ = nullptr;
  now_ += Duration(static_cast<Duration::rep>(random_() % kTaskCostMax));
  return true;
}

}  // namespace perdure::sim
