// The programs of the worker, from the claim of an event to its settlement.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cli/duration.h"
#include "cli/work/orphans.h"
#include "cli/work/worker.h"
#include "runtime/latch.h"

namespace perdure::cli {
namespace {

std::string text_at(const Value& item, std::string_view key) {
  const Value* found = item.find(key);
  return found == nullptr || found->is_null() ? "" : cell_of(found);
}

// What a program printed is its result: as JSON if it is that, else as text. Nothing for nothing.
std::optional<Value> result_of(const Child& child) {
  std::string text = child.output();
  if (!child.output_was_cut())
    if (auto json = Value::from_json(text)) return std::move(*json);
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return {};
  return child.output_was_cut() ? text + "…" : text;
}

std::string error_of(const Child& child, const std::string& why) {
  std::string tail = child.error_tail();
  while (tail.ends_with('\n') || tail.ends_with(' ')) tail.pop_back();
  // It may begin in the middle of a character.
  while (!tail.empty() && (tail.front() & 0xc0) == 0x80) tail.erase(0, 1);
  return tail.empty() ? why : why + ": " + tail;
}

}  // namespace

std::vector<std::string> Worker::environment_of(const Value& item, const std::string& mark) const {
  std::vector<std::pair<std::string, std::string>> own = {
      {"PERDURE_EVENT_ID", text_at(item, "id")},     {"PERDURE_ATTEMPT", text_at(item, "attempt")},
      {"PERDURE_WORKER", options_.worker},           {"PERDURE_SPACE", context_.space()},
      {"TRACEPARENT", text_at(item, "traceparent")}, {kMarkVariable, mark}};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::none_of(own, [&](const auto& each) { return each.first == name; })) all.emplace_back(text);
  }
  for (const auto& [name, value] : own)
    if (!value.empty()) all.push_back(name + "=" + value);
  return all;
}

void Worker::start_run(const Value& item) {
  Run run;
  run.id = text_at(item, "id");
  run.token = text_at(item, "token");
  if (phase_ != Phase::kWorking) {
    settlements_.add({Settlement::Kind::kRelease, run.id, run.token});
    return;
  }
  run.mark = std::to_string(::getpid()) + "-" + std::to_string(++run_count_) + "-" + run.id;
  const Value* value = item.find("value");
  ChildSpec spec = {options_.argv, environment_of(item, run.mark),
                    (value == nullptr ? "null" : value->to_json()) + "\n"};
  auto child = Child::start(spec);
  if (!child) {
    // Not the event's fault: it goes back, uncounted, and no other is taken for a while.
    settlements_.add({Settlement::Kind::kRelease, run.id, run.token});
    say("event " + run.id + " is given back: " + child.error().message);
    claims_.back_off = std::clamp<Duration>(claims_.back_off * 2, std::chrono::seconds(1), std::chrono::seconds(30));
    claims_.not_before = deadline_after(claims_.back_off);
    return;
  }
  run.child = std::move(*child);
  SteadyTime now = steady_now();
  run.extend_at = now + options_.lock / 2;
  run.stop_at = deadline_after(options_.timeout);
  run.kill_at = SteadyTime::max();
  runs_.emplace(run.child->pid(), std::move(run));
}

void Worker::reap() {
  bool reaped = false;
  while (true) {
    siginfo_t info = {};
    // It is looked at first and waited for later: until then its group cannot be another's.
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    auto found = runs_.find(info.si_pid);
    if (found != runs_.end()) found->second.child->signal_group(SIGKILL);
    int status = 0;
    (void)::waitpid(info.si_pid, &status, 0);
    reaped = true;
    if (found == runs_.end()) continue;
    end_run(found->second, status);
    runs_.erase(found);
    if (runs_.empty() && phase_ != Phase::kWorking) give_up_at_ = deadline_after(std::chrono::seconds(15));
  }
  if (!reaped) return;
  (void)kill_orphans([&](pid_t process) { return runs_.contains(process); },
                     [&](const std::string& mark) {
                       if (mark.empty()) return !runs_.empty();
                       return std::ranges::any_of(runs_, [&](const auto& each) { return each.second.mark == mark; });
                     });
}

void Worker::end_run(Run& run, int status) {
  const Child& child = *run.child;
  run.child->finish();
  using Kind = Settlement::Kind;
  if (run.stop == Stop::kLost) return;
  if (run.stop == Stop::kShutdown) return settlements_.add({Kind::kRelease, run.id, run.token});
  std::string why;
  if (run.stop == Stop::kTimeout) {
    why = "timed out after " + duration_text(options_.timeout);
  } else if (WIFSIGNALED(status)) {
    why = "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  } else if (WEXITSTATUS(status) != 0) {
    why = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  if (why.empty()) {
    ++completed_;
    Settlement done = {Kind::kComplete, run.id, run.token};
    if (auto result = result_of(child)) done.detail = {"result", std::move(*result)};
    if (options_.verbose) say("event " + run.id + " completed");
    return settlements_.add(std::move(done));
  }
  ++failed_;
  std::string error = error_of(child, why);
  Value shown = error;
  say("event " + run.id + " failed: " + cell_of(&shown));
  settlements_.add({Kind::kFail, run.id, run.token, {{"error", error}}});
}

}  // namespace perdure::cli
