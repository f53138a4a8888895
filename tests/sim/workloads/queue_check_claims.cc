// The part of the checks that is about claims: who made them when, and what was done under them.
#include <algorithm>

#include "queue_check.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure::sim::queues {
namespace {

std::string text(std::int64_t number) {
  return QueueNotes::text(number);
}

}  // namespace

// Q2.

void QueueCheck::check_tokens(std::int64_t number) {
  std::optional<Version> over;
  std::map<Stamp, Did> ended;
  for (const Deed& deed : log_.deeds_of(number)) {
    std::string what = std::string(name_of(deed.did)) + " of " + text(number);
    if (over) wrong(what + " came after its end");
    if (deed.token) {
      if (ended.contains(*deed.token))
        wrong(what + " succeeded with a token that " + std::string(name_of(ended[*deed.token])) + " had ended");
      for (Stamp token : tokens_[number])
        if (*deed.token < token && token.version < deed.version)
          wrong(what + " succeeded with a token that was stale, in the transaction " +
                std::to_string(deed.version.number));
      if (deed.did != Did::kExtend) ended.emplace(*deed.token, deed.did);
    }
    if (deed.did == Did::kEffect || deed.did == Did::kCancel) over = deed.version;
  }
  for (Stamp token : tokens_[number]) {
    if (over && *over < token.version) wrong(text(number) + " was claimed after its end");
  }
}

/// A claim of a session that was never ended, and whose handler succeeds, is nobody else's to end.
void QueueCheck::check_owners(Reader& reader) {
  SystemAccess access(reader);
  std::map<std::int64_t, std::vector<SeenClaim>> claims;
  for (const SeenClaim& claim : notes_.claims()) claims[claim.number].push_back(claim);
  for (auto& [number, of_one] : claims) {
    std::ranges::sort(of_one, {}, &SeenClaim::token);
    for (std::size_t i = 0; i + 1 < of_one.size(); ++i)
      if (of_one[i].succeeds && of_one[i].owner && session::is_open(reader, *of_one[i].owner))
        wrong(text(number) + " was claimed again while the session that had it goes on");
  }
}

// Q3.

bool QueueCheck::stopped(const std::vector<RuleChange>& changes, Rule::Type type, const SeenClaim& claim) const {
  // A rule that is there already stays as it is; whether one that ends by itself was, when another was added, nobody
  // knows, so the first end of all may have been the last. Somebody whose clock is ahead may have seen to that end.
  bool added = false, for_good = false;
  DueTime first_end = DueTime::max();
  for (const RuleChange& change : changes) {
    if (change.version >= claim.token.version) break;
    if (change.type != type) continue;
    if (change.way == RuleChange::Way::kRemoved) {
      added = for_good = false;
      first_end = DueTime::max();
      continue;
    }
    if (!added) for_good = !change.until;
    if (change.until) first_end = std::min(first_end, *change.until);
    added = true;
  }
  return added && (for_good || claim.latest.time_since_epoch() < first_end.time_since_epoch());
}

void QueueCheck::check_rules() {
  for (const SeenClaim& claim : notes_.claims()) {
    auto changes = log_.rules.find(claim.worker);
    if (changes == log_.rules.end()) continue;
    for (Rule::Type type : {Rule::Type::kPause, Rule::Type::kBlock})
      if (stopped(changes->second, type, claim))
        wrong(text(claim.number) + " was claimed while its worker was " +
              (type == Rule::Type::kPause ? "paused" : "blocked"));
  }
}

/// At most the rate, in store time, with one burst.
void QueueCheck::check_rate() {
  if (!expected_.settings.rate) return;
  const Rate& rate = *expected_.settings.rate;
  for (const std::string& worker : expected_.workers) {
    std::vector<SeenClaim> claims;
    std::ranges::copy_if(notes_.claims(), std::back_inserter(claims),
                         [&](const SeenClaim& claim) { return claim.worker == worker; });
    std::ranges::sort(claims, {}, &SeenClaim::token);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      for (std::size_t j = i + rate.count; j < claims.size(); ++j) {
        Duration took = claims[j].locked_at - claims[i].locked_at;
        auto most = static_cast<std::size_t>(took / (rate.per / rate.count)) + rate.count + 1;
        if (j - i + 1 > most)
          return wrong(worker + ": " + std::to_string(j - i + 1) + " claims within " +
                       std::to_string(took / std::chrono::milliseconds(1)) + " ms are more than its rate allows");
      }
    }
  }
}

/// The smaller priority first, and among equals the older. A claim may have been on its way already when an event was
/// emitted; but not when the handler before it, of which there is one at a time, had not begun.
void QueueCheck::check_order() {
  struct Turn {
    std::pair<int, Version> place;
    std::uint64_t known_at;
    Stamp claimed;
    std::uint64_t seen_at;
  };
  for (const std::string& worker : expected_.workers) {
    std::vector<Turn> turns;
    for (const SeenClaim& claim : notes_.claims()) {
      auto row = log_.sent.find(claim.number);
      const Sent& sent = notes_.sent(claim.number);
      if (sent.worker == worker && row != log_.sent.end())
        turns.push_back({{sent.options.priority, row->second.version}, sent.answered_at, claim.token, claim.seen_at});
    }
    std::ranges::sort(turns, {}, &Turn::claimed);
    for (std::size_t i = 1; i < turns.size(); ++i)
      for (std::size_t j = i + 1; j < turns.size(); ++j)
        if (turns[j].known_at < turns[i - 1].seen_at && turns[j].place < turns[i].place)
          return wrong(worker + ": an event was claimed before another that should come first, in the transaction " +
                       std::to_string(turns[i].claimed.version.number));
  }
}

/// Of a unique key without a time of its own there is one event at a time, unless dead ones were put back.
void QueueCheck::check_unique() {
  std::map<std::pair<std::string, std::string>, int> live;
  for (const auto& [number, place] : places_) {
    const Sent& sent = notes_.sent(number);
    if (!sent.options.unique || sent.options.unique->lasts || place.state == queue::Stored::kDead) continue;
    if (++live[{sent.worker, sent.options.unique->key}] > 1 && !notes_.redriven(sent.worker))
      wrong("of the unique key " + sent.options.unique->key + " there are two events");
  }
  // Answered with an event that had ended before.
  for (const auto& [number, row] : log_.sent) {
    if (!row.duplicate || !notes_.sent(number).options.unique) continue;
    for (const Sent& first : notes_.sent()) {
      if (first.id != row.id || first.errand.number == number) continue;
      bool lasts = !first.options.unique || first.options.unique->lasts;
      for (const Deed& deed : log_.deeds_of(first.errand.number))
        if (!lasts && (deed.did == Did::kEffect || deed.did == Did::kCancel) && deed.version < row.version)
          wrong(text(number) + " was taken for a second of one that had ended");
    }
  }
}

}  // namespace perdure::sim::queues
