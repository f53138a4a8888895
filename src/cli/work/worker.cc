#include "cli/work/worker.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/duration.h"
#include "cli/work/orphans.h"
#include "runtime/latch.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

// How long the end waits for the daemon to take the last settlements.
constexpr Duration kLastSettles = 15s;
// How long the end waits for what was killed.
constexpr Duration kLastDeaths = 5s;

}  // namespace

Worker::Worker(Context& context, WorkOptions options) : context_(context), options_(std::move(options)) {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_BLOCK, &mask, &mask_before_);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = ::signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
  adopt_orphans();
}

Worker::~Worker() {
  for (auto& [pid, run] : runs_) run.child->signal_group(SIGKILL);
  kill_leftovers();
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

OrFailure<void> Worker::run() {
  while (!finished()) {
    reap();
    check_times();
    claim();
    settle();
    if (finished()) break;
    wait();
  }
  kill_leftovers();
  if (fatal_) return std::unexpected(std::move(*fatal_));
  if (!settlements_.empty() || under_way_) {
    std::size_t left = settlements_.size() + (under_way_ ? under_way_->items.size() : 0);
    return give_up(kExitUnavailable,
                   "the daemon was not there to be told how " + std::to_string(left) + " events ended",
                   "they will be given out again");
  }
  say("completed " + std::to_string(completed_) + ", failed " + std::to_string(failed_));
  if (phase_ == Phase::kAborting) return give_up(kExitError, "");
  return {};
}

bool Worker::finished() const {
  if (phase_ == Phase::kWorking || !runs_.empty()) return false;
  if (settlements_.empty() && !under_way_) return true;
  return steady_now() >= give_up_at_;
}

SteadyTime Worker::next_moment() const {
  SteadyTime next = std::min(claims_.busy() ? claims_.deadline : SteadyTime::max(),
                             settles_.busy() ? settles_.deadline : SteadyTime::max());
  next = std::min(next, give_up_at_);
  bool has_room = phase_ == Phase::kWorking && runs_.size() < options_.concurrency;
  if (!claims_.busy() && has_room) next = std::min(next, claims_.not_before);
  if (!settles_.busy() && (under_way_ || !settlements_.empty())) next = std::min(next, settles_.not_before);
  for (const auto& [pid, run] : runs_) next = std::min({next, run.extend_at, run.stop_at, run.kill_at});
  return next;
}

void Worker::wait() {
  std::vector<pollfd> polled = {{signals_, POLLIN, 0}};
  for (const Line* line : {&claims_, &settles_})
    if (line->busy()) polled.push_back({line->connection->fd(), line->connection->events(), 0});
  for (const auto& [pid, run] : runs_) {
    const Child& child = *run.child;
    if (child.input_fd() >= 0) polled.push_back({child.input_fd(), POLLOUT, 0});
    if (child.output_fd() >= 0) polled.push_back({child.output_fd(), POLLIN, 0});
    if (child.error_fd() >= 0) polled.push_back({child.error_fd(), POLLIN, 0});
  }
  (void)::poll(polled.data(), polled.size(), http::poll_timeout(next_moment()));
  read_signals();
  for (auto& [pid, run] : runs_) run.child->pump();
  if (auto response = advance(settles_)) read_settled(*response);
  if (auto response = advance(claims_)) read_claim(*response);
}

void Worker::read_signals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) on_stop_signal();
}

void Worker::on_stop_signal() {
  if (phase_ == Phase::kAborting) return;
  if (phase_ == Phase::kWorking) {
    phase_ = Phase::kFinishing;
    stop_claiming();
    if (!runs_.empty())
      say("finishing what runs (" + std::to_string(runs_.size()) + "); once more, and it is killed and given back");
  } else {
    phase_ = Phase::kAborting;
    for (auto& [pid, run] : runs_) {
      run.stop = Stop::kShutdown;
      run.child->signal_group(SIGKILL);
    }
  }
  if (runs_.empty()) give_up_at_ = deadline_after(kLastSettles);
}

// An answer that is here already holds events which nobody else will get until their locks end: give them back.
void Worker::stop_claiming() {
  if (claims_.busy())
    if (auto response = advance(claims_)) read_claim(*response);
  claims_.connection.reset();
}

void Worker::check_times() {
  SteadyTime now = steady_now();
  for (auto& [pid, run] : runs_) {
    if (now >= run.extend_at && run.stop != Stop::kLost) {
      settlements_.add({Settlement::Kind::kExtend, run.id, run.token, {{"lock", duration_text(options_.lock)}}});
      run.extend_at = now + options_.lock / 2;
    }
    if (now >= run.stop_at) tell_to_stop(run, Stop::kTimeout);
    if (now >= run.kill_at) {
      run.child->signal_group(SIGKILL);
      run.kill_at = now + 1s;
    }
  }
}

void Worker::tell_to_stop(Run& run, Stop why) {
  run.stop_at = SteadyTime::max();
  if (run.stop != Stop::kNot) return;
  run.stop = why;
  run.child->signal_group(SIGTERM);
  run.kill_at = deadline_after(options_.kill_after);
}

// All that is left is killed and waited for, but not for ever: one in the middle of a read from a broken disk cannot
// die.
void Worker::kill_leftovers() {
  SteadyTime deadline = deadline_after(kLastDeaths);
  auto nobody = [](const auto&) { return false; };
  while (true) {
    reap();
    if (children_of_this_process().empty() || steady_now() >= deadline) return;
    (void)kill_orphans(nobody, nobody);
    pollfd one = {signals_, POLLIN, 0};
    (void)::poll(&one, 1, 50);
    std::array<char, sizeof(signalfd_siginfo)> dropped;
    while (::read(signals_, dropped.data(), dropped.size()) > 0) {
    }
  }
}

}  // namespace perdure::cli
