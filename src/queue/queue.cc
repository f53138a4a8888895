// The public classes, on top of QueueImpl.
#include "perdure/queue.h"

#include "queue/admin.h"
#include "queue/inspect.h"
#include "queue/queue_impl.h"
#include "queue/rules.h"
#include "store/blocking.h"

namespace perdure {
namespace {

Result<void> check_names(std::string_view space, std::string_view worker) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  return queue::check_worker(worker);
}

Result<Bytes> encode_result(const Value& result) {
  if (result.is_null()) return Bytes();
  if (auto good = result.check("the result"); !good) return std::unexpected(std::move(good.error()));
  if (result.encoded_size() > kResultBytesMax)
    return fail(ErrorCode::kTooLarge, "the result has " + std::to_string(result.encoded_size()) +
                                          " bytes when encoded; at most " + std::to_string(kResultBytesMax) +
                                          " are allowed");
  return result.encode();
}

/// Finds the claim, and calls `change` with its event if it is held. One that has ended just so before is fine; one
/// that has ended otherwise is not, as whoever asks would believe what is not so.
template <class F>
void with_claim(Transaction& txn, std::string_view space, const Uuid& id, const Token& token,
                std::optional<EndedEvent::How> end, WallTime now, F change) {
  SystemAccess access(txn);
  if (token.store != queue::store_number(txn))
    access.refuse({ErrorCode::kInvalidArgument, "the token is one of another store"});
  auto found = queue::find_claim(txn, space, {id, token.stamp});
  bool repeated = found.standing == queue::Standing::kEnded && found.how == end;
  if (repeated) return;
  if (found.standing != queue::Standing::kHeld) access.refuse(queue::stale_claim(id));
  queue::WorkerTable table(txn, space, found.event->row.names().worker, now);
  change(table, *found.event);
  table.finish();
}

/// How many events of the worker are in that state now.
Result<std::uint64_t> count_of(Queue& queue, std::string_view worker, EventState state) {
  auto info = queue.worker(worker);
  if (!info) return std::unexpected(std::move(info.error()));
  switch (state) {
    case EventState::kScheduled:
      return info->scheduled;
    case EventState::kRunning:
      return info->running;
    case EventState::kDead:
      return info->dead;
    default:
      return info->ready;
  }
}

}  // namespace

// Job.

const Event& Job::event() const {
  return state_->event;
}

const Token& Job::token() const {
  return state_->token;
}

const CancelSignal& Job::cancel_signal() const {
  return state_->cancel.signal();
}

void Job::complete(std::function<Result<void>(Transaction&)> body) {
  state_->bodies.push_back(std::move(body));
}

void Job::retry_in(Duration delay) {
  state_->on_failure.retry_in = delay;
}

void Job::give_up() {
  state_->on_failure.give_up = true;
}

// Opening and closing.

Result<Queue> Queue::open(Store store, QueueOptions options) {
  {
    StoreImpl& impl = StoreAccess::impl(store);
    if (auto use = impl.use(); use && impl.must_not_block())
      return perdure::fail(ErrorCode::kInvalidArgument,
                           "Queue::open was called in a callback of the store, on a store that the host polls or in a "
                           "simulation, and would wait for itself; use open_async");
  }
  using Opened = std::pair<Result<Queue>, Store>;
  auto promise = std::make_shared<Promise<Opened>>();
  QueueImpl::open(std::move(store), std::move(options),
                  [promise](Result<Queue> queue, Store kept) { promise->set({std::move(queue), std::move(kept)}); });
  return promise->take().first;
}

void Queue::open_async(Store store, QueueOptions options, std::move_only_function<void(Result<Queue>)> done) {
  QueueImpl::open(std::move(store), std::move(options),
                  [done = std::move(done)](Result<Queue> queue, const Store&) mutable { done(std::move(queue)); });
}

Queue Queue::in(std::string space) const {
  return {impl_, std::move(space)};
}

