// The feed of changes: what became of every event, worker, actor, debouncer, schedule and partition, in the order of
// the commits that made it so.
//
//   auto store = Store::open("lmdb:./data", {.changes_kept = 1h});
//   auto changes = Changes::open(*store);
//   std::string cursor = *changes->latest();
//   for (;;) {
//     auto page = changes->wait({.after = cursor}, 15s);
//     for (const Change& change : page->changes) show(change);
//     cursor = page->next;
//   }
//
// It is off unless StoreOptions::changes_kept is set, in each process that has the store open: what a process without
// it changes is missing from the feed. A change is in it exactly if the transaction that made it has committed, so
// nothing is told that did not happen, and nothing that happened is left out, for as long as it is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perdure/export.h"
#include "perdure/store.h"

namespace perdure {

/// What something became. The state is what it is from then on:
///
///     event       scheduled ready running failed (it is tried again: scheduled or ready follows) completed dead
///     dropped
///                 cancelled
///     worker      paused unpaused blocked unblocked set removed (its settings)
///     actor       created handled locked unlocked killed dead (a message became a dead letter)
///     debouncer   of a key: waiting (a window was opened) fired cancelled ended (a run, or a burst without one);
///                 of itself, without an id: set paused unpaused removed
///     schedule    set fired paused unpaused removed
///     partition   set appended
///     session     of a transcript: started active idle permission_needed done ended removed (its status), updated (it
///                 has more messages)
struct Change {
  std::string type;  ///< "event", "worker", "actor", "debouncer", "schedule", "partition", "session".
  std::string name;  ///< Of the worker (of an event too), kind, debouncer, schedule, partition, or project.
  std::string id;    ///< Of the event, actor or session, or the key of a debouncer; empty where the name says it all.
  std::string state;
  int attempt = 0;  ///< Of an event: how often it was begun. Of a dead letter of an actor: how often it failed.
  /// Messages that were handled, touches of the window, times that fired, entries that were appended, messages more.
  std::uint64_t count = 0;
  std::optional<std::uint64_t> offset = {};  ///< Of a partition: that of the last. Of a session: all its messages.
  std::optional<Stamp> version = {};         ///< Of an actor, if it has a new one.
  std::string error = {};                    ///< The beginning of it.
  WallTime at;                               ///< Store time.
  std::string cursor;                        ///< Where the feed goes on after it.
  bool operator==(const Change&) const = default;
};

/// Which changes are wanted: those that fit any of these, or all if none is given.
struct ChangeFilter {
  std::vector<std::string> workers = {};  ///< Their events too.
  std::vector<std::string> kinds = {};
  std::vector<std::string> debouncers = {};
  std::vector<std::string> schedules = {};
  std::vector<std::string> partitions = {};
  std::vector<std::string> sessions = {};  ///< Of transcripts, by id.
};

struct ChangeQuery {
  /// A cursor; empty for all that is kept.
  std::string after = {};
  /// At most 1,000.
  std::size_t limit = 100;
  ChangeFilter filter = {};
};

struct ChangePage {
  std::vector<Change> changes = {};
  /// The cursor to go on after, behind all that was looked at.
  std::string next = {};
  /// Changes behind the cursor are gone, or it is not one of this feed: what the reader knows by now may be wrong.
  bool gap = false;
  /// There may be more already; otherwise this was all.
  bool more = false;
  /// Of read_async, if there is no more: fires when there may be. Cancel it if it is not waited for.
  Watch news = {};
};

struct ChangesOptions {
  std::string space = "default";
  /// Whether this process clears what is older than StoreOptions::changes_kept; one that has the store open should.
  bool trim = true;
  /// More rows than this of a space are cleared from the oldest on, whatever their age. A transaction writes one.
  std::uint64_t rows_max = 1'000'000;
};

class ChangesImpl;

/// The feed of one space. Copies share their process's part in it; thread-safe. It keeps the store open.
///
/// Cursors are texts of 32 letters and digits, which sort in the order of the changes. They stay good across restarts,
/// and in any process that has the store open.
///
/// Calls without a Reader and without a callback block: they are refused with kInvalidArgument in callbacks of the
/// store.
class PERDURE_EXPORT Changes {
 public:
  /// Begins the feed, if it is on and nobody has yet. Blocks, but in a callback of the store.
  /// Errors: kInvalidArgument (the options), kClosed, and those of a transaction.
  /// Crash: the feed was begun, or is so by the next who opens it.
  [[nodiscard]] static Result<Changes> open(Store store, ChangesOptions options = {});

  /// The same process in another space.
  [[nodiscard]] Changes in(std::string space) const;
  const std::string& space() const { return space_; }

  /// The cursor behind all that has happened.
  [[nodiscard]] Result<std::string> latest();
  [[nodiscard]] Result<std::string> latest(Reader& reader) const;
  void latest_async(std::move_only_function<void(Result<std::string>)> done);

  /// What comes after a cursor. A page may be empty although there is more, where the filter lets little through.
  /// Errors: kInvalidArgument for what is no cursor.
  [[nodiscard]] Result<ChangePage> read(const ChangeQuery& query);
  [[nodiscard]] Result<ChangePage> read(Reader& reader, const ChangeQuery& query) const;
  /// `done` is called once, on one of the store's threads, and should not block.
  void read_async(ChangeQuery query, std::move_only_function<void(Result<ChangePage>)> done);

  /// The same, but for a page that would be empty it waits until there is something, or `timeout` has passed.
  [[nodiscard]] Result<ChangePage> wait(ChangeQuery query, Duration timeout);

 private:
  friend class ChangesImpl;
  Changes(std::shared_ptr<ChangesImpl> impl, std::string space) : impl_(std::move(impl)), space_(std::move(space)) {}

  std::shared_ptr<ChangesImpl> impl_;
  std::string space_;
};

}  // namespace perdure
