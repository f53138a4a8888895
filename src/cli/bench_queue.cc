// The loads of `perdure bench`, in this process. The callers are chains of callbacks: each emits again when its last
// emit is durable.
#include "cli/bench_load.h"
#include "runtime/latch.h"
#include "runtime/mutex.h"

namespace perdure::cli {
namespace {

class Callers : public std::enable_shared_from_this<Callers> {
 public:
  Callers(Queue& queue, const Load& load, Duration length)
      : queue_(queue), load_(load), began_(steady_now()), end_(began_ + length), busy_(load.callers) {}

  OrFailure<Measured> run() {
    for (std::size_t i = 0; i < load_.callers; ++i) emit();
    all_done_.wait();
    MutexLock lock(mutex_);
    if (problem_) return std::unexpected(failure_of(*problem_));
    measured_.elapsed = steady_now() - began_;
    return std::move(measured_);
  }

 private:
  void emit() {
    std::vector<NewEvent> events(load_.at_once, NewEvent{kBenchWorker, Value::Map{{"n", 1}}, {}});
    queue_.emit_many_async(std::move(events), [self = shared_from_this(), began = steady_now()](const auto& emitted) {
      if (self->take(emitted, began)) self->emit();
    });
  }

  /// Whether its caller goes on.
  bool take(const Result<std::vector<Emitted>>& emitted, SteadyTime began) {
    SteadyTime now = steady_now();
    MutexLock lock(mutex_);
    if (!emitted && !problem_) problem_ = emitted.error();
    if (emitted) {
      measured_.events += emitted->size();
      measured_.latencies.push_back(now - began);
    }
    if (!problem_ && now < end_) return true;
    if (--busy_ == 0) all_done_.set();
    return false;
  }

  Queue& queue_;
  const Load load_;
  const SteadyTime began_, end_;
  Latch all_done_;
  Mutex mutex_;
  std::size_t busy_ PERDURE_GUARDED_BY(mutex_);
  std::optional<Error> problem_ PERDURE_GUARDED_BY(mutex_);
  Measured measured_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace

OrFailure<Measured> measure_queue(Queue& queue, const Load& load, Duration length) {
  return std::make_shared<Callers>(queue, load, length)->run();
}

}  // namespace perdure::cli
