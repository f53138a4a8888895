// /v1/{space}/workers
#include <set>

#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/event_json.h"
#include "http/idempotency.h"
#include "http/units.h"
#include "queue/settle.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

constexpr Duration kWaitMax = std::chrono::minutes(5);

Value describe(Daemon& daemon, Reader& reader, const std::string& space, const std::string& worker) {
  Value out = worker_json(daemon.node.queue().in(space).worker(reader, worker));
  auto push = daemon.pushers.get(reader, space, worker);
  if (!push) return out;
  out["url"] = push->url;
  // A secret is written, and never shown.
  out["signed"] = !push->secret.empty();
  out["concurrency"] = push->concurrency;
  out["timeout"] = format_duration(push->timeout);
  return out;
}

bool has_settings(Reader& reader, const std::string& space, const std::string& worker) {
  SystemAccess access(reader);
  return reader.get(queue::settings_key(queue::worker_prefix(space, worker))).has_value();
}

/// What makes it a push worker, if there is a URL. A secret that is not given stays as it was, since nobody can read
/// it.
std::optional<PushSettings> read_push(Fields& fields, const std::optional<PushSettings>& before) {
  auto url = fields.text("url");
  auto secret = fields.text("secret");
  auto concurrency = fields.integer("concurrency", 1, 1'000);
  auto timeout = fields.duration("timeout");
  (void)fields.any("signed");
  if (!url) {
    for (const char* name : {"secret", "concurrency", "timeout"})
      if (fields.has(name)) fields.refuse(name, "is for events that are pushed; give a 'url' too");
    return std::nullopt;
  }
  PushSettings push{.url = *url, .secret = secret.value_or(before ? before->secret : "")};
  if (concurrency) push.concurrency = static_cast<unsigned>(*concurrency);
  push.timeout = timeout.value_or(push.timeout);
  return push;
}

Result<Answer> list_workers(Daemon& daemon, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return std::unexpected(std::move(page.error()));
  auto names = daemon.node.queue().in(call.space()).workers(txn, {.limit = page->limit, .after = page->after});
  Value::List items;
  for (const std::string& name : names) items.push_back(describe(daemon, txn, call.space(), name));
  return list_answer(std::move(items), names.size() == page->limit ? names.back() : "");
}

Result<Answer> get_worker(Daemon& daemon, Transaction& txn, const Call& call) {
  const std::string& worker = call.param("worker");
  if (auto good = session::check_short_name(worker, "the worker"); !good)
    return std::unexpected(std::move(good.error()));
  return ok(describe(daemon, txn, call.space(), worker));
}

Result<Answer> set_worker(Daemon& daemon, Transaction& txn, const Call& call) {
  const std::string& worker = call.param("worker");
  Fields fields(call.body, "the worker");
  WorkerSettings settings;
  settings.retry = read_retry(fields, "retry").value_or(settings.retry);
  settings.rate = fields.rate("rate");
  settings.limit_per_key =
      static_cast<std::uint32_t>(fields.integer("limit_per_key", 1, 1'000).value_or(settings.limit_per_key));
  settings.retention = fields.duration("retention").value_or(settings.retention);
  settings.losses_max = static_cast<int>(fields.integer("losses_max", 0, 1'000'000).value_or(settings.losses_max));
  auto push = read_push(fields, daemon.pushers.get(txn, call.space(), worker));
  // What GET adds is no setting; a worker can be put back as it was read.
  for (const char* shown : {"worker", "state", "rules", "counts", "oldest", "completed", "failed", "dropped",
                            "cancelled", "lost", "served_by"})
    (void)fields.any(shown);
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  Queue queue = daemon.node.queue().in(call.space());
  bool is_new = !has_settings(txn, call.space(), worker);
  queue.configure(txn, worker, settings);
  daemon.pushers.set(txn, call.space(), worker, push);
  return Answer{.status = is_new ? 201 : 200, .body = describe(daemon, txn, call.space(), worker)};
}

Result<Answer> unset_worker(Daemon& daemon, Transaction& txn, const Call& call) {
  daemon.node.queue().in(call.space()).configure(txn, call.param("worker"), std::nullopt);
  daemon.pushers.set(txn, call.space(), call.param("worker"), std::nullopt);
  return no_content();
}

Result<Answer> add_rule(Daemon& daemon, Transaction& txn, const Call& call, Rule::Type type) {
  Fields fields(call.body, "the rule");
  RuleOptions options{.reason = fields.text("reason").value_or(""),
                      .by = fields.text("by").value_or("api"),
                      .until = fields.time("until")};
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  daemon.node.queue().in(call.space()).add_rule(txn, call.param("worker"), type, std::move(options));
  return ok(describe(daemon, txn, call.space(), call.param("worker")));
}

Result<Answer> remove_rule(Daemon& daemon, Transaction& txn, const Call& call, Rule::Type type) {
  Fields fields(call.body, "the request");
  // Why it was taken back is not kept, but may be said.
  for (const char* name : {"reason", "by", "until"}) (void)fields.text(name);
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  daemon.node.queue().in(call.space()).remove_rule(txn, call.param("worker"), type);
  return ok(describe(daemon, txn, call.space(), call.param("worker")));
}

Value claims_json(const std::vector<Claimed>& claimed) {
  Value::List items;
  for (const Claimed& each : claimed) items.push_back(claimed_json(each));
  return Value::Map{{"items", std::move(items)}};
}

void claim_now(Daemon& daemon, const Call& call, const ClaimOptions& options, Done done) {
  daemon.node.queue()
      .in(call.space())
      .claim_async(call.param("worker"), options,
                   [done = std::move(done)](Result<std::vector<Claimed>> claimed) mutable {
                     if (!claimed) return done(wrong(claimed));
                     done(ok(claims_json(*claimed)));
                   });
}

/// Answers with what is kept; otherwise `otherwise` does.
void answer_kept(Node& node, const IdempotencyKey& key, Done done, std::move_only_function<void(Done)> otherwise) {
  auto look = [&node, key](Transaction& txn) { return find_kept(txn, key, node.now()); };
  auto found = [key, done = std::move(done),
                otherwise = std::move(otherwise)](Result<std::optional<Kept>> kept) mutable {
    if (!kept) return done(wrong(kept));
    if (*kept) return done(answer_of(std::move(**kept), key.key));
    otherwise(std::move(done));
  };
  node.store().transact_async(std::move(look), std::move(found));
}

/// Keeps the answer in the transaction that claims. The tokens get their version with that commit, which is also the
/// version of the row that is kept: so a repeat can say what they are.
void claim_once(Daemon& daemon, const CallPtr& call, ClaimOptions options, const IdempotencyKey& key, Done done) {
  Node& node = daemon.node;
  options.also = [&node, key](Transaction& txn, const std::vector<Claimed>& claimed) {
    auto kept = in_txn(txn, find_kept(txn, key, node.now()));
    if (kept)
      SystemAccess(txn).refuse({ErrorCode::kWrongState, "a claim with this Idempotency-Key was answered meanwhile"});
    Answer answer = ok(claims_json(claimed));
    answer.show_version = Answer::ShowVersion::kTokens;
    keep(txn, key, {.answer = std::move(answer)}, node.now());
  };
  answer_kept(node, key, std::move(done), [&daemon, call, options, key](Done answer) mutable {
    auto claimed = [&daemon, key, answer = std::move(answer)](Result<Answer> result) mutable {
      if (result || result.error().code != ErrorCode::kWrongState) return answer(std::move(result));
      // The same claim was repeated while it waited, and another has its answer.
      answer_kept(daemon.node, key, std::move(answer),
                  [error = result.error()](Done none) { none(std::unexpected(error)); });
    };
    claim_now(daemon, *call, options, std::move(claimed));
  });
}

void claim(Daemon& daemon, const CallPtr& call, Done done) {
  Fields fields(call->body, "the claim");
  ClaimOptions options;
  options.max = static_cast<std::size_t>(fields.integer("max", 1, 1'000).value_or(10));
  options.wait = fields.duration("wait").value_or(Duration::zero());
  options.lock = fields.duration("lock").value_or(kLockDefault);
  if (options.wait > kWaitMax) fields.refuse("wait", "is at most 5m; claim again after that");
  if (auto good = fields.finish(); !good) return done(wrong(good));
  // Nobody may claim for a client that has hung up.
  if (options.wait > Duration::zero()) options.cancel = call->exchange().gone();
  auto key = IdempotencyKey::of(*call);
  if (!key) return done(wrong(key));
  if (*key) return claim_once(daemon, call, options, **key, std::move(done));
  claim_now(daemon, *call, options, std::move(done));
}

/// One end of a claim, of those that are settled together.
struct Ending {
  enum class How { kComplete, kFail, kExtend, kRelease };
  How how = How::kComplete;
  Uuid id = {};
  Token token = {};
  Value result = {};
  std::string error = {};
  FailOptions on_failure = {};
  Duration lock = kLockDefault;
};

Result<Ending> read_ending(Ending::How how, const Value& value, const std::string& what) {
  Fields fields(value, what);
  Ending ending{.how = how};
  auto id = fields.uuid("id");
  auto token = fields.token("token");
  if (!id) fields.refuse("id", "is missing");
  if (!token) fields.refuse("token", "is missing");
  if (how == Ending::How::kComplete)
    if (const Value* result = fields.any("result")) ending.result = *result;
  if (how == Ending::How::kFail) {
    ending.error = fields.text("error").value_or("failed without saying why");
    ending.on_failure = read_fail_options(fields);
  }
  if (how == Ending::How::kExtend) ending.lock = fields.duration("lock").value_or(kLockDefault);
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  ending.id = *id;
  ending.token = *token;
  return ending;
}

Result<std::vector<Ending>> read_endings(Fields& fields) {
  static constexpr std::pair<const char*, Ending::How> kLists[] = {{"complete", Ending::How::kComplete},
                                                                   {"fail", Ending::How::kFail},
                                                                   {"extend", Ending::How::kExtend},
                                                                   {"release", Ending::How::kRelease}};
  std::vector<Ending> endings;
  std::set<Uuid> seen;
  for (const auto& [name, how] : kLists) {
    const Value::List* list = fields.list(name);
    for (std::size_t i = 0; list && i < list->size(); ++i) {
      auto ending = read_ending(how, (*list)[i], std::string(name) + " " + std::to_string(i + 1));
      if (!ending) return std::unexpected(std::move(ending.error()));
      if (!seen.insert(ending->id).second)
        return fail(ErrorCode::kInvalidArgument, "event " + to_string(ending->id) + " is settled twice in one request");
      endings.push_back(std::move(*ending));
    }
  }
  return endings;
}

/// Whether the claim is held, or has ended in this very way before: then it is settled, and there is nothing to do.
enum class Standing { kHeld, kSettled, kStale };

Standing look_at(Transaction& txn, const std::string& space, const Ending& ending) {
  SystemAccess access(txn);
  auto found = queue::find_claim(txn, space, {ending.id, ending.token.stamp});
  if (found.standing == queue::Standing::kHeld) return Standing::kHeld;
  if (found.standing != queue::Standing::kEnded) return Standing::kStale;
  bool same = (ending.how == Ending::How::kComplete && found.how == EndedEvent::How::kCompleted) ||
              (ending.how == Ending::How::kFail && found.how == EndedEvent::How::kDropped);
  return same ? Standing::kSettled : Standing::kStale;
}

Value settle_one(Queue& queue, Transaction& txn, Ending& ending) {
  Value::Map out{{"id", to_string(ending.id)}, {"ok", true}};
  switch (ending.how) {
    case Ending::How::kComplete:
      queue.complete(txn, ending.id, ending.token, std::move(ending.result));
      break;
    case Ending::How::kFail:
      queue.fail(txn, ending.id, ending.token, std::move(ending.error), ending.on_failure);
      break;
    case Ending::How::kExtend:
      out.emplace("locked_until", format_time(queue.extend(txn, ending.id, ending.token, ending.lock)));
      break;
    case Ending::How::kRelease:
      queue.release(txn, ending.id, ending.token);
      break;
  }
  return out;
}

/// All in one transaction: with "atomic" one that is stale refuses all, otherwise it is answered as such.
Result<Answer> settle(Node& node, Transaction& txn, const Call& call) {
  Fields fields(call.body, "the request");
  auto endings = read_endings(fields);
  bool atomic = fields.boolean("atomic").value_or(false);
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  if (!endings) return std::unexpected(std::move(endings.error()));
  Queue queue = node.queue().in(call.space());
  Value::List items;
  for (Ending& ending : *endings) {
    Standing standing = atomic ? Standing::kHeld : look_at(txn, call.space(), ending);
    if (standing == Standing::kHeld) {
      items.push_back(settle_one(queue, txn, ending));
      continue;
    }
    Value::Map out{{"id", to_string(ending.id)}, {"ok", standing == Standing::kSettled}};
    if (standing == Standing::kStale)
      out.emplace("error", Value::Map{{"code", "stale_token"}, {"message", queue::stale_claim(ending.id).message}});
    items.push_back(std::move(out));
  }
  return ok(Value::Map{{"items", std::move(items)}});
}

Result<Answer> list_dead(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return std::unexpected(std::move(page.error()));
  auto found =
      node.queue()
          .in(call.space())
          .list(
              txn,
              {.worker = call.param("worker"), .state = EventState::kDead, .after = page->after, .limit = page->limit});
  if (!found) return std::unexpected(std::move(found.error()));
  Value::List items;
  for (const Event& event : found->events) items.push_back(event_json(event));
  return list_answer(std::move(items), std::move(found->next));
}

Result<Answer> redrive(Node& node, const Call& call) {
  Fields fields(call.body, "the request");
  RedriveOptions options{.rate = fields.rate("rate")};
  bool all = fields.boolean("all").value_or(false);
  const Value::List* ids = fields.list("ids");
  for (std::size_t i = 0; ids && i < ids->size(); ++i) {
    const std::string* text = (*ids)[i].as_text();
    auto id = text ? Uuid::parse(*text) : fail(ErrorCode::kInvalidArgument, "'ids' holds what is no id");
    if (!id) return std::unexpected(std::move(id.error()));
    options.ids.push_back(*id);
  }
  if (all == (ids != nullptr)) fields.refuse("ids", "or \"all\": true must be given, and not both");
  if (auto good = fields.finish(); !good) return std::unexpected(std::move(good.error()));
  if (!all && options.ids.empty()) return ok(Value::Map{{"redriven", 0}});
  auto count = node.queue().in(call.space()).redrive(call.param("worker"), std::move(options));
  if (!count) return std::unexpected(std::move(count.error()));
  return ok(Value::Map{{"redriven", *count}});
}

Result<Answer> cancel_events(Node& node, const Call& call) {
  std::optional<EventState> state;
  if (auto name = call.query("state")) {
    auto known = read_state(*name);
    if (!known) return std::unexpected(std::move(known.error()));
    state = *known;
  }
  auto count = node.queue().in(call.space()).cancel_all(call.param("worker"), state);
  if (!count) return std::unexpected(std::move(count.error()));
  return ok(Value::Map{{"cancelled", *count}});
}

Result<Answer> list_attempts(Node& node, Transaction& txn, const Call& call) {
  Value::List items;
  for (const AttemptRecord& each : node.queue().in(call.space()).attempts(txn, call.param("worker")))
    items.push_back(attempt_json(each));
  return list_answer(std::move(items), "");
}

}  // namespace

std::vector<Route> worker_routes(Daemon& daemon) {
  Node& node = daemon.node;
  auto look = [&daemon](auto handler) {
    return InTransaction{[&daemon, handler](Transaction& txn, const Call& call) { return handler(daemon, txn, call); }};
  };
  auto change = [&daemon](auto handler) {
    return InTransaction{[&daemon, handler](Transaction& txn, const Call& call) { return handler(daemon, txn, call); },
                         perdure::Body::kShort, Reserve::kMayUse};
  };
  auto rule = [&change](auto handler, Rule::Type type) {
    return change(
        [handler, type](Daemon& at, Transaction& txn, const Call& call) { return handler(at, txn, call, type); });
  };
  const std::string one = "/v1/{space}/workers/{worker}";
  return {
      {"GET", "/v1/{space}/workers", Load::kRead, look(list_workers)},
      {"GET", one, Load::kRead, look(get_worker)},
      {"PUT", one, Load::kLess, change(set_worker)},
      {"DELETE", one, Load::kLess, change(unset_worker)},
      {"POST", one + "/pause", Load::kLess, rule(add_rule, Rule::Type::kPause)},
      {"POST", one + "/unpause", Load::kLess, rule(remove_rule, Rule::Type::kPause)},
      {"POST", one + "/block", Load::kLess, rule(add_rule, Rule::Type::kBlock)},
      {"POST", one + "/unblock", Load::kLess, rule(remove_rule, Rule::Type::kBlock)},
      {"POST", one + "/claim", Load::kPoll,
       Asynchronous{[&daemon](const CallPtr& call, Done done) { claim(daemon, call, std::move(done)); },
                    Asynchronous::Key::kItsOwn}},
      {"POST", one + "/settle", Load::kLess, changes(node, settle)},
      {"GET", one + "/dead", Load::kRead, looks(node, list_dead)},
      {"POST", one + "/dead/redrive", Load::kLess, blocks(node, redrive)},
      {"GET", one + "/attempts", Load::kRead, looks(node, list_attempts)},
      {"DELETE", one + "/events", Load::kLess, blocks(node, cancel_events)},
  };
}

}  // namespace perdure::http