Result<void> Queue::close(Duration grace) {
  if (HandlerPool::runs_here())
    return perdure::fail(ErrorCode::kInvalidArgument,
                         "a queue was closed in one of its handlers, which would wait for "
                         "itself");
  return perdure::block<void>(*impl_, [&](VoidDone done) { close_async(grace, std::move(done)); });
}

void Queue::close_async(Duration grace, VoidDone done) {
  impl_->close(grace, std::move(done));
}

// Emitting.

Result<Emitted> Queue::emit(std::string_view worker, Value value, EmitOptions options) {
  return perdure::block<Emitted>(
      *impl_, [&](auto done) { emit_async(worker, std::move(value), std::move(options), std::move(done)); });
}

void Queue::emit_async(std::string_view worker, Value value, EmitOptions options,
                       std::move_only_function<void(Result<Emitted>)> done) {
  std::vector<NewEvent> one;
  one.push_back({std::string(worker), std::move(value), std::move(options)});
  impl_->emit(space_, std::move(one), [done = std::move(done)](Result<std::vector<Emitted>> emitted) mutable {
    if (!emitted) return done(std::unexpected(std::move(emitted.error())));
    done((*emitted)[0]);
  });
}

Emitted Queue::emit(Transaction& txn, std::string_view worker, Value value, EmitOptions options) {
  std::vector<NewEvent> one;
  one.push_back({std::string(worker), std::move(value), std::move(options)});
  return emit_many(txn, std::move(one))[0];
}

Result<std::vector<Emitted>> Queue::emit_many(std::vector<NewEvent> events) {
  return perdure::block<std::vector<Emitted>>(*impl_,
                                              [&](auto done) { emit_many_async(std::move(events), std::move(done)); });
}

void Queue::emit_many_async(std::vector<NewEvent> events,
                            std::move_only_function<void(Result<std::vector<Emitted>>)> done) {
  impl_->emit(space_, std::move(events), std::move(done));
}

std::vector<Emitted> Queue::emit_many(Transaction& txn, std::vector<NewEvent> events) {
  auto prepared = in_txn(txn, impl_->prepare(space_, std::move(events)));
  return queue::emit_all(txn, space_, prepared, queue::is_timed(prepared) ? impl_->now(txn) : impl_->now());
}

// Working.

Result<void> Queue::work_with(std::string_view worker, Handler handler, WorkOptions options) {
  return impl_->work(space_, worker, std::move(handler), std::move(options));
}

void Queue::stop_working(std::string_view worker) {
  impl_->stop_working(space_, worker);
}

Result<std::vector<Claimed>> Queue::claim(std::string_view worker, const ClaimOptions& options) {
  return perdure::block<std::vector<Claimed>>(*impl_,
                                              [&](auto done) { claim_async(worker, options, std::move(done)); });
}

void Queue::claim_async(std::string_view worker, const ClaimOptions& options,
                        std::move_only_function<void(Result<std::vector<Claimed>>)> done) {
  impl_->claim(space_, worker, options, std::move(done));
}

Result<void> Queue::complete(const Uuid& id, const Token& token, Value result) {
  return impl_->transact_now([&](Transaction& txn) { complete(txn, id, token, result); });
}

void Queue::complete(Transaction& txn, const Uuid& id, const Token& token, Value result) {
  Bytes encoded = in_txn(txn, encode_result(result));
  with_claim(
      txn, space_, id, token, EndedEvent::How::kCompleted, impl_->now(txn),
      [&](queue::WorkerTable& table, queue::Loaded& event) { queue::complete(table, event, std::move(encoded)); });
}

Result<void> Queue::fail(const Uuid& id, const Token& token, std::string error, const FailOptions& options) {
  return impl_->transact_now([&](Transaction& txn) { fail(txn, id, token, error, options); });
}

