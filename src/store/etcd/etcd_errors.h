// What to make of a call that failed.
//
// For a write the question is whether it may still take effect. That it cannot is believed only where etcd says that it
// has refused the request before or while applying it; everything else, a deadline and a lost connection before all, is
// an unknown outcome. "request timed out" and "leader changed" are such as well: the proposal may be on its way yet.
// kStoreFull is something between: it will not take effect from then on, but may have done so. Whoever minds has to
// look.
#pragma once

#include <string>

#include "perdure/error.h"

namespace perdure::etcd {

enum class Purpose { kRead, kWrite };

enum class Next {
  kTell,          ///< The server has answered: tell the caller.
  kMoveOn,        ///< This endpoint is of no use just now; another may be.
  kAuthenticate,  ///< Without effect: get a new token, and then once more.
  kCompacted,     ///< Without effect: the revision is gone.
};

struct Verdict {
  Error error;
  Next next;
};

/// `code` is gRPC's, `place` is where the call went, for the message.
Verdict judge(Purpose purpose, int code, const std::string& message, const std::string& place);

/// For a write that may be repeated by whoever asked for it: an unknown outcome is no more than kUnavailable.
Error repeatable(Error error);

}  // namespace perdure::etcd
