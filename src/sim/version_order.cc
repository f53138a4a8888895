#include "sim/version_order.h"

#include <algorithm>

namespace perdure::sim {

using Kind = History::Step::Kind;

namespace {

std::size_t count_appends(const History& history) {
  std::size_t count = 0;
  for (std::size_t t = 0; t < history.size(); ++t)
    for (const History::Step& step : history.steps(history.txn(t))) count += step.kind == Kind::kAppend;
  return count;
}

}  // namespace

VersionOrder::VersionOrder(const History& history)
    : history_(history), key_index_(0), append_index_(count_appends(history)) {}

std::optional<Finding> VersionOrder::infer() {
  if (auto finding = index_steps()) return finding;
  // Each round may reveal transactions of unknown outcome that took effect, whose reads are the next round.
  while (!pending_.empty()) {
    for (std::uint32_t txn : pending_)
      if (auto finding = take_reads(txn)) return finding;
    pending_.clear();
    for (std::uint32_t key : grown_keys_)
      if (auto finding = place_new_elements(key)) return finding;
    grown_keys_.clear();
  }
  arrange();
  return check_whole_transactions();
}

std::optional<Finding> VersionOrder::index_steps() {
  committed_.assign(history_.size(), false);
  subjects_.reserve(history_.step_count());
  for (std::uint32_t t = 0; t < history_.size(); ++t) {
    const History::Txn& txn = history_.txn(t);
    for (const History::Step& step : history_.steps(txn)) {
      std::uint32_t key = intern(step.key);
      subjects_.push_back(step.kind == Kind::kAppend ? static_cast<std::uint32_t>(appends_.size()) : key);
      if (step.kind != Kind::kAppend) continue;
      if (auto finding = index_append(t, key, step.value_or_first)) return finding;
    }
    if (txn.ending != Ending::kOk) continue;
    committed_[t] = true;
    pending_.push_back(t);
  }
  for (Scratch& own : scratch_) own = {};
  return {};
}

std::uint32_t VersionOrder::intern(Key key) {
  auto fresh = static_cast<std::uint32_t>(keys_.size());
  std::uint32_t known =
      key_index_.insert(HashIndex::hash(key, 0), fresh, [&](std::uint32_t k) { return keys_[k].key == key; });
  if (known != kNone) return known;
  keys_.push_back({.key = key});
  scratch_.emplace_back();
  return fresh;
}

std::optional<Finding> VersionOrder::index_append(std::uint32_t txn, std::uint32_t key, Value value) {
  auto fresh = static_cast<std::uint32_t>(appends_.size());
  auto same = [&](std::uint32_t a) { return appends_[a].value == value && appends_[a].key == key; };
  std::uint32_t known = append_index_.insert(HashIndex::hash(key, value), fresh, same);
  if (known != kNone)
    return Finding{"duplicate-append",
                   "the history is no list-append history: " + show_txn(history_, appends_[known].txn) + " and " +
                       show_txn(history_, txn) + " both appended " + std::to_string(value) + " to key " +
                       std::to_string(keys_[key].key)};
  Scratch& own = scratch(txn, key);
  appends_.push_back({.value = value, .key = key, .txn = txn, .previous = own.last_append});
  if (own.last_append != kNone) appends_[own.last_append].next = fresh;
  own.last_append = fresh;
  return {};
}

VersionOrder::Scratch& VersionOrder::scratch(std::uint32_t txn, std::uint32_t key) {
  Scratch& own = scratch_[key];
  if (own.txn != txn) own = {.txn = txn};
  return own;
}

std::optional<Finding> VersionOrder::take_reads(std::uint32_t t) {
  const History::Txn& txn = history_.txn(t);
  std::span<const History::Step> steps = history_.steps(txn);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::uint32_t subject = subjects_[txn.first_step + i];
    if (steps[i].kind == Kind::kAppend) {
      Scratch& own = scratch(t, appends_[subject].key);
      own.last_append = subject;
      ++own.appends_since_read;
    } else if (steps[i].kind == Kind::kRead) {
      if (auto finding = take_read(t, subject, history_.list(steps[i]))) return finding;
    }
  }
  return {};
}

