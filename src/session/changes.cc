// The public class, on top of ChangesImpl.
#include "perdure/changes.h"

#include <algorithm>

#include "base/time_math.h"
#include "session/change_reader.h"
#include "session/changes_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// Reads conflict with nobody: a page is as good a moment later.
Result<ChangePage> read_and_watch(Transaction& txn, std::string_view space, const ChangeQuery& query) {
  SystemAccess access(txn);
  Reader snapshot = txn.snapshot();
  auto page = session::read_feed(snapshot, space, query);
  // In the same transaction, so that nothing can come in between.
  if (page && !page->more) page->news = txn.watch(changes_bell(space));
  return page;
}

}  // namespace

Result<Changes> Changes::open(Store store, ChangesOptions options) {
  return ChangesImpl::open(std::move(store), std::move(options));
}

Changes Changes::in(std::string space) const {
  return {impl_, std::move(space)};
}

Result<std::string> Changes::latest() {
  return impl_->read_now([&](Reader& reader) { return latest(reader); });
}

Result<std::string> Changes::latest(Reader& reader) const {
  SystemAccess access(reader);
  return session::feed_end(reader, space_).cursor();
}

void Changes::latest_async(std::move_only_function<void(Result<std::string>)> done) {
  impl_->transact(
      [space = space_](Transaction& txn) {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        return session::feed_end(snapshot, space).cursor();
      },
      [done = std::move(done)](Result<std::string> cursor, Receipt) mutable { done(std::move(cursor)); }, {});
}

Result<ChangePage> Changes::read(const ChangeQuery& query) {
  return impl_->read_now([&](Reader& reader) { return read(reader, query); });
}

Result<ChangePage> Changes::read(Reader& reader, const ChangeQuery& query) const {
  SystemAccess access(reader);
  return session::read_feed(reader, space_, query);
}

void Changes::read_async(ChangeQuery query, std::move_only_function<void(Result<ChangePage>)> done) {
  impl_->transact(
      [space = space_, query = std::move(query)](Transaction& txn) { return read_and_watch(txn, space, query); },
      [done = std::move(done)](Result<ChangePage> page, Receipt) mutable { done(std::move(page)); }, {});
}

Result<ChangePage> Changes::wait(ChangeQuery query, Duration timeout) {
  auto now = [this]() -> std::optional<SteadyTime> {
    auto use = impl_->enter();
    if (!use) return std::nullopt;
    return impl_->scheduler().now();
  };
  std::optional<SteadyTime> begun = now(), current = begun;
  for (;;) {
    auto page = impl_->transact_now([&](Transaction& txn) { return read_and_watch(txn, space_, query); }, {});
    if (!page || !page->changes.empty() || page->gap) {
      if (page) page->news.cancel();
      return page;
    }
    query.after = page->next;
    if (page->more) continue;
    bool fired = current && page->news.wait(timeout - std::min(timeout, *current - *begun));
    page->news.cancel();
    if (!fired) return page;
    current = now();
  }
}

}  // namespace perdure
