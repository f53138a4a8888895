#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace perdure::sim {

/// Finds the number of a thing by its hash, in one flat table. The things themselves stay with the caller, who compares
/// them; 32 bits of the hash beside each number make a needless comparison rare and let the table grow alone.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit HashIndex(std::size_t expected_count) : slots_(std::bit_ceil(expected_count * 2 + 2), Slot{0, kNone}) {}

  /// The number of the thing with this hash for which `same(number)` holds, or kNone.
  template <class Same>
  std::uint32_t find(std::uint32_t hash, Same same) const {
    return slots_[place(hash, same)].number;
  }

  /// The number that is there already, or else kNone, and then `number` is there now.
  template <class Same>
  std::uint32_t insert(std::uint32_t hash, std::uint32_t number, Same same) {
    Slot& slot = slots_[place(hash, same)];
    if (slot.number != kNone) return slot.number;
    slot = {hash, number};
    if (++count_ * 2 > slots_.size()) grow();
    return kNone;
  }

  static std::uint32_t hash(std::uint64_t a, std::uint64_t b) {
    std::uint64_t h = a * 0x9e3779b97f4a7c15 ^ b;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93;
    return static_cast<std::uint32_t>(h >> 32);
  }

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t number;
  };

  template <class Same>
  std::size_t place(std::uint32_t hash, Same same) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].number != kNone && !(slots_[i].hash == hash && same(slots_[i].number))) i = (i + 1) & mask;
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2, Slot{0, kNone});
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.number != kNone) slots_[place(slot.hash, [](std::uint32_t) { return false; })] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace perdure::sim
