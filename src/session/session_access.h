#pragma once

#include "perdure/session.h"
#include "session/session_impl.h"

namespace perdure {

/// For the parts of perdure that are built on sessions: what they need of one besides leases.
struct SessionAccess {
  /// It may be kept longer than the Session, and then refuses to be entered; see SessionImpl::enter.
  static std::shared_ptr<SessionImpl> impl(Session& session) { return session.impl_; }
};

}  // namespace perdure
