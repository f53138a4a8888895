// A run, as its handler sees the event that it is.
#include "base/rfc3339.h"
#include "perdure/debounce.h"

namespace perdure {
namespace {

std::unexpected<Error> no_run(const Job& job) {
  return fail(ErrorCode::kInvalidArgument, "event " + to_string(job.id()) + " of the worker " + job.event().worker +
                                               " is not the run of a debouncer; give it a worker of its own");
}

Result<WallTime> time_of(const Value* value) {
  const std::string* text = value != nullptr ? value->as_text() : nullptr;
  if (text == nullptr) return fail(ErrorCode::kInvalidArgument, "a time is missing");
  return parse_rfc3339(*text);
}

}  // namespace

Result<DebounceRun> DebounceRun::of(Job& job) {
  const Value& value = job.value();
  const Value* debouncer = value.find("debouncer");
  const Value* key = value.find("key");
  const Value* count = value.find("count");
  auto first = time_of(value.find("first")), latest = time_of(value.find("latest"));
  bool good = job.event().module == "DEBOUNCE" && debouncer != nullptr && debouncer->is_text() && key != nullptr &&
              key->is_text() && count != nullptr && count->is_integer() && first && latest;
  if (!good) return no_run(job);
  DebounceRun run;
  run.job_ = &job;
  run.debouncer_ = *debouncer->as_text();
  run.key_ = *key->as_text();
  run.count_ = static_cast<std::uint64_t>(*count->as_integer());
  run.first_ = *first;
  run.latest_ = *latest;
  if (const Value* payload = value.find("payload")) run.payload_ = *payload;
  if (const Value* payloads = value.find("payloads"); payloads != nullptr && payloads->is_list())
    run.payloads_ = *payloads->as_list();
  return run;
}

Result<void> Debouncers::work(Queue& queue, std::string_view worker, RunHandler handler, RunOptions options) {
  auto run = [handler = std::move(handler), pending = std::move(options.pending)](Job& job) -> Result<Value> {
    auto begun = DebounceRun::of(job);
    if (!begun) {
      job.give_up();
      return std::unexpected(std::move(begun.error()));
    }
    if (pending) {
      auto any = pending(begun->key());
      if (!any) return std::unexpected(std::move(any.error()));
      if (!*any) return Value();
    }
    return handler(*begun);
  };
  return queue.work(worker, std::move(run), {.concurrency = options.concurrency, .timeout = options.timeout});
}

}  // namespace perdure
