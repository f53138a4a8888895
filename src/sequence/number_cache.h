#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "perdure/sequencer.h"

namespace perdure::sequence {

struct SeqKeyHash {
  std::size_t operator()(const SeqKey& key) const {
    // The upper bits have to depend on all of it, and workspaces are often numbered one after the other.
    auto mixed =
        (static_cast<std::uint64_t>(key.workspace) ^ static_cast<std::uint64_t>(key.seq) << 48) * 0x9e3779b97f4a7c15ull;
    return mixed ^ mixed >> 32;
  }
};

using NumberMap = std::unordered_map<SeqKey, Number, SeqKeyHash>;

/// Numbers by key: at most so many, and the one that was not used for longest goes first. For one thread at a time.
class NumberCache {
 public:
  explicit NumberCache(std::size_t most) : most_(most) {}

  /// What it has, which may be changed until the next `put`; null if nothing.
  Number* find(const SeqKey& key) {
    auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    use(found->second);
    return &nodes_[found->second].number;
  }

  void put(const SeqKey& key, Number number) {
    if (most_ == 0) return;
    if (Number* present = find(key)) {
      *present = number;
      return;
    }
    std::uint32_t place = room();
    nodes_[place] = {key, number, kNone, kNone};
    index_.emplace(key, place);
    link_first(place);
  }

  void clear() {
    index_.clear();
    nodes_.clear();
    first_ = last_ = kNone;
  }

  std::size_t size() const { return index_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Node {
    SeqKey key;
    Number number;
    /// The neighbours in the order of use, latest first.
    std::uint32_t before, after;
  };

  std::uint32_t room() {
    if (nodes_.size() < most_) {
      nodes_.emplace_back();
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    std::uint32_t oldest = last_;
    unlink(oldest);
    index_.erase(nodes_[oldest].key);
    return oldest;
  }

  void use(std::uint32_t place) {
    if (place == first_) return;
    unlink(place);
    link_first(place);
  }

  void unlink(std::uint32_t place) {
    Node& node = nodes_[place];
    (node.before == kNone ? first_ : nodes_[node.before].after) = node.after;
    (node.after == kNone ? last_ : nodes_[node.after].before) = node.before;
  }

  void link_first(std::uint32_t place) {
    nodes_[place].before = kNone;
    nodes_[place].after = first_;
    (first_ == kNone ? last_ : nodes_[first_].before) = place;
    first_ = place;
  }

  const std::size_t most_;
  std::unordered_map<SeqKey, std::uint32_t, SeqKeyHash> index_;
  std::vector<Node> nodes_;
  std::uint32_t first_ = kNone;
  std::uint32_t last_ = kNone;
};

}  // namespace perdure::sequence
