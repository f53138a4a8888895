// What must hold of all events, by the notes of somebody who watched, by what the users of the queue have written
// beside it, and by its rows:
//
//   - an event that was emitted is in one place, scheduled, ready, running or dead, or it was completed, cancelled or
//     dropped, and nothing else is there; counts say the same (Q1);
//   - a completion has its effect once, and nothing is done under a claim once it has ended or another was made (Q2);
//   - nothing is claimed before its time, nor while its worker is paused or blocked, nor faster than its rate (Q3).
#pragma once

#include "queue_notes.h"
#include "queue_rows.h"

namespace perdure::sim::queues {

class QueueCheck {
 public:
  struct Expected {
    std::vector<std::string> workers;
    WorkerSettings settings;
    /// Everything that has ended is still remembered.
    bool remembered = false;
    /// One node serves one event at a time, and nothing fails: events are claimed in the order of their emission.
    bool ordered = false;
  };
  QueueCheck(QueueNotes& notes, Expected expected) : notes_(notes), expected_(std::move(expected)) {}

  /// All nodes are down.
  void check(Store& store);

 private:
  struct Place {
    std::int64_t stored = 0;
    Uuid id;
    queue::Stored state{};
  };
  void read_places();
  void check_sent(const Sent& sent);
  void check_exists(const Sent& sent, std::int64_t places);
  void check_dead(const Sent& sent, const Place& place);
  void check_history(const Sent& sent);
  void check_tokens(std::int64_t number);
  void check_owners(Reader& reader);
  void check_counts(Reader& reader);
  void check_unique();
  void check_rules();
  void check_rate();
  void check_order();
  /// Whether a rule held at that version, as far as one can know.
  bool stopped(const std::vector<RuleChange>& changes, Rule::Type type, const SeenClaim& claim) const;
  void wrong(const std::string& what) { notes_.wrong(what); }

  QueueNotes& notes_;
  const Expected expected_;
  Log log_;
  StoredRows rows_;
  std::map<std::int64_t, Place> places_;
  std::map<std::int64_t, std::vector<Stamp>> tokens_;
  /// Per worker, those that are gone without a trace of how.
  std::map<std::string, std::int64_t> vanished_;
  /// And those of which nobody knows whether they were there.
  std::map<std::string, std::int64_t> perhaps_;
};

}  // namespace perdure::sim::queues
