// Hooks: what a coding session tells of itself, as it happens.
//
// One hook is one transaction: the hook as it came, its project, session and prompt, and the touch that makes the
// transcript be read. What cannot be understood is kept all the same, and changes nothing else. One that was kept in
// the spool, or overtaken by another, counts as of the moment at which it came, and undoes nothing that is newer.
//
//     SessionStart                                  started; an empty prompt, unless it resumes
//     UserPromptSubmit                              active; a prompt with its text
//     PreToolUse, PostToolUse                       active
//     Stop                                          done
//     SessionEnd                                    ended
//     Notification: permission_prompt, idle_prompt  permission_needed, idle
//     any other                                     as it was
#pragma once

#include <string>
#include <vector>

#include "perdure/debounce.h"
#include "perdure/transaction.h"
#include "transcript/rows.h"

namespace perdure::transcript {

/// The debouncer, and the worker, of every space that has transcripts.
inline constexpr std::string_view kDebouncer = "transcripts";
/// A session of which nothing is heard for so long has ended.
inline constexpr Duration kIdleTime = std::chrono::minutes(10);
/// What is written in the transaction of a hook besides its text and its prompt is less.
inline constexpr std::size_t kBesideHook = 150'000;
/// How long hooks are kept.
inline constexpr Duration kHooksKept = std::chrono::hours(7 * 24);

/// One that has come in, read as far as that needs no transaction.
struct Hook {
  std::string text = {};
  /// By which it is taken once, however often it comes; empty if it has none.
  std::string id = {};
  /// Empty if it names no session, or one that cannot be.
  std::string session = {};
  std::string type = {};
  /// "source" of a start, "notification_type" of a notification.
  std::string detail = {};
  std::optional<std::string> project = {};
  std::optional<std::string> transcript_path = {};
  std::optional<std::string> prompt = {};
  /// Its own time, as it was given.
  std::string time = {};
  /// When it came to whoever has kept or sent it; nothing if it comes just now.
  std::optional<WallTime> came = {};
  /// The same by their own clock, however wrong that is: the transcript has its times from it, too.
  std::optional<WallTime> sent = {};
  /// What is wrong with it, for the log.
  std::string problem = {};
};

/// What the clock of this machine says, and the time of the store at that moment, which is later if the clock has gone
/// back, or another machine's is ahead.
struct Clocks {
  WallTime wall;
  WallTime store;
};
/// When one came, in the time of the store, that was `sent` by the clock of a machine. So one that was overtaken on its
/// way, or waited in the spool, undoes nothing. What is more than `at_most` ago, or not yet, is by a clock that
/// differs, and now is the better guess.
WallTime came_at(WallTime sent, const Clocks& now, Duration at_most = Duration::max());
/// Whoever sends one gives up after seconds.
inline constexpr Duration kSendingTime = std::chrono::minutes(1);

/// Whatever the text is. The path of its transcript is as it was given, and has to be looked at.
Hook read_hook(std::string text, std::string id);
/// What was found at its path: one that cannot be a transcript's is left out.
void note_look(const Result<void>& found, Hook& hook);

enum class Taken {
  kNew,
  kDuplicate,  ///< It was taken before: nothing has changed.
};
/// Takes it; touches the session's key of the debouncer, which there is.
Taken take_hook(Transaction& txn, std::string_view space, const Hook& hook, Debouncers& debouncers, WallTime now);
/// A row of one that goes: the first of its rows says what else there is of it, unless it is damaged.
void forget_hook(Transaction& txn, std::string_view space, BytesView data, const Row& row);

}  // namespace perdure::transcript
