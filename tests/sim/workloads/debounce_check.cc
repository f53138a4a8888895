#include "debounce_check.h"

#include <algorithm>

#include "perdure/tuple.h"

namespace perdure::sim::debouncing {
namespace {

struct RanFor {
  Version claimed;
  Version ended;
  std::uint64_t count = 0;
  std::vector<std::int64_t> numbers;
};

struct KeyRows {
  std::map<std::int64_t, Version> touches;
  std::vector<Version> closes;
  /// The touches of all windows that were closed.
  std::uint64_t closed = 0;
  std::vector<RanFor> runs;
};

Bytes prefix() {
  return tuple::pack("debounced");
}

std::map<std::string, KeyRows> read_rows(Reader& reader) {
  std::map<std::string, KeyRows> keys;
  Bytes all = prefix();
  for (const Row& row : reader.get_range(tuple::extensions(all))) {
    tuple::Reader key(BytesView(row.key).substr(all.size()));
    KeyRows& rows = keys[std::string(key.next_text())];
    std::string kind(key.next_text());
    if (kind == "touch") {
      rows.touches[key.next_int()] = Stamp::decode(row.value)->version;
    } else if (kind == "closed") {
      rows.closes.push_back(key.next<Stamp>().version);
      rows.closed += tuple::Reader(row.value).next<std::uint64_t>();
    } else {
      RanFor run;
      run.ended = key.next<Stamp>().version;
      tuple::Reader value(row.value);
      run.claimed = value.next<Stamp>().version;
      run.count = value.next<std::uint64_t>();
      while (!value.rest().empty() && value.ok()) run.numbers.push_back(value.next_int());
      rows.runs.push_back(std::move(run));
    }
  }
  return keys;
}

class KeyCheck {
 public:
  KeyCheck(const std::string& key, const KeyRows& rows, const CheckOptions& options,
           const std::function<void(std::string)>& wrong)
      : key_(key), rows_(rows), options_(options), wrong_(wrong) {}

  void check() {
    one_at_a_time();
    if (options_.owed == Owed::kOnce) each_once();
    if (options_.owed != Owed::kOnce) as_many();
    if (options_.owed == Owed::kSome && options_.at_rest && rows_.runs.empty() && rows_.closes.empty() &&
        !made().empty())
      object("was touched and never run");
  }

 private:
  void object(const std::string& what) { wrong_("debounce: " + key_ + " " + what); }
  static std::set<std::int64_t> of(const std::map<std::string, std::set<std::int64_t>>& all, const std::string& key) {
    auto found = all.find(key);
    return found == all.end() ? std::set<std::int64_t>() : found->second;
  }
  /// Touches that were surely made.
  std::set<std::int64_t> made() const {
    auto all = of(options_.acknowledged, key_);
    for (const auto& [number, version] : rows_.touches) all.insert(number);
    return all;
  }

  void one_at_a_time() {
    for (std::size_t i = 0; i < rows_.runs.size(); ++i) {
      if (rows_.runs[i].claimed >= rows_.runs[i].ended) object("has a run that ended before it began");
      if (i > 0 && rows_.runs[i].claimed <= rows_.runs[i - 1].ended) object("was run twice at once");
    }
  }

  void each_once() {
    auto sure = made(), possible = of(options_.possible, key_);
    std::map<std::int64_t, int> times;
    for (const RanFor& run : rows_.runs) {
      if (run.count != run.numbers.size()) object("has a run whose count is not that of its payloads");
      for (std::int64_t number : run.numbers) {
        if (++times[number] > 1) object("was run twice for touch " + std::to_string(number));
        auto touched = rows_.touches.find(number);
        if (touched != rows_.touches.end() && touched->second >= run.claimed)
          object("was run for touch " + std::to_string(number) + " before it was made");
        if (!sure.contains(number) && !possible.contains(number))
          object("was run for touch " + std::to_string(number) + ", which nobody made");
      }
    }
    if (!options_.at_rest) return;
    std::uint64_t missing = 0;
    for (std::int64_t number : sure) {
      if (times[number] > 0) continue;
      ++missing;
      if (!excused(number)) object("was never run for touch " + std::to_string(number));
    }
    if (missing > rows_.closed)
      object("was not run for " + std::to_string(missing) + " touches, and " + std::to_string(rows_.closed) +
             " were in windows that were closed");
  }

  /// Its window may have been closed without a run.
  bool excused(std::int64_t number) const {
    auto touched = rows_.touches.find(number);
    if (touched == rows_.touches.end()) return !rows_.closes.empty();
    return std::ranges::any_of(rows_.closes, [&](Version close) { return close >= touched->second; });
  }

  void as_many() {
    auto all = made();
    std::size_t sure = all.size();
    all.merge(of(options_.possible, key_));
    std::uint64_t ran = 0;
    for (const RanFor& run : rows_.runs) {
      ran += run.count;
      auto later = [&](const auto& touch) { return touch.second >= run.claimed; };
      if (ran + static_cast<std::uint64_t>(std::ranges::count_if(rows_.touches, later)) > all.size())
        object("was run for more touches than had been made");
    }
    if (ran + rows_.closed > all.size()) object("was run and closed for more touches than were made");
    if (options_.owed == Owed::kCounted && options_.at_rest && ran + rows_.closed < sure)
      object("was run for " + std::to_string(ran) + " touches of " + std::to_string(sure) + ", and " +
             std::to_string(rows_.closed) + " were in windows that were closed");
  }

  const std::string& key_;
  const KeyRows& rows_;
  const CheckOptions& options_;
  const std::function<void(std::string)>& wrong_;
};

}  // namespace

void write_touch(Transaction& txn, const std::string& key, std::int64_t number) {
  txn.set_stamped(tuple::pack_onto(prefix(), key, "touch", number), Stamped{{}, {}, 0});
}

void write_closed(Transaction& txn, const std::string& key, std::uint64_t count) {
  txn.set_stamped(tuple::pack_stamped_onto(prefix(), key, "closed", tuple::IncompleteStamp{0}), tuple::pack(count));
}

void write_run(Transaction& txn, const std::string& key, const Token& token, std::uint64_t count,
               const std::vector<std::int64_t>& numbers) {
  Bytes value = tuple::pack(token.stamp, count);
  for (std::int64_t number : numbers) tuple::append(value, number);
  txn.set_stamped(tuple::pack_stamped_onto(prefix(), key, "ran", tuple::IncompleteStamp{0}), value);
}

void check(Reader& reader, const CheckOptions& options, const std::function<void(std::string)>& wrong) {
  auto keys = read_rows(reader);
  for (const auto& [key, numbers] : options.acknowledged) keys[key];
  for (const auto& [key, rows] : keys) KeyCheck(key, rows, options, wrong).check();
}

}  // namespace perdure::sim::debouncing
