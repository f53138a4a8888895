// One node's share in the debouncers of a store: a loop that fires what is due, and touches that wait to be combined.
//
// Touches of one key that come while one of it is under way are gathered, and go into the next transaction together. So
// a key that hundreds touch at once costs a transaction for each commit, and not for each of them.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "debounce/turn.h"
#include "perdure/debounce.h"
#include "runtime/mutex.h"
#include "session/due_loop.h"
#include "session/store_clock.h"
#include "session/timed_part.h"
#include "store/store_part.h"

namespace perdure {

class DebouncersImpl : public StorePart<DebouncersImpl>, public TimedPart {
 public:
  using TouchDone = std::move_only_function<void(Result<Window>)>;
  static Result<Debouncers> open(Store store, DebouncersOptions options);
  /// `store` is kept open by the handles.
  explicit DebouncersImpl(Store& store);

  // For the public class.
  void touch(debounce::Place place, Bytes payload, TouchDone done) PERDURE_EXCLUDES(mutex_);
  void merge_by(const std::string& space, std::string_view name, Debouncers::Merge merge) PERDURE_EXCLUDES(mutex_);
  debounce::MergeBytes merge_of(const debounce::Place& place) PERDURE_EXCLUDES(mutex_);
  void hold() { held_ = true; }
  void release();
  /// Store time, by which everybody who has acted is not ahead. Needs system access.
  WallTime now(Transaction& txn);

  // For whoever moves time.
  std::optional<WallTime> next_due(Reader& reader) override;
  bool has_work(Reader& reader, WallTime now) override;
  void look() override { loop_.wake(); }

  // For the loop.
  StoreClock& clock() { return clock_; }

 private:
  using Loop = DueLoop<DebouncersImpl>;
  static constexpr std::size_t kRowsAtOnce = 256;
  /// The touches of a key that are under way, or wait for those.
  struct Waiting {
    std::vector<Bytes> payloads = {};
    std::size_t bytes = 0;
    std::vector<TouchDone> done = {};

    bool has_room_for(std::size_t payload_bytes) const;
    void add(Bytes payload, TouchDone told);
  };
  struct Slot {
    debounce::Place place;
    /// In the order of their coming: each is a transaction, and the last of them may still take more.
    std::deque<Waiting> waiting = {};
  };

  Loop::Turn turn(Transaction& txn, WallTime now) PERDURE_EXCLUDES(mutex_);
  void turn_failed(const Error& error) PERDURE_EXCLUDES(mutex_);
  void turn_committed(const std::vector<debounce::Place>& damaged) PERDURE_EXCLUDES(mutex_);
  Uuid fresh_id();
  void send(const std::string& name, const debounce::Place& place, Waiting touches) PERDURE_EXCLUDES(mutex_);
  void sent(const std::string& name, std::vector<TouchDone> done, Result<Window> result) PERDURE_EXCLUDES(mutex_);

  StoreClock clock_;
  std::atomic<bool> held_ = true;
  Loop loop_;

  Mutex mutex_;
  /// Rows that a turn sees to, fewer after one that failed: one row that cannot be seen to must not keep all others
  /// from it. Those that cannot are skipped from then on, as long as this node lives.
  std::size_t most_ PERDURE_GUARDED_BY(mutex_) = kRowsAtOnce;
  std::set<Bytes> skipped_ PERDURE_GUARDED_BY(mutex_);
  Bytes current_ PERDURE_GUARDED_BY(mutex_);
  /// By the names of those that have a touch under way.
  std::unordered_map<std::string, Slot> slots_ PERDURE_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, Debouncers::Merge> merges_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
