#include "http/api.h"

#include "http/guard.h"
#include "http/idempotency.h"
#include "http/problem.h"
#include "http/units.h"
#include "runtime/latch.h"
#include "session/rows.h"
#include "store/store_access.h"

namespace perdure::http {

/// Leaves the admission when the last step of it has gone.
struct Api::Visit {
  Visit(Api& home, const Route& taken, CallPtr made) : api(home), route(taken), call(std::move(made)) {
    if (route.load != Load::kWait) return;
    MutexLock lock(api.mutex_);
    api.waiting_.insert(this);
  }
  ~Visit() {
    leave();
    if (route.load != Load::kWait) return;
    MutexLock lock(api.mutex_);
    api.waiting_.erase(this);
  }
  /// It counts no more against the bounds.
  void leave() {
    if (!left.exchange(true)) api.admission_.leave(route.load, call->space_or_none());
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  Api& api;
  const Route& route;
  const CallPtr call;
  const SteadyTime began = steady_now();
  std::atomic<bool> left = false;
};

namespace {

/// Names have few characters, ids and keys nearly any: whatever a path names is one of the two.
Result<void> check_param(std::string_view name, std::string_view value) {
  if (name == "id" || name == "key") {
    if (value == "." || value == "..")
      return fail(ErrorCode::kInvalidArgument, "the " + std::string(name) + " cannot be '.' or '..'");
    return session::check_name(value, "the " + std::string(name));
  }
  return session::check_short_name(value, "the " + std::string(name));
}

/// What happens once however often it is asked for belongs to a space.
bool is_keyed(const Route& route) {
  return !route.takes_any_body && route.method == "POST" && route.pattern.starts_with("/v1/{space}/");
}

Response refusal(const Route& route, const Error& error) {
  return route.when_refused ? route.when_refused(info(error.code).http_status) : problem(error);
}

}  // namespace

Api::Api(Node& node, std::vector<Route> routes, ApiOptions options)
    : node_(node),
      router_(std::move(routes)),
      options_(std::move(options)),
      admission_(options_.admission),
      pool_(std::make_shared<HandlerPool>(StoreAccess::impl(node.store()).scheduler(),
                                          HandlerPool::Options{"perdure-api", 1, 8, 0})) {}

Api::~Api() {
  pool_->close([] {});
  pool_->wait();
  pool_->join();
}

void Api::handle(std::shared_ptr<Exchange> exchange) {
  if (auto refused = refused_by_guard(*exchange, options_.hosts)) return exchange->answer(std::move(*refused));
  auto target = Target::parse(exchange->request().target);
  if (!target) return exchange->answer(problem(target.error()));
  auto match = router_.find(exchange->request().method, target->segments);
  if (!match.route && match.allowed.empty())
    return exchange->answer(problem(404, "not_found", "there is nothing at this path; see /v1/_/openapi.json"));
  if (!match.route) {
    Response refused = problem(405, "invalid_argument", "this path takes " + match.allowed + " only");
    refused.headers.add("Allow", match.allowed);
    return exchange->answer(std::move(refused));
  }
  auto call = std::make_shared<Call>(exchange, std::move(*target));
  call->params = std::move(match.params);
  for (const auto& [name, value] : call->params)
    if (auto good = check_param(name, value); !good) return exchange->answer(refusal(*match.route, good.error()));
  if (!admission_.enter(match.route->load, call->space_or_none())) {
    return exchange->answer(refusal(
        *match.route,
        {ErrorCode::kLimitExceeded, "more requests are under way than this daemon takes on at once; try again"}));
  }
  auto visit = std::make_shared<Visit>(*this, *match.route, std::move(call));
  if (!exchange->request().body.empty() && !match.route->takes_any_body) {
    auto body = Value::from_json(exchange->request().body);
    if (!body) return exchange->answer(problem(body.error()));
    visit->call->body = std::move(*body);
  }
  run(*match.route, std::move(visit));
}

std::optional<Response> Api::too_large(std::string_view method, std::string_view text) const {
  auto target = Target::parse(text);
  auto match = target ? router_.find(method, target->segments) : Router::Match();
  if (!match.route || !match.route->when_refused) return std::nullopt;
  return match.route->when_refused(413);
}

void Api::run(const Route& route, std::shared_ptr<Visit> visit) {
  if (const auto* handler = std::get_if<InTransaction>(&route.handler)) return transact(*handler, std::move(visit));
  if (const auto* handler = std::get_if<Raw>(&route.handler)) return handler->run(visit->call);
  bool keyed = is_keyed(route) && visit->call->header("Idempotency-Key");
  if (const auto* handler = std::get_if<Blocking>(&route.handler))
    return keyed ? keep_after(blocking(*handler), std::move(visit)) : begin(blocking(*handler), visit);
  if (const auto* handler = std::get_if<Asynchronous>(&route.handler)) {
    bool after = keyed && handler->key == Asynchronous::Key::kKeptAfter;
    return after ? keep_after(handler->run, std::move(visit)) : begin(handler->run, visit);
  }
  const auto& handler = std::get<WithOrWithoutKey>(route.handler);
  if (keyed) return transact(handler.with, std::move(visit));
  begin(handler.without.run, visit);
}

void Api::begin(const Begin& begin, const std::shared_ptr<Visit>& visit) {
  begin(visit->call, [this, visit](Result<Answer> result) { answer(*visit, std::move(result)); });
  if (!visit->call->lets_go) return;
  visit->call->exchange().gone().then([weak = std::weak_ptr(visit)] {
    if (auto held = weak.lock()) held->leave();
  });
}

void Api::keep_after(Begin begin, std::shared_ptr<Visit> visit) {
  auto given = IdempotencyKey::of(*visit->call);
  if (!given) return answer(*visit, std::unexpected(std::move(given.error())));
  IdempotencyKey key = **given;
  auto keep_it = [this, visit, key](Result<Answer> result) {
    // It may have had its effect: the key stays taken, so that a repeat does not have it again.
    if (!result && result.error().outcome() == Outcome::kUnknown) return answer(*visit, std::move(result));
    auto body = [this, key, result](Transaction& txn) {
      result ? keep(txn, key, {.answer = *result}, node_.now()) : forget(txn, key);
    };
    // If it could not be kept, a repeat finds that it was begun, and does not do it again.
    auto kept = [this, visit, result](const Result<void>&) { answer(*visit, result); };
    node_.store().transact_async(std::move(body), std::move(kept), {.reserve = Reserve::kMayUse});
  };
  // Whoever comes first has the key; those who repeat it meanwhile are told so.
  auto look = [this, key](Transaction& txn) -> Result<std::optional<Kept>> {
    auto kept = find_kept(txn, key, node_.now());
    if (kept && !*kept) keep(txn, key, {.form = Kept::Form::kPending, .pending = "begun"}, node_.now());
    return kept;
  };
  auto found = [this, visit, key, begin = std::move(begin), keep_it](Result<std::optional<Kept>> kept) {
    if (!kept) return answer(*visit, std::unexpected(std::move(kept.error())));
    if (*kept) return answer(*visit, answer_of(std::move(**kept), key.key));
    begin(visit->call, keep_it);
  };
  node_.store().transact_async(std::move(look), std::move(found));
}

Api::Begin Api::blocking(const Blocking& handler) {
  return [this, &handler](CallPtr call, Done done) {
    auto shared = std::make_shared<Done>(std::move(done));
    pool_->run(
        {.run = [&handler, call, shared] { (*shared)(handler.run(*call)); },
         .dropped = [shared] { (*shared)(fail(ErrorCode::kClosed, "this daemon stops; try again when it is back")); }});
  };
}

void Api::transact(const InTransaction& handler, std::shared_ptr<Visit> visit) {
  std::optional<IdempotencyKey> key;
  if (is_keyed(visit->route)) {
    auto given = IdempotencyKey::of(*visit->call);
    if (!given) return answer(*visit, std::unexpected(std::move(given.error())));
    key = std::move(*given);
  }
  auto body = [this, &handler, visit, key](Transaction& txn) -> Result<Answer> {
    if (!key) return handler.run(txn, *visit->call);
    WallTime now = node_.now();
    auto kept = find_kept(txn, *key, now);
    if (!kept) return std::unexpected(std::move(kept.error()));
    if (*kept) return answer_of(std::move(**kept), key->key);
    auto made = handler.run(txn, *visit->call);
    if (made) keep(txn, *key, {.answer = *made}, now);
    return made;
  };
  auto done = [this, visit](Result<Answer> result, Receipt receipt) {
    if (result && result->version == Version()) result->version = receipt.version;
    answer(*visit, std::move(result));
  };
  node_.store().transact_async(std::move(body), std::move(done), {.body = handler.body, .reserve = handler.reserve});
}

void Api::stop_waiting() {
  // Answering may end a visit, which takes the lock.
  std::vector<CallPtr> calls;
  {
    MutexLock lock(mutex_);
    for (Visit* visit : waiting_) calls.push_back(visit->call);
  }
  Error error{ErrorCode::kCommitUnknown,
              "this daemon stops; what was asked for goes on without it, so ask again when it is back"};
  for (const CallPtr& call : calls) call->exchange().answer(problem(error));
}

void Api::answer(Visit& visit, Result<Answer> answer) {
  Response response = answer ? to_response(std::move(*answer)) : refusal(visit.route, answer.error());
  int status = response.status;
  visit.call->exchange().answer(std::move(response));
  if (options_.on_served)
    options_.on_served({visit.route.method, visit.route.pattern, status, steady_now() - visit.began});
}

Response to_response(Answer answer) {
  Response response{answer.status, std::move(answer.headers), {}};
  if (answer.show_version == Answer::ShowVersion::kETag)
    response.headers.add("ETag", "\"" + format_version(answer.version) + "\"");
  if (answer.show_version == Answer::ShowVersion::kBody) (*answer.body)["version"] = format_version(answer.version);
  response.body = std::move(answer.text);
  if (!answer.body) return response;
  if (!response.headers.find("content-type")) response.headers.add("Content-Type", "application/json");
  response.body = answer.body->to_json();
  return response;
}

}  // namespace perdure::http
