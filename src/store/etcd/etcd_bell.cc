#include "store/etcd/etcd_bell.h"

#include <algorithm>
#include <utility>

#include "runtime/latch.h"
#include "runtime/random.h"

namespace perdure::etcd {
namespace {

constexpr std::chrono::milliseconds kPauseMin{50}, kPauseMax{1'000};

}  // namespace

Bell::Bell(Client& client, const Layout& layout)
    : client_(client), layout_(layout), name_(encode_version({random_seed()})) {}

Bell::~Bell() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    ending_changed_.notify_all();
  }
  client_.stop_watching();
  thread_.join();
}

void Bell::listen(remote::Bell bell) {
  const bool wanted = static_cast<bool>(bell);
  {
    MutexLock lock(ringing_);
    bell_.swap(bell);
  }
  MutexLock lock(mutex_);
  if (!wanted || std::exchange(started_, true)) return;
  thread_.start("perdure-etcd", [this] { run(); });
}

void Bell::ask_for_turn() {
  // Whether it got through does not matter.
  (void)client_.write({.then = {Put{layout_.turn(), name_}}});
}

void Bell::heard(const KeyValue* row) {
  // Nothing is known of what came before the stream.
  if (!row) return ring({});
  if (row->key == layout_.turn()) {
    if (row->value != name_) ring({.turn_wanted = true});
    return;
  }
  // A value that cannot be read is as good as none.
  ring({.reached = decode_end(row->value).value_or(remote::LogEnd{}).version});
}

void Bell::ring(remote::Ring ring) {
  MutexLock lock(ringing_);
  if (bell_) bell_(ring);
}

void Bell::run() {
  auto pause = kPauseMin;
  for (;;) {
    client_.watch(layout_.turn(), layout_.version(), [&](const KeyValue* row) {
      pause = kPauseMin;
      heard(row);
    });
    MutexLock lock(mutex_);
    for (SteadyTime until = steady_now() + pause; !ending_ && steady_now() < until;)
      ending_changed_.wait_until(lock, until);
    if (ending_) return;
    pause = std::min(pause * 2, kPauseMax);
  }
}

}  // namespace perdure::etcd
