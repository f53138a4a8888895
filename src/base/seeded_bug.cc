#include "base/seeded_bug.h"

#include <atomic>

namespace perdure {
namespace {

using enum SeededBug;

// clang-format off
constexpr SeededBugInfo kBugs[] = {
    {kAnswerBeforeSync,     "answer_before_sync",     "callers are answered before their commit is durable"},
    {kSkipReadValidation,   "skip_read_validation",   "a commit does not look whether the keys that it read have changed"},
    {kDropReadRange,        "drop_read_range",        "a commit does not look whether the ranges that it read have changed"},
    {kLoseBell,             "lose_bell",              "a commit fires no watch"},
    {kRetryUnknown,         "retry_unknown",          "a transaction with an unknown outcome is taken to have failed, and run again"},
    {kSkipUnknownFence,     "skip_unknown_fence",     "an unknown commit is looked for, but not kept from arriving later"},
    {kAnswerFromThePast,    "answer_from_the_past",   "what was read is answered without asking the server whether there is something newer"},
    {kForgetUnfolded,       "forget_unfolded",        "what only the log has is forgotten, and the row of before is read again"},
    {kBelieveFromReceipt,   "believe_from_receipt",   "a session counts its time from the answer to a renewal, not from its sending"},
    {kBelieveAfterRefusal,  "believe_after_refusal",  "a session whose renewal is refused goes on believing"},
    {kReleaseAfterLoss,     "release_after_loss",     "a lost lease is released all the same, without a look at its token"},
    {kReuseToken,           "reuse_token",            "a lease that changes hands keeps its token"},
    {kTrustWallClock,       "trust_wall_clock",       "deaths are judged by the wall clock"},
    {kCountUnreachableTime, "count_unreachable_time", "an observer counts the time in which it did not reach the store"},
    {kEndWithoutCompare,    "end_without_compare",    "a session is ended without a look whether it has been renewed meanwhile"},
    {kFenceWithoutEpoch,    "fence_without_epoch",    "a fence does not look whether its session has been ended"},
    {kFenceWithoutToken,    "fence_without_token",    "a fence does not look whether the lease still has its token"},
    {kSweepBlindly,         "sweep_blindly",          "sweeping frees leases that others have taken since"},
    {kForgetTheEnded,       "forget_the_ended",       "what an ended session held is never swept"},
    {kCancelNobody,         "cancel_nobody",          "a session that is lost tells none of its leases"},
    {kForgetToFollow,       "forget_to_follow",       "renewals of a holder that is waited for are seen only at one's own"},
    {kLoseReadyKey,         "lose_ready_key",         "a push does not mark the mailbox as ready"},
    {kClearReadyBlindly,    "clear_ready_blindly",    "a mailbox is marked as empty without a look at it"},
    {kReplyToNobody,        "reply_to_nobody",        "a reply is written although its caller has given up"},
    {kForgetThePop,         "forget_the_pop",         "a message is handled, and stays in the mailbox"},
    {kTrustTheCache,        "trust_the_cache",        "a turn commits without a look whether the state is still what it began with"},
    {kInlinePastMailbox,    "inline_past_mailbox",    "a call is handled inline although the mailbox has messages"},
    {kSplitEffects,         "split_effects",          "the casts of a turn are pushed after it has committed"},
    {kOverwriteAfterLock,   "overwrite_after_lock",   "what was done under a lock replaces what others wrote meanwhile"},
    {kLockWithoutToken,     "lock_without_token",     "what was done under a lock commits without a look at its token"},
    {kKeepLocksOfTheDead,   "keep_locks_of_the_dead", "a lock outlives the session that holds it"},
    {kAnswerTooEarly,       "answer_too_early",       "an inline call is answered before its turn has committed"},
    {kForgetAttempts,       "forget_attempts",        "failed attempts at a message are not noted"},
    {kPromoteTwice,         "promote_twice",          "a delayed cast that is due is pushed, and stays delayed"},
    {kTakeWhatWasStopped,   "take_what_was_stopped",  "a batch does not look whether a stop took some of its calls"},
    {kLeaveUnknownLock,     "leave_unknown_lock",     "a lock whose end has an unknown outcome is not given back again"},
    {kCompleteWithoutToken, "complete_without_token", "a claim is ended without a look at its token"},
    {kClaimPastRules,       "claim_past_rules",       "a claim does not look whether its worker is paused or blocked"},
    {kClaimBlindly,         "claim_blindly",          "a claim does not look whether the event was claimed by another meanwhile"},
    {kPromoteEarly,         "promote_early",          "scheduled events become ready before they are due"},
    {kLeaveDueRow,          "leave_due_row",          "an event that is no longer scheduled stays in the index of those that are"},
    {kScheduleSilently,     "schedule_silently",      "nobody is told of an event that is due before all others"},
    {kUnpauseSilently,      "unpause_silently",       "nobody is told that a worker goes on"},
    {kMiscountCancels,      "miscount_cancels",       "a cancelled event is still counted where it was"},
    {kKeepDeadClaims,       "keep_dead_claims",       "a claim outlives the session that holds it"},
    {kSweepTheReclaimed,    "sweep_the_reclaimed",    "sweeping takes events back that others have claimed since"},
    {kRetryKeepsClaim,      "retry_keeps_claim",      "a failed attempt leaves its claim behind"},
    {kKeepUniqueKey,        "keep_unique_key",        "a unique key stays taken when its event has ended"},
    {kIgnoreUniqueKey,      "ignore_unique_key",      "an event is made although its unique key is taken"},
    {kLeakSlot,             "leak_slot",              "an attempt that ends keeps its slot of the limit key"},
    {kIgnoreLimitKey,       "ignore_limit_key",       "a claim does not look how many of the limit key are running"},
    {kIgnoreRate,           "ignore_rate",            "a claim does not look what the rate has left"},
    {kRedriveKeepsDead,     "redrive_keeps_dead",     "a dead letter that is put back stays among the dead as well"},
    {kSplitCompletion,      "split_completion",       "what a completion writes is committed before it, in a transaction of its own"},
    {kClaimForEver,         "claim_for_ever",         "a claim by hand does not end at its deadline"},
    {kExpireTheExtended,    "expire_the_extended",    "a claim ends at its first deadline although it was extended"},
    {kForgetFailures,       "forget_failures",        "failed attempts at an event are not counted"},
    {kLeaveUnknownClaims,   "leave_unknown_claims",   "claims whose outcome is unknown are left lying"},
    {kSettleOnce,           "settle_once",            "a completion that could not be committed is not tried again"},
    {kForgetTheWaiting,     "forget_the_waiting",     "events that wait for a slot of their limit key do not get it when it is free"},
    {kClaimNewestFirst,     "claim_newest_first",     "events are claimed in the reverse of their order"},
    {kEmitTheEndedAgain,    "emit_the_ended_again",   "an event is made although one with its id has ended and is remembered"},
    {kTouchBlindly,         "touch_blindly",          "a touch does not notice that its window fires meanwhile"},
    {kFireEarly,            "fire_early",             "a window fires before it is due"},
    {kFireBesideRun,        "fire_beside_run",        "a window fires although a run of its key is under way"},
    {kForgetTheWindowBehind, "forget_the_window_behind", "a window behind a run is not seen to when that ends"},
    {kOpenSilently,         "open_silently",          "nobody is told of a window that is opened"},
    {kClearTheNewer,        "clear_the_newer",        "the end of a run takes away the window that was opened during it"},
    {kIgnoreMaxWait,        "ignore_max_wait",        "a window that is touched again and again never fires"},
    {kIgnoreMaxCount,       "ignore_max_count",       "a window that is full waits for its time all the same"},
    {kLeadAgain,            "lead_again",             "a burst that has been led is run for its later touches as well"},
    {kEndWithoutFence,      "end_without_fence",      "the end of a run commits without a look whether a later one has begun"},
    {kIgnoreLoss,           "ignore_loss",            "a leader that hears that it has lost its key goes on"},
    {kCountFromTheAnswer,   "count_from_the_answer",  "a leader counts the age of its key from the answer to a keep-alive, not from its sending"},
    {kKeepAfterFailure,     "keep_after_failure",     "a keep-alive that failed is taken for one that did not"},
    {kTrustTheWatch,        "trust_the_watch",        "who waits for a key never looks whether it is there at all"},
    {kFollowOnce,           "follow_once",            "who has run and given the key back does not compete for it again"},
    {kLeaveWithoutRelease,  "leave_without_release",  "who stops in good order leaves its keys to their ageing out"},
    {kKeepTheCache,         "keep_the_cache",         "actualizing a sequencer leaves its numbers in the cache"},
    {kLoadOverNewer,        "load_over_newer",        "numbers that are read replace newer ones that are not stored yet"},
    {kForgetWhatGrew,       "forget_what_grew",       "a number that has grown while it was stored counts as stored"},
    {kLastInsteadOfMost,    "last_instead_of_most",   "recovery takes the last number in the log instead of the largest"},
    {kOffsetBeforeNumbers,  "offset_before_numbers",  "an offset is stored, and its numbers are not"},
    {kNumberWithoutFence,   "number_without_fence",   "the owner of a partition writes without looking whether it still is"},
    {kTrustTheNumbers,      "trust_the_numbers",      "an append takes the stored numbers for those of the log"},
};
// clang-format on

}  // namespace

std::span<const SeededBugInfo> seeded_bugs() {
  return kBugs;
}

#ifdef PERDURE_SEEDED_BUGS
namespace {
std::atomic<SeededBug> the_bug = kNone;
}

bool seeded(SeededBug bug) {
  return the_bug.load(std::memory_order_relaxed) == bug;
}

void seed_bug(SeededBug bug) {
  the_bug = bug;
}
#endif

}  // namespace perdure
