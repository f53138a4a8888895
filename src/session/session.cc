#include "perdure/session.h"

#include <unistd.h>

#include "runtime/latch.h"
#include "session/session_impl.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {
namespace {

constexpr Duration kTtlMin = std::chrono::milliseconds(10);
constexpr Duration kTtlMax = std::chrono::hours(24);

std::string in_ms(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) + " ms";
}

std::string default_name() {
  char host[256] = {};
  bool known = gethostname(host, sizeof host - 1) == 0;
  return std::string(known ? host : "unknown").substr(0, kLeaseNameMax / 2) + ":" + std::to_string(getpid());
}

Result<void> check_options(const SessionOptions& options) {
  if (options.ttl < kTtlMin || options.ttl > kTtlMax)
    return fail(ErrorCode::kInvalidArgument,
                "the TTL of a session is " + in_ms(options.ttl) + "; it must be between 10 ms and a day");
  if (options.renew <= Duration::zero() || options.renew >= options.ttl)
    return fail(ErrorCode::kInvalidArgument, "a session is to be renewed every " + in_ms(options.renew) +
                                                 "; that must be more than nothing and less than its TTL, " +
                                                 in_ms(options.ttl));
  return session::check_name(options.name, "the name of the session");
}

struct Opened {
  std::uint64_t store_number;
};

/// Answers a blocking call. Shared, because the call may return before the one who answers has let go of it.
template <class T>
struct Waiting {
  std::shared_ptr<Promise<Result<T>>> promise = std::make_shared<Promise<Result<T>>>();
  auto done() {
    return [promise = promise](Result<T> result) { promise->set(std::move(result)); };
  }
  Result<T> take() { return promise->take(); }
};

struct WaitingForOpen {
  using Answer = std::pair<Result<Session>, Store>;
  std::shared_ptr<Promise<Answer>> promise = std::make_shared<Promise<Answer>>();
  auto done() {
    return [promise = promise](Result<Session> session, Store store) {
      promise->set({std::move(session), std::move(store)});
    };
  }
  Result<Session> take() { return promise->take().first; }
};

auto without_store(std::move_only_function<void(Result<Session>)> done) {
  return [done = std::move(done)](Result<Session> session, const Store&) mutable { done(std::move(session)); };
}

std::unexpected<Error> would_hang(const std::string& call) {
  return fail(
      ErrorCode::kInvalidArgument,
      call +
          " was called in a callback of the store, on a store that the host polls or in a simulation, and would "
          "wait for itself; use " +
          call + "_async");
}

}  // namespace

std::string SessionId::to_string() const {
  return std::to_string(stamp.version.number) + "." + std::to_string(stamp.order);
}

void SessionImpl::open(Store store, SessionOptions options, std::optional<SessionId> replaces, OpenDone done) {
  if (options.name.empty()) options.name = default_name();
  if (auto valid = check_options(options); !valid) return done(std::unexpected(std::move(valid.error())), store);
  StoreImpl& impl = StoreAccess::impl(store);
  auto use = impl.use();
  if (!use) return done(std::unexpected(std::move(use.error())), store);
  session::OpenRow row{options.ttl, impl.engine().presence(), options.name};
  SteadyTime sent = impl.scheduler().now();
  std::uint64_t random = impl.scheduler().random();
  store.transact_async(
      [row = std::move(row), replaces, random](Transaction& txn) {
        SystemAccess access(txn);
        std::uint64_t number = session::read_store_number(txn);
        if (number == 0) txn.set(session::store_key(), encode_counter(static_cast<std::int64_t>(number = random | 1)));
        if (replaces && session::is_open(txn, *replaces)) session::end_rows(txn, *replaces);
        auto key = [](std::string_view table) {
          return tuple::pack_stamped_onto(kSystemKeys, "session", table, tuple::IncompleteStamp{});
        };
        txn.set_stamped(key("open"), row.encode());
        txn.set_stamped(key("beat"), encode_counter(0));
        return Opened{number};
      },
      [store, options, sent, done = std::move(done)](Result<Opened> opened, Receipt receipt) mutable {
        if (!opened) return done(std::unexpected(std::move(opened.error())), std::move(store));
        auto made = std::make_shared<SessionImpl>(store, std::move(options), SessionId{receipt.stamp()},
                                                  opened->store_number, sent);
        made->start();
        // First the one, then the other: arguments are made in any order.
        Session session(store, std::move(made));
        done(std::move(session), std::move(store));
      },
      {.timeout = options.ttl, .body = Body::kShort, .reserve = Reserve::kMayUse});
}