void Queue::fail(Transaction& txn, const Uuid& id, const Token& token, std::string error, const FailOptions& options) {
  with_claim(txn, space_, id, token, EndedEvent::How::kDropped, impl_->now(txn),
             [&](queue::WorkerTable& table, queue::Loaded& event) {
               queue::fail(table, event, {std::move(error), options, {}, impl_->scheduler().random()});
             });
}

Result<void> Queue::release(const Uuid& id, const Token& token) {
  return impl_->transact_now([&](Transaction& txn) { release(txn, id, token); });
}

void Queue::release(Transaction& txn, const Uuid& id, const Token& token) {
  with_claim(txn, space_, id, token, {}, impl_->now(txn),
             [](queue::WorkerTable& table, queue::Loaded& event) { queue::release(table, event); });
}

Result<DueTime> Queue::extend(const Uuid& id, const Token& token, Duration lock) {
  return impl_->transact_now([&](Transaction& txn) { return extend(txn, id, token, lock); });
}

DueTime Queue::extend(Transaction& txn, const Uuid& id, const Token& token, Duration lock) {
  if (lock <= Duration::zero() || lock > queue::kLockMax)
    SystemAccess(txn).refuse(
        {ErrorCode::kInvalidArgument, "a claim is extended by more than nothing, and by at most a year"});
  DueTime until;
  with_claim(txn, space_, id, token, {}, impl_->now(txn),
             [&](queue::WorkerTable& table, queue::Loaded& event) { until = queue::extend(table, event, lock); });
  return until;
}

// Looking.

Result<Event> Queue::get(const Uuid& id) {
  return impl_->read_now([&](Reader& reader) { return get(reader, id); });
}

Result<Event> Queue::get(Reader& reader, const Uuid& id) const {
  return queue::get_event(reader, space_, id, impl_->now());
}

Result<EndedEvent> Queue::history(Reader& reader, const Uuid& id) const {
  return queue::get_ended(reader, space_, id);
}

Result<EndedEvent> Queue::wait(const Uuid& id, Duration timeout) {
  return perdure::block<EndedEvent>(*impl_, [&](auto done) { wait_async(id, timeout, std::move(done)); });
}

void Queue::wait_async(const Uuid& id, Duration timeout, std::move_only_function<void(Result<EndedEvent>)> done) {
  impl_->wait(space_, id, timeout, std::move(done));
}

Result<EventPage> Queue::list(Reader& reader, const EventFilter& filter) const {
  if (auto good = check_names(space_, filter.worker); !good) return std::unexpected(std::move(good.error()));
  return queue::list_events(reader, space_, filter, impl_->now());
}

Result<EventPage> Queue::list(const EventFilter& filter) {
  return impl_->read_now([&](Reader& reader) { return list(reader, filter); });
}

Result<Why> Queue::why(Reader& reader, const Uuid& id) const {
  return queue::why_not(reader, space_, id, impl_->now());
}

Result<Why> Queue::why(const Uuid& id) {
  return impl_->read_now([&](Reader& reader) { return why(reader, id); });
}

Result<WorkerInfo> Queue::worker(std::string_view worker_name) {
  if (auto good = check_names(space_, worker_name); !good) return std::unexpected(std::move(good.error()));
  return impl_->read_now([&](Reader& reader) { return worker(reader, worker_name); });
}

WorkerInfo Queue::worker(Reader& reader, std::string_view worker) const {
  return queue::worker_info(reader, space_, worker, impl_->now());
}

std::vector<std::string> Queue::workers(Reader& reader, const PageOptions& page) const {
  return queue::list_workers(reader, space_, page);
}

std::vector<AttemptRecord> Queue::attempts(Reader& reader, std::string_view worker) const {
  return queue::list_attempts(reader, space_, worker);
}

QueueActivity Queue::activity() const {
  return impl_->activity();
}

// Operating.

