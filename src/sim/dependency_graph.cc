#include "sim/dependency_graph.h"

#include <algorithm>

#include "base/assert.h"

namespace perdure::sim {

DependencyGraph::DependencyGraph(const VersionOrder& order)
    : txn_count_(static_cast<std::uint32_t>(order.history().size())), next_node_(txn_count_) {
  // Three bits of a target are its kind, and there are at most two helpers a transaction.
  check(order.history().size() < (std::uint32_t{1} << 27), "a history of too many transactions to check");
  unpacked_.reserve(order.appends().size() + order.reads().size() * 2 + order.history().size() * 3);
  add_list_edges(order);
  add_unread_edges(order);
  add_time_edges(order);
  pack();
}

void DependencyGraph::add_edge(std::uint32_t from, std::uint32_t to, EdgeKind kind) {
  if (from != to) unpacked_.push_back({from, Target(to, kind)});
}

void DependencyGraph::add_list_edges(const VersionOrder& order) {
  std::span<const VersionOrder::Append> appends = order.appends();
  for (const VersionOrder::KeyOrder& key : order.keys()) {
    std::span<const std::uint32_t> list = order.order(key);
    for (std::size_t p = 1; p < list.size(); ++p)
      add_edge(appends[list[p - 1]].txn, appends[list[p]].txn, EdgeKind::kWriteWrite);
  }
  for (const VersionOrder::Read& read : order.reads()) {
    std::span<const std::uint32_t> list = order.order(order.keys()[read.key]);
    if (read.length > 0) add_edge(appends[list[read.length - 1]].txn, read.txn, EdgeKind::kWriteRead);
    if (read.length < list.size()) add_edge(read.txn, appends[list[read.length]].txn, EdgeKind::kReadWrite);
  }
}

/// The first append of the reading transaction to the key it read, if nobody read that append; else kNone.
std::uint32_t DependencyGraph::unread_head(const VersionOrder& order, const VersionOrder::Read& read) const {
  const History::Txn& txn = order.history().txn(read.txn);
  for (std::size_t i = 0; i < txn.step_count; ++i) {
    if (order.history().steps(txn)[i].kind != History::Step::Kind::kAppend) continue;
    std::uint32_t number = order.subject(txn.first_step + i);
    const VersionOrder::Append& append = order.appends()[number];
    if (append.key == read.key) return append.position == kNone ? number : kNone;
  }
  return kNone;
}

/// Appends that nobody read come after the whole list, in no known order among themselves. Who read the whole list
/// precedes all of them but its own. "But its own" does not go through a helper: those who read the whole list and then
/// appended (updaters) stay off the helper and get edges of their own. Two updaters of one list are a cycle already, so
/// that all others need an edge only to the last one.
void DependencyGraph::add_unread_edges(const VersionOrder& order) {
  std::span<const VersionOrder::Append> appends = order.appends();
  auto is_unread_head = [&](const VersionOrder::Append& append) {
    return append.position == kNone && append.previous == kNone && order.committed(append.txn);
  };
  std::vector<Unread> unread(order.keys().size());
  std::vector<char> has_unread(order.keys().size(), false);
  for (const VersionOrder::Append& append : appends)
    if (is_unread_head(append)) has_unread[append.key] = true;

  auto reads_all = [&](const VersionOrder::Read& read) {
    return has_unread[read.key] && read.length == order.keys()[read.key].longest.size();
  };
  std::vector<char> by_updater(appends.size(), false);
  for (const VersionOrder::Read& read : order.reads()) {
    std::uint32_t head = reads_all(read) ? unread_head(order, read) : kNone;
    if (head == kNone) continue;
    by_updater[head] = true;
    std::uint32_t& updater = unread[read.key].updater;
    if (updater != kNone) add_edge(read.txn, updater, EdgeKind::kReadWrite);
    updater = read.txn;
  }
  for (std::size_t a = 0; a < appends.size(); ++a) {
    if (!is_unread_head(appends[a]) || by_updater[a]) continue;
    std::uint32_t& helper = unread[appends[a].key].helper;
    if (helper == kNone) helper = next_node_++;
    add_edge(helper, appends[a].txn, EdgeKind::kVia);
  }

  auto precede_unread = [&](std::uint32_t txn, std::uint32_t key, EdgeKind kind) {
    if (unread[key].helper != kNone) add_edge(txn, unread[key].helper, kind);
    if (unread[key].updater != kNone) add_edge(txn, unread[key].updater, kind);
  };
  for (const VersionOrder::Read& read : order.reads())
    if (reads_all(read)) precede_unread(read.txn, read.key, EdgeKind::kReadWrite);
  for (std::uint32_t k = 0; k < unread.size(); ++k) {
    std::span<const std::uint32_t> list = order.order(order.keys()[k]);
    if (!list.empty()) precede_unread(appends[list.back()].txn, k, EdgeKind::kWriteWrite);
  }
}

/// Sweeps over time and puts a barrier before each invocation that something has completed before. Moments on the same
/// nanosecond are in no order.
void DependencyGraph::add_time_edges(const VersionOrder& order) {
  using Moment = std::pair<std::int64_t, std::uint32_t>;
  std::vector<Moment> invoked, completed;
  for (std::uint32_t t = 0; t < txn_count_; ++t) {
    if (!order.committed(t)) continue;
    const History::Txn& txn = order.history().txn(t);
    invoked.emplace_back(txn.invoked_ns, t);
    if (txn.completed_ns != kNever) completed.emplace_back(txn.completed_ns, t);
  }
  std::ranges::sort(invoked);
  std::ranges::sort(completed);

  std::uint32_t barrier = kNone;
  auto next = completed.begin();
  for (const auto& [time, txn] : invoked) {
    if (next != completed.end() && next->first < time) {
      std::uint32_t earlier = std::exchange(barrier, next_node_++);
      if (earlier != kNone) add_edge(earlier, barrier, EdgeKind::kVia);
      for (; next != completed.end() && next->first < time; ++next)
        add_edge(next->second, barrier, EdgeKind::kRealTime);
    }
    if (barrier != kNone) add_edge(barrier, txn, EdgeKind::kVia);
  }
}

void DependencyGraph::pack() {
  first_.assign(next_node_ + 1, 0);
  for (const Edge& edge : unpacked_) ++first_[edge.from];
  std::uint32_t sum = 0;
  for (std::uint32_t& first : first_) first = sum += first;
  targets_.resize(unpacked_.size());
  for (const Edge& edge : unpacked_) targets_[--first_[edge.from]] = edge.target;
  unpacked_ = {};
}

}  // namespace perdure::sim
