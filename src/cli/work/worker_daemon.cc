// What the worker and the daemon say to each other.
#include <algorithm>
#include <utility>

#include "cli/duration.h"
#include "cli/work/worker.h"
#include "runtime/latch.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBackOffMin = 100ms, kBackOffMax = 5s;
constexpr Duration kClaimWait = 20s, kDrainWait = 1s, kPatience = 10s;

bool is_fatal(int status) {
  return status >= 400 && status < 500 && status != 408 && status != 409 && status != 429;
}

}  // namespace

// Whether there is a connection to be had now. It is made without waiting, but for a host that must be looked for.
bool Worker::open(Line& line) {
  if (line.connection != nullptr) return true;
  auto url = context_.daemon().url();
  context_.daemon().forget();
  if (!url) {
    if (url.error().exit_code == kExitUsage) {
      fatal_ = std::move(url.error());
      phase_ = Phase::kFinishing;
      return false;
    }
    postpone(line, url.error().message);
    return false;
  }
  line.connection = std::make_unique<http::PolledConnection>(std::move(*url));
  return true;
}

void Worker::start(Line& line, const Call& call) {
  if (!open(line)) return;
  line.deadline = deadline_after(call.timeout);
  if (auto started = line.connection->start(context_.daemon().request_of(call)); !started)
    postpone(line, started.error().message);
}

std::optional<http::Response> Worker::advance(Line& line) {
  if (!line.busy()) return {};
  auto done = line.connection->advance();
  if (!done) {
    postpone(line, done.error().message);
  } else if (*done) {
    return line.connection->take();
  } else if (steady_now() >= line.deadline) {
    postpone(line, "the daemon does not answer");
  }
  return {};
}

void Worker::postpone(Line& line, const std::string& why) {
  line.connection.reset();
  line.back_off = std::clamp(line.back_off * 2, kBackOffMin, kBackOffMax);
  line.not_before = deadline_after(line.back_off);
  if (!std::exchange(daemon_is_lost_, true)) say(why + "; trying again until it answers");
}

void Worker::answered(Line& line) {
  line.back_off = {};
  line.not_before = {};
  if (std::exchange(daemon_is_lost_, false)) say("the daemon answers again");
}

void Worker::claim() {
  if (phase_ != Phase::kWorking || claims_.busy() || runs_.size() >= options_.concurrency) return;
  if (steady_now() < claims_.not_before) return;
  std::size_t room = std::min<std::size_t>(options_.concurrency - runs_.size(), 1000);
  Duration wait = !options_.drain ? kClaimWait : runs_.empty() ? Duration::zero() : kDrainWait;
  Value::Map body = {{"max", room}, {"wait", duration_text(wait)}, {"lock", duration_text(options_.lock)}};
  Target target = {context_.space(), "workers", options_.worker, "claim"};
  start(claims_, {.method = "POST",
                  .target = target.text(),
                  .body = Value(std::move(body)).to_json(),
                  .timeout = wait + kPatience});
}

void Worker::read_claim(const http::Response& response) {
  if (response.status != 200) {
    Failure failure = failure_of(response);
    if (!is_fatal(response.status)) return postpone(claims_, failure.message);
    fatal_ = std::move(failure);
    on_stop_signal();
    return;
  }
  answered(claims_);
  auto body = Value::from_json(response.body);
  const Value* items = body ? body->find("items") : nullptr;
  if (items == nullptr || !items->is_list()) return postpone(claims_, "the daemon's answer is not a list of events");
  for (const Value& item : *items->as_list()) start_run(item);
  if (options_.drain && items->as_list()->empty() && runs_.empty()) phase_ = Phase::kFinishing;
}

void Worker::settle() {
  if (settles_.busy() || steady_now() < settles_.not_before) return;
  if (!under_way_ && settlements_.empty()) return;
  // A call whose fate is unknown is made again with its key, and gets the answer of the first.
  if (!under_way_) under_way_ = settlements_.take();
  Target target = {context_.space(), "workers", options_.worker, "settle"};
  start(settles_, {.method = "POST",
                   .target = target.text(),
                   .body = under_way_->body,
                   .headers = {{"Idempotency-Key", under_way_->idempotency_key}},
                   .timeout = 2 * kPatience});
}

void Worker::read_settled(const http::Response& response) {
  if (response.status / 100 == 5 || response.status == 429) return postpone(settles_, failure_of(response).message);
  answered(settles_);
  SettleBatch batch = std::move(*under_way_);
  under_way_.reset();
  std::vector<Refusal> refusals;
  auto body = Value::from_json(response.body);
  if (response.status == 200) {
    if (body) refusals = refused(batch, *body);
  } else {
    for (Settlement& item : batch.items) refusals.push_back({std::move(item), failure_of(response)});
  }
  for (const Refusal& refusal : refusals) {
    const Settlement& item = refusal.item;
    if (item.kind != Settlement::Kind::kRelease)
      say("event " + item.id + ": could not " + std::string(name_of(item.kind)) + " it: " + refusal.failure.message);
    if (item.kind != Settlement::Kind::kExtend || refusal.failure.code != "stale_token") continue;
    // Somebody else may have it now: what is done twice should at least not be done at the same time for long.
    for (auto& [pid, run] : runs_)
      if (run.token == item.token) tell_to_stop(run, Stop::kLost);
  }
}

}  // namespace perdure::cli
