// Bugs on purpose.
//
// A checker that has never failed proves nothing. So the places where a mistake would be easy can be told to make it:
// one bug at a time, by name, in builds for tests only (PERDURE_SEEDED_BUGS). The simulation then has to catch each of
// them. In every other build `seeded` is a constant, and nothing of this is left.
#pragma once

#include <span>
#include <string_view>

namespace perdure {

enum class SeededBug {
  kNone,
  // The store.
  kAnswerBeforeSync,
  kSkipReadValidation,
  kDropReadRange,
  kLoseBell,
  kRetryUnknown,
  kSkipUnknownFence,
  // Stores across a network.
  kAnswerFromThePast,
  kForgetUnfolded,
  // Sessions and leases.
  kBelieveFromReceipt,
  kBelieveAfterRefusal,
  kReleaseAfterLoss,
  kReuseToken,
  kTrustWallClock,
  kCountUnreachableTime,
  kEndWithoutCompare,
  kFenceWithoutEpoch,
  kFenceWithoutToken,
  kSweepBlindly,
  kForgetTheEnded,
  kCancelNobody,
  kForgetToFollow,
  // Actors.
  kLoseReadyKey,
  kClearReadyBlindly,
  kReplyToNobody,
  kForgetThePop,
  kTrustTheCache,
  kInlinePastMailbox,
  kSplitEffects,
  kOverwriteAfterLock,
  kLockWithoutToken,
  kKeepLocksOfTheDead,
  kAnswerTooEarly,
  kForgetAttempts,
  kPromoteTwice,
  kTakeWhatWasStopped,
  kLeaveUnknownLock,
  // The queue.
  kCompleteWithoutToken,
  kClaimPastRules,
  kClaimBlindly,
  kPromoteEarly,
  kLeaveDueRow,
  kScheduleSilently,
  kUnpauseSilently,
  kMiscountCancels,
  kKeepDeadClaims,
  kSweepTheReclaimed,
  kRetryKeepsClaim,
  kKeepUniqueKey,
  kIgnoreUniqueKey,
  kLeakSlot,
  kIgnoreLimitKey,
  kIgnoreRate,
  kRedriveKeepsDead,
  kSplitCompletion,
  kClaimForEver,
  kExpireTheExtended,
  kForgetFailures,
  kLeaveUnknownClaims,
  kSettleOnce,
  kForgetTheWaiting,
  kClaimNewestFirst,
  kEmitTheEndedAgain,
  // Debouncers.
  kTouchBlindly,
  kFireEarly,
  kFireBesideRun,
  kForgetTheWindowBehind,
  kOpenSilently,
  kClearTheNewer,
  kIgnoreMaxWait,
  kIgnoreMaxCount,
  kLeadAgain,
  // Ticks.
  kEndWithoutFence,
  kIgnoreLoss,
  kCountFromTheAnswer,
  kKeepAfterFailure,
  kTrustTheWatch,
  kFollowOnce,
  kLeaveWithoutRelease,
  // Sequences.
  kKeepTheCache,
  kLoadOverNewer,
  kForgetWhatGrew,
  kLastInsteadOfMost,
  kOffsetBeforeNumbers,
  kNumberWithoutFence,
  kTrustTheNumbers,
};

struct SeededBugInfo {
  SeededBug bug;
  std::string_view name;
  std::string_view what;
};

/// All of them but kNone.
std::span<const SeededBugInfo> seeded_bugs();

#ifdef PERDURE_SEEDED_BUGS
/// Whether `bug` is the one to be made.
bool seeded(SeededBug bug);
/// From now on, in the whole process.
void seed_bug(SeededBug bug);
#else
constexpr bool seeded(SeededBug) {
  return false;
}
#endif

}  // namespace perdure
