#include "sim/cycles.h"

#include <algorithm>
#include <deque>

namespace perdure::sim {
namespace {

using Target = DependencyGraph::Target;

bool allowed(Target target, EdgeKinds kinds) {
  return target.kind() == EdgeKind::kVia || (kinds & bit(target.kind()));
}

/// Tarjan's algorithm with a stack of its own, as a path may be as long as the history.
class KnotFinder {
 public:
  KnotFinder(const DependencyGraph& graph, EdgeKinds kinds)
      : graph_(graph), kinds_(kinds), low_(graph.node_count(), kUnseen) {}

  std::vector<std::uint32_t> find() {
    for (std::uint32_t root = 0; root < graph_.node_count(); ++root)
      if (low_[root] == kUnseen) explore(root);
    return std::move(smallest_);
  }

 private:
  // low_ is the smallest number on the stack that a node is known to reach; a node off the stack reaches nothing.
  static constexpr std::uint32_t kUnseen = 0, kDone = 0xffffffff;

  struct Frame {
    std::uint32_t node;
    std::uint32_t number;
    const Target* next;
    const Target* end;
  };

  void enter(std::uint32_t node) {
    low_[node] = ++count_;
    open_.push_back(node);
    std::span<const Target> edges = graph_.edges(node);
    path_.push_back({node, count_, edges.data(), edges.data() + edges.size()});
  }

  void explore(std::uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      Frame& frame = path_.back();
      if (frame.next == frame.end) {
        leave();
        continue;
      }
      Target target = *frame.next++;
      if (!allowed(target, kinds_)) continue;
      if (low_[target.node()] == kUnseen)
        enter(target.node());
      else
        low_[frame.node] = std::min(low_[frame.node], low_[target.node()]);
    }
  }

  void leave() {
    Frame frame = path_.back();
    path_.pop_back();
    if (low_[frame.node] < frame.number) {
      std::uint32_t parent = path_.back().node;
      low_[parent] = std::min(low_[parent], low_[frame.node]);
      return;
    }
    auto begin = open_.end();
    do low_[*--begin] = kDone;
    while (*begin != frame.node);
    auto size = static_cast<std::size_t>(open_.end() - begin);
    if (size > 1 && (smallest_.empty() || size < smallest_.size())) smallest_.assign(begin, open_.end());
    open_.erase(begin, open_.end());
  }

  const DependencyGraph& graph_;
  const EdgeKinds kinds_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> open_;  ///< Seen, and not yet known to which knot they belong.
  std::vector<Frame> path_;
  std::vector<std::uint32_t> smallest_;
};

/// Breadth-first search for cycles through one transaction after the other. A place is a node together with whether a
/// read-write edge has been used up on the way to it.
class CycleFinder {
 public:
  CycleFinder(const DependencyGraph& graph, std::span<const std::uint32_t> knot, EdgeKinds kinds,
              ReadWrites read_writes)
      : graph_(graph),
        kinds_(kinds),
        read_writes_(read_writes),
        in_knot_(graph.node_count(), false),
        visits_(std::size_t{graph.node_count()} * 2) {
    for (std::uint32_t node : knot) in_knot_[node] = true;
  }

  std::vector<CycleStep> find(std::span<const std::uint32_t> starts) {
    for (std::uint32_t start : starts) {
      search(start);
      if (best_.size() == 2 || visited_edges_ > kVisitedEdgesMax) break;
    }
    return std::move(best_);
  }

 private:
  static constexpr std::uint64_t kVisitedEdgesMax = 20'000'000;

  struct Place {
    std::uint32_t node;
    std::uint32_t used;
  };
  struct Visit {
    std::uint32_t search = 0;  ///< Number of the search that this visit belongs to.
    std::uint32_t steps = 0;   ///< Edges from the start, without those of kind kVia.
    Place from = {};
    EdgeKind kind = {};
  };

  Visit& visit(Place place) { return visits_[std::size_t{place.node} * 2 + place.used]; }