std::optional<Finding> VersionOrder::take_read(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) {
  Scratch& own = scratch(txn, key);
  if (!ends_with_own(own, list)) return internal(txn, key, list);
  if (!own.has_read) reads_.push_back({txn, key, static_cast<std::uint32_t>(list.size()) - own.appends_since_read});
  own.has_read = true;
  own.appends_since_read = 0;
  own.list = list;

  KeyOrder& order = keys_[key];
  std::size_t common = std::min(list.size(), order.longest.size());
  if (!std::equal(list.begin(), list.begin() + common, order.longest.begin())) return incompatible(txn, key, list);
  if (order.reader != kNone && list.size() <= order.longest.size()) return {};
  if (order.placed == order.longest.size()) grown_keys_.push_back(key);
  order.longest = list;
  order.reader = txn;
  return {};
}

bool VersionOrder::ends_with_own(const Scratch& own, std::span<const Value> list) const {
  std::size_t end = list.size();
  std::uint32_t append = own.last_append;
  for (std::uint32_t i = 0; i < own.appends_since_read; ++i, append = appends_[append].previous)
    if (end == 0 || list[--end] != appends_[append].value) return false;
  return !own.has_read || std::ranges::equal(list.first(end), own.list);
}

std::uint32_t VersionOrder::find_append(std::uint32_t key, Value value) const {
  return append_index_.find(HashIndex::hash(key, value),
                            [&](std::uint32_t a) { return appends_[a].value == value && appends_[a].key == key; });
}

std::optional<Finding> VersionOrder::place_new_elements(std::uint32_t key) {
  KeyOrder& order = keys_[key];
  for (; order.placed < order.longest.size(); ++order.placed) {
    std::uint32_t number = find_append(key, order.longest[order.placed]);
    if (number == kNone) return bad_element(order.reader, key, order.longest);
    Append& append = appends_[number];
    if (append.position != kNone || history_.txn(append.txn).ending == Ending::kFail)
      return bad_element(order.reader, key, order.longest);
    append.position = order.placed;
    if (committed_[append.txn]) continue;
    committed_[append.txn] = true;
    pending_.push_back(append.txn);
  }
  return {};
}

void VersionOrder::arrange() {
  std::size_t first = 0;
  for (KeyOrder& key : keys_) {
    key.first = first;
    first += key.longest.size();
  }
  order_.resize(first);
  for (std::uint32_t a = 0; a < appends_.size(); ++a)
    if (appends_[a].position != kNone) order_[keys_[appends_[a].key].first + appends_[a].position] = a;
}

/// All appends of a transaction to a key stand together, in their order, and nobody else sees only some of them.
std::optional<Finding> VersionOrder::check_whole_transactions() const {
  for (const KeyOrder& key : keys_) {
    std::span<const std::uint32_t> list = order(key);
    for (std::size_t p = 0; p < list.size(); ++p) {
      const Append& append = appends_[list[p]];
      if (append.previous != kNone && (p == 0 || list[p - 1] != append.previous))
        return partial(key.reader, list[p], append.previous);
      if (append.next != kNone && p + 1 < list.size() && list[p + 1] != append.next)
        return partial(key.reader, list[p], append.next);
    }
  }
  for (const Read& read : reads_) {
    if (read.length == 0) continue;
    std::uint32_t last = order(keys_[read.key])[read.length - 1];
    const Append& append = appends_[last];
    if (append.txn == read.txn)
      return Finding{"internal", show_txn(history_, read.txn) + " read " + std::to_string(append.value) + " of key " +
                                     std::to_string(keys_[read.key].key) + " before it appended it itself"};
    if (append.next != kNone) return partial(read.txn, last, append.next);
  }
  return {};
}

}  // namespace perdure::sim
