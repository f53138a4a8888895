#include "perdure/lease.h"

#include <charconv>

#include "base/seeded_bug.h"
#include "runtime/latch.h"
#include "session/leases.h"
#include "session/session_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using session::LeaseRow;

constexpr std::size_t kVersionDigits = 16, kOrderDigits = 8, kStoreDigits = 16;

std::string hex(std::uint64_t number, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; number >>= 4) text[i] = "0123456789abcdef"[number & 15];
  return text;
}

std::optional<std::uint64_t> unhex(std::string_view text) {
  std::uint64_t number = 0;
  bool digits = text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (!digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error stale(std::string_view name) {
  return {ErrorCode::kStaleToken, "the lease '" + std::string(name) + "' is not held with this token any more"};
}

/// `session` is the holder if the caller knows it.
void fence_rows(Transaction& txn, std::string_view name, Stamp token, std::optional<SessionId> session) {
  SystemAccess access(txn);
  auto row = session::read_lease(txn, name);
  if (seeded(SeededBug::kFenceWithoutToken)) {
    if (!row) access.refuse(stale(name));
    return;
  }
  if (!row || row->token != token || (session && row->session != *session)) access.refuse(stale(name));
  if (!session::is_open(txn, row->session) && !seeded(SeededBug::kFenceWithoutEpoch)) access.refuse(stale(name));
}

}  // namespace

std::string Token::to_string() const {
  return hex(stamp.version.number, kVersionDigits) + hex(stamp.order, kOrderDigits) + "-" + hex(store, kStoreDigits);
}

Result<Token> Token::parse(std::string_view text) {
  constexpr std::size_t kStamp = kVersionDigits + kOrderDigits;
  std::optional<std::uint64_t> version, order, store;
  if (text.size() == kStamp + 1 + kStoreDigits && text[kStamp] == '-') {
    version = unhex(text.substr(0, kVersionDigits));
    order = unhex(text.substr(kVersionDigits, kOrderDigits));
    store = unhex(text.substr(kStamp + 1));
  }
  if (!version || !order || !store)
    return fail(ErrorCode::kInvalidArgument, "'" + printable(text) + "' is not a token; pass one on as it was given");
  return Token{{{*version}, static_cast<std::uint32_t>(*order)}, *store};
}

void fence(Transaction& txn, std::string_view name, const Token& token) {
  {
    SystemAccess access(txn);
    if (auto valid = session::check_name(name, "the name of the lease"); !valid) access.refuse(valid.error());
    if (token.store != session::read_store_number(txn))
      access.refuse({ErrorCode::kInvalidArgument, "the token " + token.to_string() + " is of another store"});
  }
  fence_rows(txn, name, token.stamp, std::nullopt);
}

LeaseState::LeaseState(SessionImpl& session, std::string lease_name, Token lease_token)
    : name(std::move(lease_name)), token(lease_token), session_(session.weak_from_this()), session_id_(session.id()) {}

bool LeaseState::held() {
  if (let_go_) return false;
  auto session = session_.lock();
  if (!session) return false;
  auto use = session->enter();
  return use && session->believes();
}

void LeaseState::fence(Transaction& txn) {
  if (!held()) SystemAccess(txn).refuse(stale(name));
  fence_rows(txn, name, token.stamp, session_id_);
}

void LeaseState::release(std::move_only_function<void(Result<void>)> done) {
  if (auto session = session_.lock())
    if (auto use = session->enter()) return session->leases().release(*this, std::move(done));
  done(fail(ErrorCode::kStaleToken, "the session of the lease '" + name + "' is over"));
}

bool LeaseState::must_not_block() {
  auto session = session_.lock();
  if (!session) return false;
  auto use = session->enter();
  return use && session->must_not_block();
}

const std::string& Lease::name() const {
  return state_->name;
}

const Token& Lease::token() const {
  return state_->token;
}

bool Lease::held() const {
  return state_->held();
}

const CancelSignal& Lease::cancel_signal() const {
  return state_->cancel.signal();
}

void Lease::fence(Transaction& txn) const {
  state_->fence(txn);
}

Result<void> Lease::release() {
  if (state_->must_not_block())
    return fail(ErrorCode::kInvalidArgument,
                "release was called in a callback of the store, on a store that the host polls or in a simulation, and "
                "would wait for itself; use release_async");
  auto promise = std::make_shared<Promise<Result<void>>>();
  release_async([promise](Result<void> result) { promise->set(std::move(result)); });
  return promise->take();
}

void Lease::release_async(std::move_only_function<void(Result<void>)> done) {
  state_->release(std::move(done));
}

}  // namespace perdure