Session::Session(Store store, std::shared_ptr<SessionImpl> impl) : store_(std::move(store)), impl_(std::move(impl)) {}

Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  if (impl_) impl_->abandon();
  impl_ = std::move(other.impl_);
  store_ = std::move(other.store_);
  return *this;
}

Session::~Session() {
  if (impl_) impl_->abandon();
}

Result<Session> Session::open(Store store, SessionOptions options) {
  if (auto use = StoreAccess::impl(store).use(); use && StoreAccess::impl(store).must_not_block())
    return would_hang("open");
  WaitingForOpen waiting;
  SessionImpl::open(std::move(store), std::move(options), std::nullopt, waiting.done());
  return waiting.take();
}

void Session::open_async(Store store, SessionOptions options, std::move_only_function<void(Result<Session>)> done) {
  SessionImpl::open(std::move(store), std::move(options), std::nullopt, without_store(std::move(done)));
}

SessionId Session::id() const {
  return impl_->id();
}

bool Session::alive() const {
  return impl_->alive();
}

Result<Lease> Session::acquire(std::string_view name, Duration timeout) {
  if (impl_->must_not_block()) return would_hang("acquire");
  Waiting<Lease> waiting;
  acquire_async(name, timeout, waiting.done());
  return waiting.take();
}

void Session::acquire_async(std::string_view name, Duration timeout,
                            std::move_only_function<void(Result<Lease>)> done) {
  if (auto use = impl_->enter()) return impl_->leases().acquire(name, timeout, std::move(done));
  done(std::unexpected(SessionImpl::store_closed()));
}

Result<void> Session::stop(Duration grace) {
  if (impl_->must_not_block()) return would_hang("stop");
  Waiting<void> waiting;
  stop_async(grace, waiting.done());
  return waiting.take();
}

void Session::stop_async(Duration grace, std::move_only_function<void(Result<void>)> done) {
  if (auto use = impl_->enter()) return impl_->stop(grace, std::move(done));
  done(std::unexpected(SessionImpl::store_closed()));
}

Result<Session> Session::reopen() {
  if (impl_->must_not_block()) return would_hang("reopen");
  Waiting<Session> waiting;
  reopen_async(waiting.done());
  return waiting.take();
}

void Session::reopen_async(std::move_only_function<void(Result<Session>)> done) {
  if (!impl_->is_lost())
    return done(fail(ErrorCode::kInvalidArgument, "the session is not lost; only a lost one is opened anew"));
  SessionImpl::open(store_, impl_->options(), impl_->id(), without_store(std::move(done)));
}

std::vector<SessionInfo> Session::list(Reader& reader, std::size_t limit) {
  SystemAccess access(reader);
  std::vector<SessionInfo> sessions;
  for (const Row& row : reader.get_range(session::table_range("open"), {.limit = limit})) {
    auto id = session::id_of("open", row.key);
    auto open = session::OpenRow::decode(row.value);
    if (!id || !open) continue;
    auto beat = decode_counter(reader.get(session::beat_key(*id)));
    sessions.push_back({*id, std::move(open->name), open->ttl, static_cast<std::uint64_t>(beat)});
  }
  return sessions;
}

std::vector<LeaseInfo> Session::leases_of(Reader& reader, SessionId session, const PageOptions& page) {
  SystemAccess access(reader);
  std::uint64_t store = session::read_store_number(reader);
  Bytes prefix = session::held_key(session, session::kLeaseKind);
  KeyRange range = tuple::extensions(prefix);
  if (!page.after.empty()) range.begin = next_key(session::held_key(session, session::kLeaseKind, page.after));
  std::vector<LeaseInfo> leases;
  if (!session::is_open(reader, session)) return leases;
  for (const Row& row : reader.get_range(range, {.limit = page.limit})) {
    auto name = tuple::unpack_after<std::string>(prefix, row.key);
    auto token = Stamp::decode(row.value);
    if (name && token) leases.push_back({std::move(std::get<0>(*name)), {*token, store}, session});
  }
  return leases;
}

std::optional<LeaseInfo> Session::holder_of(Reader& reader, std::string_view name) {
  SystemAccess access(reader);
  if (auto valid = session::check_name(name, "the name of the lease"); !valid) access.refuse(valid.error());
  auto row = session::read_lease(reader, name);
  if (!row || !session::is_open(reader, row->session)) return std::nullopt;
  return LeaseInfo{std::string(name), {row->token, session::read_store_number(reader)}, row->session};
}

}  // namespace perdure
