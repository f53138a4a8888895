// The public class, on top of DebouncersImpl.
#include "debounce/debouncers_impl.h"
#include "debounce/settings.h"
#include "session/rows.h"
#include "store/blocking.h"
#include "store/system_access.h"

namespace perdure {
namespace {

TransactOptions short_body(Reserve reserve) {
  return {.body = Body::kShort, .reserve = reserve};
}

Result<Bytes> check_touch(const debounce::Place& place, const Value& payload) {
  auto pass_on = [](auto& failed) { return std::unexpected(std::move(failed.error())); };
  if (auto good = debounce::check_names(place.space, place.name); !good) return pass_on(good);
  if (auto good = debounce::check_key(place.key); !good) return pass_on(good);
  if (auto good = debounce::check_payload(payload); !good) return pass_on(good);
  return payload.encode();
}

std::uint64_t store_number(Reader& reader) {
  return session::read_store_number(reader);
}

}  // namespace

Result<Debouncers> Debouncers::open(Store store, DebouncersOptions options) {
  return DebouncersImpl::open(std::move(store), std::move(options));
}

Debouncers Debouncers::in(std::string space) const {
  return {impl_, std::move(space)};
}

Result<void> Debouncers::set(std::string_view name, DebounceSettings settings) {
  return impl_->transact_now([&](Transaction& txn) { set(txn, name, settings); }, short_body(Reserve::kKeepOut));
}

void Debouncers::set(Transaction& txn, std::string_view name, DebounceSettings settings) {
  in_txn(txn, debounce::check_names(space_, name));
  settings = in_txn(txn, debounce::check_settings(name, std::move(settings)));
  SystemAccess access(txn);
  debounce::set(txn, space_, name, settings, impl_->now(txn));
}

Result<DebouncerInfo> Debouncers::get(std::string_view name) {
  return impl_->read_now([&](Reader& reader) { return get(reader, name); });
}

Result<DebouncerInfo> Debouncers::get(Reader& reader, std::string_view name) const {
  if (auto good = debounce::check_names(space_, name); !good) return std::unexpected(std::move(good.error()));
  SystemAccess access(reader);
  return debounce::get(reader, space_, name);
}

Result<std::vector<DebouncerInfo>> Debouncers::list(const PageOptions& page) {
  return impl_->read_now([&](Reader& reader) { return list(reader, page); });
}

Result<std::vector<DebouncerInfo>> Debouncers::list(Reader& reader, const PageOptions& page) const {
  SystemAccess access(reader);
  return debounce::list(reader, space_, page);
}

Result<void> Debouncers::remove(std::string_view name) {
  if (auto good = debounce::check_names(space_, name); !good) return good;
  std::optional<std::string> after;
  do {
    auto part = impl_->transact_now(
        [&](Transaction& txn) {
          SystemAccess access(txn);
          return debounce::remove_some(txn, space_, name, after, impl_->now(txn));
        },
        short_body(Reserve::kMayUse));
    if (!part) return std::unexpected(std::move(part.error()));
    after = std::move(*part);
  } while (after);
  return {};
}

Result<Window> Debouncers::touch(std::string_view name, std::string_view key, Value payload) {
  return block<Window>(*impl_, [&](auto done) { touch_async(name, key, std::move(payload), std::move(done)); });
}

void Debouncers::touch_async(std::string_view name, std::string_view key, Value payload,
                             std::move_only_function<void(Result<Window>)> done) {
  debounce::Place place{space_, std::string(name), std::string(key)};
  auto checked = check_touch(place, payload);
  if (!checked) return done(std::unexpected(std::move(checked.error())));
  impl_->touch(std::move(place), std::move(*checked), std::move(done));
}

Window Debouncers::touch(Transaction& txn, std::string_view name, std::string_view key, Value payload) {
  debounce::Place place{space_, std::string(name), std::string(key)};
  Bytes checked = in_txn(txn, check_touch(place, payload));
  SystemAccess access(txn);
  return debounce::touch(txn, place, {&checked, 1}, impl_->merge_of(place), impl_->now(txn));
}

Result<bool> Debouncers::cancel(std::string_view name, std::string_view key) {
  return impl_->transact_now([&](Transaction& txn) { return cancel(txn, name, key); }, short_body(Reserve::kMayUse));
}

bool Debouncers::cancel(Transaction& txn, std::string_view name, std::string_view key) {
  in_txn(txn, debounce::check_names(space_, name));
  in_txn(txn, debounce::check_key(key));
  SystemAccess access(txn);
  return debounce::cancel(txn, {space_, std::string(name), std::string(key)}, impl_->now(txn));
}

Result<DebounceKey> Debouncers::key(std::string_view name, std::string_view key) {
  return impl_->read_now([&](Reader& reader) { return this->key(reader, name, key); });
}

Result<DebounceKey> Debouncers::key(Reader& reader, std::string_view name, std::string_view key) const {
  if (auto good = debounce::check_names(space_, name); !good) return std::unexpected(std::move(good.error()));
  if (auto good = debounce::check_key(key); !good) return std::unexpected(std::move(good.error()));
  SystemAccess access(reader);
  return debounce::key_state(reader, {space_, std::string(name), std::string(key)}, store_number(reader));
}

Result<std::vector<DebounceKey>> Debouncers::keys(std::string_view name, const PageOptions& page) {
  return impl_->read_now([&](Reader& reader) { return keys(reader, name, page); });
}

Result<std::vector<DebounceKey>> Debouncers::keys(Reader& reader, std::string_view name,
                                                  const PageOptions& page) const {
  if (auto good = debounce::check_names(space_, name); !good) return std::unexpected(std::move(good.error()));
  SystemAccess access(reader);
  return debounce::list_keys(reader, space_, name, page, store_number(reader));
}

Result<void> Debouncers::pause(std::string_view name, const PauseOptions& why) {
  return impl_->transact_now([&](Transaction& txn) { pause(txn, name, why); }, short_body(Reserve::kMayUse));
}

void Debouncers::pause(Transaction& txn, std::string_view name, const PauseOptions& why) {
  in_txn(txn, debounce::check_names(space_, name));
  SystemAccess access(txn);
  in_txn(txn, debounce::pause(txn, space_, name, why, impl_->now(txn)));
}

Result<void> Debouncers::unpause(std::string_view name) {
  return impl_->transact_now([&](Transaction& txn) { unpause(txn, name); }, short_body(Reserve::kMayUse));
}

void Debouncers::unpause(Transaction& txn, std::string_view name) {
  in_txn(txn, debounce::check_names(space_, name));
  SystemAccess access(txn);
  in_txn(txn, debounce::unpause(txn, space_, name, impl_->now(txn)));
}

Result<void> Debouncers::handle_with(Queue& queue, std::string_view name, RunHandler handler, RunOptions options) {
  auto info = get(name);
  if (!info) return std::unexpected(std::move(info.error()));
  Queue here = queue.in(space_);
  return work(here, info->settings.worker, std::move(handler), std::move(options));
}

void Debouncers::merge_by(std::string_view name, Merge merge) {
  impl_->merge_by(space_, name, std::move(merge));
}

void Debouncers::hold() {
  impl_->hold();
}

void Debouncers::release() {
  impl_->release();
}

}  // namespace perdure
