// How a session sweeps what the ended have left behind, itself included.
#include <algorithm>

#include "base/assert.h"
#include "base/seeded_bug.h"
#include "session/session_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// Sessions whose holdings are swept after one look; the next ones find the rest.
constexpr std::size_t kSweptAtOnce = 16;

}  // namespace

void SessionImpl::add_sweeper(std::string kind, session::Sweeper sweeper) {
  check(kind != session::kLeaseKind, "leases have a sweeper already");
  {
    MutexLock lock(mutex_);
    auto sweepers = std::make_shared<session::Sweepers>(*sweepers_);
    sweepers->insert_or_assign(std::move(kind), std::move(sweeper));
    sweepers_ = std::move(sweepers);
    left_to_others_.clear();
    ended_after_.reset();
  }
  look();
}

std::shared_ptr<const session::Sweepers> SessionImpl::sweepers() {
  MutexLock lock(mutex_);
  return sweepers_;
}

std::vector<SessionId> SessionImpl::choose_to_sweep(const View& view) {
  std::vector<SessionId> chosen;
  auto next = view.ended.begin();
  for (; next != view.ended.end() && chosen.size() < kSweptAtOnce; ++next)
    if (!left_to_others_.contains(*next)) chosen.push_back(*next);
  bool all = next == view.ended.end() && view.ended.size() < kEndedRead;
  std::optional<SessionId> reached;
  if (!all) reached = *std::prev(next);
  ended_after_ = reached;
  // Those that are gone from among the ended need not be remembered any more.
  std::erase_if(left_to_others_, [&](SessionId id) {
    bool looked_at = (!view.ended_after || id > *view.ended_after) && (!reached || id <= *reached);
    return looked_at && !std::ranges::binary_search(view.ended, id);
  });
  return chosen;
}

void SessionImpl::sweep(SessionId dead) {
  if (seeded(SeededBug::kForgetTheEnded)) return;
  std::shared_ptr<const session::Sweepers> sweepers;
  {
    MutexLock lock(mutex_);
    if (is_over() || !sweeping_.insert(dead).second) return;
    sweepers = sweepers_;
  }
  transact(
      [dead, sweepers](Transaction& txn) {
        SystemAccess access(txn);
        // Renewed after all.
        if (session::is_open(txn, dead)) return session::Swept::kAll;
        return session::sweep_some(txn, dead, *sweepers);
      },
      [this, dead, sweepers](Result<session::Swept> swept, Receipt) {
        bool again = swept && *swept == session::Swept::kMore;
        {
          MutexLock lock(mutex_);
          sweeping_.erase(dead);
          if (swept && *swept == session::Swept::kRest) {
            // A sweeper that came meanwhile may be the one that was missing.
            again = sweepers != sweepers_;
            if (!again) left_to_others_.insert(dead);
          }
        }
        // After an error the next look finds it again.
        if (again) sweep(dead);
      });
}

}  // namespace perdure
