#include "store/etcd/etcd_bell.h"

#include <algorithm>
#include <utility>

#include "runtime/latch.h"

namespace perdure::etcd {
namespace {

constexpr std::chrono::milliseconds kPauseMin{50}, kPauseMax{1'000};

}  // namespace

Bell::~Bell() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    ending_changed_.notify_all();
  }
  client_.stop_watching();
  thread_.join();
}

void Bell::listen(std::function<void(Version)> bell) {
  const bool wanted = static_cast<bool>(bell);
  {
    MutexLock lock(ringing_);
    bell_.swap(bell);
  }
  MutexLock lock(mutex_);
  if (!wanted || std::exchange(started_, true)) return;
  thread_.start("perdure-etcd", [this] { run(); });
}

void Bell::ring(Version reached) {
  MutexLock lock(ringing_);
  if (bell_) bell_(reached);
}

void Bell::run() {
  auto pause = kPauseMin;
  for (;;) {
    client_.watch(layout_.version(), [&](const KeyValue* row) {
      pause = kPauseMin;
      // Nothing is known of what came before the stream: that is version 0, as for a value that cannot be read.
      ring(row ? decode_version(row->value).value_or(Version{}) : Version{});
    });
    MutexLock lock(mutex_);
    for (SteadyTime until = steady_now() + pause; !ending_ && steady_now() < until;)
      ending_changed_.wait_until(lock, until);
    if (ending_) return;
    pause = std::min(pause * 2, kPauseMax);
  }
}

}  // namespace perdure::etcd
