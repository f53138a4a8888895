#include <unordered_set>

#include "sim/version_order.h"

namespace perdure::sim {

std::string show_txn(const History& history, std::uint32_t txn) {
  if (!history.txn(txn).is_final) return "T" + std::to_string(txn);
  return "the final read (T" + std::to_string(txn) + ")";
}

namespace {

std::string read_of(const History& history, std::uint32_t txn, Key key, std::span<const Value> list) {
  return show_txn(history, txn) + " read " + show_list(list) + " of key " + std::to_string(key);
}

}  // namespace

Finding VersionOrder::internal(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) const {
  const Scratch& own = scratch_[key];
  std::vector<Value> appended(own.appends_since_read);
  std::uint32_t append = own.last_append;
  for (std::size_t i = appended.size(); i-- > 0; append = appends_[append].previous)
    appended[i] = appends_[append].value;
  std::string words = read_of(history_, txn, keys_[key].key, list) + ", although it had itself ";
  if (own.has_read) words += "read " + show_list(own.list) + " before";
  if (own.has_read && !appended.empty()) words += " and then ";
  if (!appended.empty()) words += "appended " + show_list(appended);
  return {"internal", words};
}

std::optional<Finding> VersionOrder::bad_element(std::uint32_t txn, std::uint32_t key,
                                                 std::span<const Value> list) const {
  std::unordered_set<Value> seen;
  std::string words = read_of(history_, txn, keys_[key].key, list);
  for (Value value : list) {
    std::uint32_t append = find_append(key, value);
    if (append == kNone) return Finding{"garbage-read", words + ", but nobody appended " + std::to_string(value)};
    if (history_.txn(appends_[append].txn).ending == Ending::kFail)
      return Finding{"G1a", words + ", but " + show_txn(history_, appends_[append].txn) + ", which appended " +
                                std::to_string(value) + ", failed and must have had no effect"};
    if (!seen.insert(value).second)
      return Finding{"duplicate-elements", words + ", where " + std::to_string(value) + " occurs twice"};
  }
  return {};
}

Finding VersionOrder::incompatible(std::uint32_t txn, std::uint32_t key, std::span<const Value> list) const {
  const KeyOrder& order = keys_[key];
  if (auto finding = bad_element(order.reader, key, order.longest)) return *finding;
  if (auto finding = bad_element(txn, key, list)) return *finding;
  return {"incompatible-order", read_of(history_, order.reader, order.key, order.longest) + " and " +
                                    show_txn(history_, txn) + " read " + show_list(list) +
                                    ": neither list is the beginning of the other"};
}

Finding VersionOrder::partial(std::uint32_t reader, std::uint32_t seen, std::uint32_t missed) const {
  return {"G1b", show_txn(history_, reader) + " read a part of " + show_txn(history_, appends_[seen].txn) +
                     ": of key " + std::to_string(keys_[appends_[seen].key].key) + " it saw " +
                     std::to_string(appends_[seen].value) + " without " + std::to_string(appends_[missed].value) +
                     " beside it, which the same transaction appended"};
}

}  // namespace perdure::sim
