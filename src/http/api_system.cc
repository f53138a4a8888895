// What belongs to no space: health, metrics, the state of the daemon, holding, and time in tests.
#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/fields.h"
#include "http/openapi.h"
#include "http/spaces.h"
#include "http/units.h"
#include "runtime/latch.h"

namespace perdure::http {
namespace {

/// Bounded, as every set of labels is: a scrape of a store with more workers leaves the others out.
constexpr std::size_t kWorkersShown = 1'000;

Result<Answer> status(Daemon& daemon, Transaction& txn, const Call&) {
  // That the store can be read is part of the answer.
  std::size_t nodes = Session::list(txn).size();
  return ok(Value::Map{
      {"version", daemon.version},
      {"store", daemon.store},
      {"held", daemon.node.held()},
      {"now", format_time(daemon.node.now())},
      {"uptime", format_duration(std::chrono::floor<std::chrono::seconds>(steady_now() - daemon.started))},
      {"sessions", nodes},
  });
}

Result<Answer> nodes(Daemon&, Transaction& txn, const Call&) {
  Value::List items;
  for (const SessionInfo& each : Session::list(txn))
    items.push_back(Value::Map{{"id", each.id.to_string()},
                               {"name", each.name},
                               {"ttl", format_duration(each.ttl)},
                               {"renewals", number_value(each.renewals)}});
  return list_answer(std::move(items), "");
}

Result<Answer> spaces(Daemon&, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  Value::List items;
  auto names = list_spaces(txn, page->after, page->limit);
  for (const std::string& name : names) items.push_back(Value::Map{{"space", name}});
  return list_answer(std::move(items), names.empty() ? "" : next_after(names.size(), *page, names.back()));
}

struct WorkerSample {
  std::string labels;
  WorkerInfo info;
};

std::vector<WorkerSample> sample_workers(Daemon& daemon, Reader& reader) {
  std::vector<WorkerSample> samples;
  for (const std::string& space : list_spaces(reader, "", kWorkersShown)) {
    Queue queue = daemon.node.queue().in(space);
    for (const std::string& worker : queue.workers(reader, {.limit = kWorkersShown - samples.size()}))
      samples.push_back({Exposition::label("space", space) + "," + Exposition::label("worker", worker),
                         queue.worker(reader, worker)});
    if (samples.size() >= kWorkersShown) break;
  }
  return samples;
}

void write_workers(Exposition& out, const std::vector<WorkerSample>& samples, WallTime now) {
  auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  out.begin("perdure_events", "gauge", "Stored events by state.");
  for (const WorkerSample& each : samples) {
    auto state = [&](const char* name, std::uint64_t count) {
      out.sample("perdure_events", each.labels + "," + Exposition::label("state", name), number(count));
    };
    state("ready", each.info.ready);
    state("scheduled", each.info.scheduled);
    state("running", each.info.running);
    state("dead", each.info.dead);
  }
  out.begin("perdure_attempts_total", "counter", "Attempts and events that came to an end, by how.");
  for (const WorkerSample& each : samples) {
    auto outcome = [&](const char* name, std::uint64_t count) {
      out.sample("perdure_attempts_total", each.labels + "," + Exposition::label("outcome", name), number(count));
    };
    outcome("completed", each.info.completed);
    outcome("failed", each.info.failed);
    outcome("lost", each.info.lost);
  }
  out.begin("perdure_oldest_ready_seconds", "gauge", "Since when the oldest ready event has been ready.");
  for (const WorkerSample& each : samples)
    out.sample("perdure_oldest_ready_seconds", each.labels,
               each.info.oldest ? std::chrono::duration<double>(now - *each.info.oldest).count() : 0);
}

Result<Answer> metrics(Daemon& daemon, Transaction& txn, const Call&) {
  Exposition out;
  out.begin("perdure_build_info", "gauge", "Which perdure this is.");
  out.sample("perdure_build_info", Exposition::label("version", daemon.version), 1);
  out.begin("perdure_held", "gauge", "Whether this daemon dispatches nothing.");
  out.sample("perdure_held", "", daemon.node.held() ? 1 : 0);
  write_workers(out, sample_workers(daemon, txn), daemon.node.now());
  daemon.metrics.write(out);
  Answer answer;
  answer.headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  answer.text = out.take();
  return answer;
}

void advance(Node& node, const CallPtr& call, Done done) {
  Fields fields(call->body, "the request");
  auto by = fields.duration("advance");
  if (!by) fields.refuse("advance", "is missing; say by how much, as in {\"advance\": \"5m\"}");
  if (auto good = fields.finish(); !good) return done(wrong(good));
  node.advance_async(*by, std::chrono::seconds(60), [done = std::move(done)](Result<WallTime> now) mutable {
    if (!now) return done(wrong(now));
    done(ok(Value::Map{{"now", format_time(*now)}}));
  });
}

Answer text_answer(std::string type, std::string text) {
  Answer answer;
  answer.headers.add("Content-Type", std::move(type));
  answer.text = std::move(text);
  return answer;
}

}  // namespace

std::vector<Route> system_routes(Daemon& daemon) {
  auto look = [&daemon](auto handler) {
    return InTransaction{[&daemon, handler](Transaction& txn, const Call& call) { return handler(daemon, txn, call); }};
  };
  auto at_once = [](auto make) { return Asynchronous{[make](const CallPtr&, Done done) { done(make()); }}; };
  auto hold = [&daemon](bool held) {
    return Asynchronous{[&daemon, held](const CallPtr& call, Done done) {
      if (auto good = no_fields(call->body); !good) return done(wrong(good));
      held ? daemon.node.hold() : daemon.node.release();
      done(ok(Value::Map{{"held", daemon.node.held()}}));
    }};
  };
  return {
      {"GET", "/healthz", Load::kLess, at_once([] { return ok(Value::Map{{"status", "ok"}}); })},
      {"GET", "/readyz", Load::kLess, look([](Daemon&, Transaction& txn, const Call&) -> Result<Answer> {
         (void)Session::list(txn, 1);
         return ok(Value::Map{{"status", "ready"}});
       })},
      {"GET", "/metrics", Load::kLess, look(metrics)},
      {"GET", "/v1/_/openapi.json", Load::kRead, at_once([] { return text_answer("application/json", openapi()); })},
      {"GET", "/v1/_/status", Load::kLess, look(status)},
      {"GET", "/v1/_/nodes", Load::kRead, look(nodes)},
      {"GET", "/v1/_/spaces", Load::kRead, look(spaces)},
      {"POST", "/v1/_/hold", Load::kLess, hold(true)},
      {"POST", "/v1/_/release", Load::kLess, hold(false)},
      {"POST", "/v1/_/clock", Load::kWait, waits(daemon.node, advance)},
  };
}

}  // namespace perdure::http
