#pragma once

#include <cstdint>

namespace perdure {

/// SplitMix64: a good 64-bit number out of a counter, so that the state is the number of draws and the seed.
inline constexpr std::uint64_t kRandomStep = 0x9e3779b97f4a7c15;
inline std::uint64_t random_from(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

/// From the machine's own chance: for the schedulers of production.
std::uint64_t random_seed();

/// A stream of numbers that depends on nothing but its seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() { return random_from(state_ += kRandomStep); }

 private:
  std::uint64_t state_;
};

}  // namespace perdure