  void search(std::uint32_t start) {
    ++search_;
    queue_.assign(1, {start, 0});
    visit({start, 0}) = {search_, 0, {}, {}};
    while (!queue_.empty()) {
      Place place = queue_.front();
      queue_.pop_front();
      std::uint32_t steps = visit(place).steps;
      if (!best_.empty() && steps + 1 > best_.size()) return;
      for (Target target : graph_.edges(place.node)) {
        ++visited_edges_;
        if (!allowed(target, kinds_) || !in_knot_[target.node()]) continue;
        bool read_write = target.kind() == EdgeKind::kReadWrite && read_writes_ == ReadWrites::kAtMostOne;
        if (read_write && place.used) continue;
        std::uint32_t to_steps = steps + (target.kind() != EdgeKind::kVia);
        if (target.node() == start) {
          if (best_.empty() || to_steps < best_.size()) best_ = trace(place, target, start);
          continue;
        }
        Place to{target.node(), place.used | read_write};
        Visit& known = visit(to);
        if (known.search == search_ && known.steps <= to_steps) continue;
        known = {search_, to_steps, place, target.kind()};
        // Edges without length come first, so that the queue stays ordered by length.
        target.kind() == EdgeKind::kVia ? queue_.push_front(to) : queue_.push_back(to);
      }
    }
  }

  std::vector<CycleStep> trace(Place place, Target closing, std::uint32_t start) {
    std::vector<CycleStep> steps;
    std::uint32_t to = start;
    EdgeKind kind = closing.kind();
    while (true) {
      if (graph_.is_txn(place.node)) {
        steps.push_back({place.node, kind, to});
        to = place.node;
      }
      if (place.node == start) break;
      const Visit& here = visit(place);
      kind = here.kind;
      place = here.from;
    }
    std::ranges::reverse(steps);
    return steps;
  }

  const DependencyGraph& graph_;
  const EdgeKinds kinds_;
  const ReadWrites read_writes_;
  std::vector<char> in_knot_;
  std::vector<Visit> visits_;
  std::deque<Place> queue_;
  std::uint32_t search_ = 0;
  std::uint64_t visited_edges_ = 0;
  std::vector<CycleStep> best_;
};

/// The transactions of the knot, those first that go furthest back in time: to one that had completed long before they
/// were invoked. Real time closes such a step to a short cycle at once, where a blind search through a knot of a
/// hundred thousand would have to try them all.
std::vector<std::uint32_t> order_starts(const DependencyGraph& graph, const History& history,
                                        std::span<const std::uint32_t> knot) {
  auto earliest_end = [&](std::uint32_t node) {
    if (graph.is_txn(node)) return history.txn(node).completed_ns;
    std::int64_t end = kNever;
    for (Target target : graph.edges(node))
      if (graph.is_txn(target.node())) end = std::min(end, history.txn(target.node()).completed_ns);
    return end;
  };
  std::vector<std::pair<double, std::uint32_t>> starts;
  for (std::uint32_t node : knot) {
    if (!graph.is_txn(node)) continue;
    std::int64_t end = kNever;
    for (Target target : graph.edges(node))
      if (target.kind() != EdgeKind::kRealTime) end = std::min(end, earliest_end(target.node()));
    starts.emplace_back(static_cast<double>(end) - static_cast<double>(history.txn(node).invoked_ns), node);
  }
  std::ranges::sort(starts);
  std::vector<std::uint32_t> nodes;
  for (const auto& [distance, node] : starts) nodes.push_back(node);
  return nodes;
}

}  // namespace

std::vector<std::uint32_t> find_knot(const DependencyGraph& graph, EdgeKinds kinds) {
  return KnotFinder(graph, kinds).find();
}

std::vector<CycleStep> find_short_cycle(const DependencyGraph& graph, const History& history,
                                        std::span<const std::uint32_t> knot, EdgeKinds kinds, ReadWrites read_writes) {
  return CycleFinder(graph, knot, kinds, read_writes).find(order_starts(graph, history, knot));
}

}  // namespace perdure::sim
