#include "store/etcd/etcd_errors.h"

#include <array>
#include <string_view>

namespace perdure::etcd {
namespace {

using enum ErrorCode;

enum GrpcCode : int { kDeadlineExceeded = 4, kUnimplemented = 12 };

/// What etcd says when it will surely do nothing more. Nor has it done anything, but for one: a Txn that it has no room
/// for may be done by the time that it says so. etcd's codes are coarse, so its words are looked at.
struct Refusal {
  std::string_view words;
  ErrorCode code;
  Next next;
  std::string_view advice;
};

constexpr std::array kRefusals = {
    Refusal{"database space exceeded", kStoreFull, Next::kTell,
            "; compact and defragment it, or raise --quota-backend-bytes, and then disarm the alarm"},
    Refusal{"request is too large", kTooLarge, Next::kTell, "; its --max-request-bytes is smaller than by default"},
    Refusal{"received message larger than max", kTooLarge, Next::kTell,
            "; its --max-request-bytes is smaller than by default"},
    Refusal{"too many operations in txn", kInvalidArgument, Next::kTell,
            "; start it with --max-txn-ops=128 or more, as is the default"},
    Refusal{"too many requests", kUnavailable, Next::kTell, ""},
    Refusal{"etcdserver: no leader", kUnavailable, Next::kMoveOn, ""},
    Refusal{"not supported for learner", kUnavailable, Next::kMoveOn, ""},
    Refusal{"permission denied", kPermissionDenied, Next::kTell,
            "; grant its user a role with readwrite on the prefix in the url, with --prefix=true"},
    Refusal{"authentication failed", kPermissionDenied, Next::kTell, "; check user and password in the url"},
    Refusal{"user name not found", kPermissionDenied, Next::kTell, "; check the user in the url"},
    Refusal{"user name is empty", kPermissionDenied, Next::kTell,
            "; it asks for a user: write etcd://user:password@host:port"},
    Refusal{"invalid auth token", kUnavailable, Next::kAuthenticate, ""},
    Refusal{"auth store is old", kUnavailable, Next::kAuthenticate, ""},
    Refusal{"revision in header is old", kUnavailable, Next::kAuthenticate, ""},
    Refusal{"revision has been compacted", kUnavailable, Next::kCompacted, ""},
    Refusal{"is a future revision", kUnavailable, Next::kCompacted, ""},
    Refusal{"corrupt cluster", kCorrupt, Next::kTell, "; its members hold different data"},
};

}  // namespace

Verdict judge(Purpose purpose, int code, const std::string& message, const std::string& place) {
  std::string says = message.empty() ? "gRPC code " + std::to_string(code) : message;
  for (const Refusal& refusal : kRefusals)
    if (message.find(refusal.words) != message.npos)
      return {{refusal.code, "etcd at " + place + " refuses: " + says + std::string(refusal.advice)}, refusal.next};
  if (code == kUnimplemented)
    return {{kInvalidArgument, "what answers at " + place + " is no etcd with the v3 API: " + says}, Next::kTell};
  bool silent = code == kDeadlineExceeded;
  std::string what = silent ? "etcd at " + place + " does not answer in time" : "etcd at " + place + " fails: " + says;
  // A code that is not known here comes from a server that is alive; another is asked all the same.
  if (purpose == Purpose::kWrite) return {{kCommitUnknown, what + "; the write may yet take effect"}, Next::kMoveOn};
  return {{kUnavailable, what}, Next::kMoveOn};
}

Error repeatable(Error error) {
  if (error.code == kCommitUnknown) error.code = kUnavailable;
  return error;
}

}  // namespace perdure::etcd
