#pragma once

#include <functional>
#include <string>
#include <vector>

namespace perdure::sim {

/// Tells the parent one line; in a worker only.
using Tell = std::function<void(const std::string& line)>;

/// Runs jobs in processes of their own, so that a run that aborts takes only itself down, and so that every core is
/// used.
class Workers {
 public:
  explicit Workers(unsigned at_once) : at_once_(at_once) {}

  /// `work(job, tell)` runs in the child; `hear(job, line)` and `ended(job, how)` in the parent, where `how` is empty
  /// if the child ended well. `tick` is called about once a second.
  void run(std::size_t jobs, const std::function<void(std::size_t, const Tell&)>& work,
           const std::function<void(std::size_t, const std::string&)>& hear,
           const std::function<void(std::size_t, const std::string&)>& ended, const std::function<void()>& tick);

 private:
  const unsigned at_once_;
};

unsigned cores();

}  // namespace perdure::sim
