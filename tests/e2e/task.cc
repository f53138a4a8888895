#include "task.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "child.h"

namespace perdure::e2e {
namespace {

constexpr std::size_t kBigResult = std::size_t{1} << 30;
constexpr std::size_t kBigError = std::size_t{64} << 20;

/// What the tasks do that do not take effect.
Result<Value> misbehave(const Task& task) {
  if (task.what == "kill") {
    ::kill(getpid(), SIGKILL);
    for (;;) ::pause();
  }
  if (task.what == "exit") std::exit(7);
  if (task.what == "throw") throw std::runtime_error("thrown by " + task.id);
  if (task.what == "throw-int") throw 42;
  if (task.what == "fail") return fail(ErrorCode::kUnavailable, "refused by " + task.id);
  if (task.what == "hang")
    for (;;) ::pause();
  if (task.what == "big-error") throw std::runtime_error("large: " + std::string(kBigError, 'e'));
  return fail(ErrorCode::kInvalidArgument, "what is " + task.what);
}

}  // namespace

Result<Value> run_task(Queue queue, Job& job, const std::function<void(const std::string&)>& tell) {
  auto read = job.value_as<Task>();
  if (!read) return std::unexpected(std::move(read.error()));
  Task task = std::move(*read);
  if (tell) {
    tell("began " + task.id);
    job.cancel_signal().then([tell, id = task.id] { tell("cancelled " + id); });
  }
  usleep(static_cast<useconds_t>(task.work_ms * 1000));
  bool takes_effect = task.what == "work" || task.what == "spawn" || task.what == "note" || task.what == "big";
  if (!takes_effect) return misbehave(task);
  job.complete([queue, task, token = job.token(), attempt = job.attempt()](Transaction& txn) mutable -> Result<void> {
    txn.add(effect_key(task.id), 1);
    txn.set(waited_key(task.id), encode_counter(steady_ns() - task.emitted_ns));
    txn.set(attempt_key(task.id), encode_counter(attempt));
    if (task.what == "note") txn.set(claim_key(task.id), std::to_string(token.stamp.version.number));
    if (task.what == "spawn") queue.emit(txn, kTasks, Task{.id = task.id + "-child", .emitted_ns = steady_ns()});
    return {};
  });
  if (tell) tell("ended " + task.id);
  if (task.what == "big") return Value(std::string(kBigResult, 'b'));
  return Value(task.id);
}

}  // namespace perdure::e2e
