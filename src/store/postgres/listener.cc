#include "store/postgres/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "runtime/random.h"
#include "store/postgres/schema.h"

namespace perdure::postgres {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds(50), kPauseMax = std::chrono::seconds(1);
/// After so long without a word the server is asked whether it is there: notifications may be few.
constexpr Duration kQuiet = std::chrono::seconds(5);

const Lane kLane = {.name = "listen", .patience = std::chrono::seconds(5), .statement_limit = std::chrono::seconds(4)};

constexpr std::string_view kPlea = "turn ";

Version version_in(const char* text) {
  Version version;
  std::from_chars(text, text + std::strlen(text), version.number);
  return version;
}

}  // namespace

Listener::Listener(const Target& target, Reach& reach, Pool& yields)
    : target_(target),
      reach_(reach),
      yields_(yields),
      plea_(std::string(kPlea) + std::to_string(random_seed())),
      end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Listener::~Listener() {
  std::uint64_t one = 1;
  (void)!write(end_, &one, sizeof one);
  thread_.join();
  close(end_);
}

void Listener::listen(remote::Bell bell) {
  // The bell is rung under the lock, so that one that is ringing is waited for.
  MutexLock lock(mutex_);
  bell_ = std::move(bell);
  if (!bell_ || started_) return;
  started_ = true;
  thread_.start("perdure-pg-bell", [this] { loop(); });
}

void Listener::ring(remote::Ring ring) {
  MutexLock lock(mutex_);
  if (bell_) bell_(ring);
}

Listener::Waited Listener::wait(int socket, Duration time) {
  pollfd polled[] = {{end_, POLLIN, 0}, {socket, POLLIN, 0}};
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  int ready = poll(polled, 2, static_cast<int>(ms));
  if (polled[0].revents != 0) return Waited::kEnd;
  return ready > 0 ? Waited::kHeard : Waited::kQuiet;
}

void Listener::loop() {
  Duration pause = kPauseMin;
  while (wait(-1, Duration::zero()) != Waited::kEnd) {
    bool crowded = false;
    auto connection = connect_ready(target_, kLane, reach_, &crowded);
    if (connection) {
      pause = kPauseMin;
      hear(**connection);
    }
    if (crowded && yields_.give_way()) pause = kPauseMin;
    connection = {};
    if (wait(-1, pause) == Waited::kEnd) return;
    pause = std::min(pause * 2, kPauseMax);
  }
}

void Listener::hear(Connection& connection) {
  if (!connection.run(text(listen_statement(target_)))) return;
  // What was notified before now has not been heard.
  ring({});
  for (;;) {
    Waited waited = wait(PQsocket(connection.raw()), kQuiet);
    if (waited == Waited::kEnd) return;
    if (waited == Waited::kHeard && PQconsumeInput(connection.raw()) != 1) return;
    if (waited == Waited::kQuiet && !connection.run(prepared(kVersion))) return;
    Version newest;
    bool turn_wanted = false;
    while (PGnotify* notified = PQnotifies(connection.raw())) {
      std::string_view said = notified->extra;
      turn_wanted |= said.starts_with(kPlea) && said != plea_;
      newest = std::max(newest, version_in(notified->extra));
      PQfreemem(notified);
    }
    if (newest.number > 0) ring({.reached = newest});
    if (turn_wanted) ring({.turn_wanted = true});
  }
}

}  // namespace perdure::postgres
