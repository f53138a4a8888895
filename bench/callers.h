// What the benchmarks of the parts above the store share: a fresh store, and callers that keep it busy.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "harness.h"
#include "perdure/error.h"

namespace perdure::bench {

/// The value of a result that must be good; ends the program otherwise.
template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "bench: %s\n", to_string(result.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

inline std::string fresh_url(const Settings& settings) {
  std::string directory = settings.directory + "/store";
  std::filesystem::remove_all(directory);
  return "lmdb:" + directory;
}

/// A fixed number of callers, each of which begins anew in the callback of what it did before.
class Callers {
 public:
  /// Does one operation of a caller and calls `done` at its end.
  using Operation = std::function<void(int caller, std::function<void()> done)>;

  explicit Callers(Operation operation) : operation_(std::move(operation)) {}

  Sample run(int callers, std::chrono::milliseconds duration) {
    auto start = Clock::now();
    end_ = start + duration;
    running_ = callers;
    for (int i = 0; i < callers; ++i) next(i);
    finished_.acquire();
    Sample sample;
    sample.elapsed = Clock::now() - start;
    sample.operations = latencies_.size();
    sample.latencies = std::move(latencies_);
    return sample;
  }

 private:
  void next(int caller) {
    auto begun = Clock::now();
    operation_(caller, [this, caller, begun] {
      auto now = Clock::now();
      {
        std::lock_guard lock(mutex_);
        latencies_.push_back(now - begun);
      }
      if (now < end_)
        next(caller);
      else if (--running_ == 0)
        finished_.release();
    });
  }

  const Operation operation_;
  Clock::time_point end_;
  std::atomic<int> running_ = 0;
  std::mutex mutex_;
  std::vector<Clock::duration> latencies_;
  std::binary_semaphore finished_{0};
};

}  // namespace perdure::bench
