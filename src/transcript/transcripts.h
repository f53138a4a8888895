// The transcripts of coding sessions: hooks come in, and a while later what the sessions wrote is read and stored.
//
//     hook -> one transaction: hook, session, prompt, touch of the debouncer "transcripts" -> (2 s) -> a run
//     run  -> the file from where it was left, in batches: messages and place, fenced by the run's claim
//
// All of it is made of the parts below: a run is an event of the worker "transcripts", which this process serves in
// every space that has had a hook; so it is claimed, tried again and shown like every other.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perdure/debounce.h"
#include "perdure/queue.h"
#include "session/due_loop.h"
#include "session/settings_table.h"
#include "session/timed_part.h"
#include "store/store_part.h"
#include "transcript/hook.h"
#include "transcript/lines.h"
#include "transcript/path_looks.h"
#include "transcript/rows.h"

namespace perdure::transcript {

struct RunSetting;

struct TranscriptsOptions {
  /// The directories below which transcripts are read.
  std::vector<std::string> roots = {};
  /// Of the debouncer in spaces that have none yet.
  MarkerPreset marker = *marker_preset();
  /// Also those that have one are set to it.
  bool set_marker = false;
  /// See ReadingTimes. A run reads for half of what it may last in any case, and for three quarters at most.
  Duration reads_for = Duration::max(), reads_at_most = Duration::max();
};

/// One message, with what its tools answered.
struct Message {
  std::uint64_t number = 0;
  WallTime at;
  /// By its number; 0 if there is none.
  std::uint64_t prompt = 0;
  MessageRow row;
  /// By tool; nothing for those that have not answered.
  std::vector<std::optional<ResultRow>> results;
};

struct SessionView {
  std::string id;
  SessionRow row;
  ProgressRow progress;
  /// The last thousand, or fewer if they are long.
  std::vector<std::pair<std::uint64_t, PromptRow>> prompts;
};

class Transcripts : public StorePart<Transcripts>, public TimedPart {
 public:
  using Done = std::move_only_function<void(Result<Taken>)>;

  /// `queue` and `debouncers` outlive it.
  Transcripts(Store& store, Queue& queue, Debouncers& debouncers, TranscriptsOptions options);
  /// Begins to serve, and to look after sessions.
  void start();
  /// Serves nothing any more; runs that are under way come to their end. Not in a callback of the store.
  void stop() PERDURE_EXCLUDES(mutex_);
  void hold() { held_ = true; }
  void release();

  Hook read(std::string text, std::string id) const;
  /// Takes them in order, in one transaction. What is wrong with them, or with the paths that they name, is logged.
  Result<void> take(std::string_view space, std::vector<Hook> hooks);
  void take_async(std::string space, Hook hook, Done done);

  // What is there. Parts of the transaction that they are called in.
  std::vector<ProjectRow> projects(Reader& reader, std::string_view space, std::string_view after,
                                   std::size_t limit) const;
  /// By id; `project` and `status` are empty for all.
  struct SessionQuery {
    std::string project = {};
    std::string status = {};
    std::string after = {};
    std::size_t limit = 100;
  };
  std::vector<std::pair<std::string, SessionRow>> sessions(Reader& reader, std::string_view space,
                                                           const SessionQuery& query) const;
  /// Errors: kNotFound.
  Result<SessionView> session(Reader& reader, std::string_view space, const std::string& id) const;
  /// In the order of their times, those after `after`, which is the place of one. A page may be short though there is
  /// more, but is empty only at the end.
  struct Place {
    std::int64_t at = INT64_MIN;
    std::uint64_t number = 0;
  };
  Result<std::vector<Message>> messages(Reader& reader, std::string_view space, const std::string& id, Place after,
                                        std::size_t limit) const;
  /// Errors: kNotFound.
  Result<void> set_favourite(Transaction& txn, std::string_view space, const std::string& id, bool favourite);
  Result<void> remove(Transaction& txn, std::string_view space, const std::string& id);

  // For whoever moves time, and for the loop.
  std::optional<WallTime> next_due(Reader& reader) override;
  bool has_work(Reader& reader, WallTime now) override PERDURE_EXCLUDES(mutex_);
  void look() override { loop_.wake(); }
  StoreClock& clock() { return clock_; }
  Clocks clocks();

 private:
  /// At the path of its transcript.
  void look_at(Hook hook, std::move_only_function<void(Hook)> looked);
  void complain_of(const Hook& hook, std::string_view space) const;
  void take_in(Transaction& txn, std::string_view space, const Hook& hook, Taken& taken);
  DueTurn look_after(Transaction& txn, WallTime now);
  void could_not_look(const Error& error);
  void serve(const std::vector<SettingsTable::Setting>& spaces) PERDURE_EXCLUDES(mutex_);
  Result<Value> run_alone(const std::string& space, Job& job, const RunSetting& setting) PERDURE_EXCLUDES(mutex_);
  /// Tries until it is done; the next time after `pause`.
  void set_marker(const std::string& space, Duration pause);
  void complain(const std::string& message, std::string_view space, std::string_view session) const;

  Queue& queue_;
  Debouncers& debouncers_;
  const TranscriptsOptions options_;
  StoreClock clock_;
  PathLooks looks_;
  std::atomic<bool> held_ = false;
  /// Why a turn of the loop failed last, which takes one at a time.
  std::string could_not_;
  DueLoop<Transcripts> loop_;
  std::shared_ptr<SettingsFollower> follower_;
  Mutex mutex_;
  std::set<std::string> served_ PERDURE_GUARDED_BY(mutex_);
  /// Space and session of the runs that have a thread here, also if they were given up.
  std::set<std::pair<std::string, std::string>> reading_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::transcript