void Queue::add_rule(Transaction& txn, std::string_view worker, Rule::Type type, RuleOptions options) {
  in_txn(txn, check_names(space_, worker));
  in_txn(txn, queue::check_rule(options));
  queue::add_rule(txn, space_, worker, type, options, impl_->now(txn));
}

void Queue::remove_rule(Transaction& txn, std::string_view worker, Rule::Type type) {
  in_txn(txn, check_names(space_, worker));
  queue::remove_rule(txn, space_, worker, type, impl_->now(txn));
}

Result<void> Queue::pause(std::string_view worker, RuleOptions options) {
  return impl_->transact_now([&](Transaction& txn) { add_rule(txn, worker, Rule::Type::kPause, options); });
}

Result<void> Queue::block(std::string_view worker, RuleOptions options) {
  return impl_->transact_now([&](Transaction& txn) { add_rule(txn, worker, Rule::Type::kBlock, options); });
}

Result<void> Queue::unpause(std::string_view worker) {
  return impl_->transact_now([&](Transaction& txn) { remove_rule(txn, worker, Rule::Type::kPause); });
}

Result<void> Queue::unblock(std::string_view worker) {
  return impl_->transact_now([&](Transaction& txn) { remove_rule(txn, worker, Rule::Type::kBlock); });
}

Result<void> Queue::configure(std::string_view worker, std::optional<WorkerSettings> settings) {
  if (auto good = check_names(space_, worker); !good) return good;
  if (settings) {
    if (auto good = queue::check_settings(*settings); !good) return good;
  }
  return impl_->transact_now(
      [&](Transaction& txn) { queue::write_settings(txn, space_, worker, settings, impl_->now(txn)); });
}

Result<void> Queue::cancel(const Uuid& id, Force force) {
  return impl_->transact_now([&](Transaction& txn) { cancel(txn, id, force); });
}

void Queue::cancel(Transaction& txn, const Uuid& id, Force force) {
  in_txn(txn, queue::cancel(txn, space_, id, force, impl_->now(txn)));
}

Result<std::uint64_t> Queue::cancel_all(std::string_view worker, std::optional<EventState> state) {
  if (auto good = check_names(space_, worker); !good) return std::unexpected(std::move(good.error()));
  std::vector<EventState> states = {EventState::kReady, EventState::kScheduled, EventState::kDead};
  if (state) states = {*state};
  std::uint64_t sum = 0;
  for (EventState each : states) {
    auto most = count_of(*this, worker, each);
    if (!most) return most;
    auto part = impl_->in_parts([&](Transaction& txn, std::uint64_t done) {
      auto some = queue::cancel_some(txn, space_, worker, each, state ? queue::Views::kOnlyThis : queue::Views::kAny,
                                     impl_->now(txn));
      // Those that come while this is at it are left alone.
      some.more = some.more && done + some.count < *most;
      return some;
    });
    if (!part) return part;
    sum += *part;
  }
  return sum;
}

Result<std::uint64_t> Queue::redrive(std::string_view worker, RedriveOptions options) {
  if (auto good = check_names(space_, worker); !good) return std::unexpected(std::move(good.error()));
  if (options.rate) {
    if (auto good = queue::check_rate(*options.rate); !good) return std::unexpected(std::move(good.error()));
  }
  if (options.ids.size() > 1'000)
    return perdure::fail(ErrorCode::kTooLarge, "at most 1000 dead letters are redriven by their ids at once");
  auto most = count_of(*this, worker, EventState::kDead);
  if (!most) return most;
  std::optional<WallTime> begun;
  return impl_->in_parts([&](Transaction& txn, std::uint64_t done) {
    WallTime now = impl_->now(txn);
    if (!begun) begun = now;
    auto some = queue::redrive_some(txn, space_, worker, options, done, *begun, now);
    // What dies again meanwhile is left alone.
    some.more = some.more && done + some.count < *most;
    return some;
  });
}

}  // namespace perdure
