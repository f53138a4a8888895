// The bulletin: what the processes that share one LMDB store tell each other, in a file that all of them map.
//
// It holds nothing that matters after a crash of all of them: the first process to open the store wipes it. It says who
// has the store open (a slot per process, each guarded by a file lock that the kernel drops when the process dies, or
// when the last child that it has forked does; so a slot is alive if its lock is held and its process lives), up to
// which commit everything is known to be synced, and which keys have changed lately, in a ring of hashes that feeds the
// watches of the others. Each slot has a bell: a word to sleep on in the kernel until somebody commits.
//
// The ring. Inside LMDB's writer lock a process reserves places behind `reserved` and writes its hashes there; after
// its commit it moves `head` up to their end. A slow process may be overtaken: the next one's `head` covers its hashes
// too, and rightly, since commits are in the order of the lock. Readers copy what lies between their own place and
// `head`, then look whether `reserved` has come round to it meanwhile; if so they have lost count, and look at all.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perdure/error.h"

namespace perdure::lmdb {

class Bulletin {
 public:
  static constexpr unsigned kSlots = 64;
  static constexpr std::uint64_t kRing = 1 << 16;

  /// Joins the processes in `directory`; `life`, a random number, names this opening among all others, now or ever.
  /// While the answer is held the caller is the only one that is opening. Errors as for opening a store.
  static Result<std::unique_ptr<Bulletin>> join(const std::string& directory, std::uint64_t life);
  /// Leaves: the others see it at once.
  ~Bulletin();
  Bulletin(const Bulletin&) = delete;
  Bulletin& operator=(const Bulletin&) = delete;

  /// Whether no other process had the store open when this one joined.
  bool was_first() const { return first_; }
  /// Lets the next process open.
  void finish_opening();

  /// The newest commit that is known to be on the disk, by LMDB's number.
  std::uint64_t durable() const;
  void raise_durable(std::uint64_t epoch);

  struct Peer {
    unsigned slot;
    int pid;
  };
  std::vector<Peer> peers() const;
  bool alone() const;
  /// Grows whenever somebody joins, leaves, or is found dead.
  std::uint32_t membership() const;
  /// Whether a living process holds the slot.
  bool is_held(unsigned slot) const;
  std::uint64_t life() const { return life_; }
  /// Whether the opening of that name has ended, by leaving or by death.
  bool is_over(std::uint64_t life) const;
  /// The process of this slot is gone without having left. True for the one caller who frees the slot.
  bool bury(const Peer& peer);

  /// Under the writer lock: notes the changes of the commit to come. `announce` after it.
  std::uint64_t reserve(std::span<const std::uint64_t> changed_keys);
  void announce(std::uint64_t reserved);
  /// From now on `changes` answers what is announced. Under the writer lock.
  void start_listening();
  /// What others have announced since the last call; nothing if it lost count, and anything may have changed.
  std::optional<std::vector<std::uint64_t>> changes();

  /// Sleeps until the bell of this process rings, or has rung since the last call.
  void wait_for_bell();
  void ring_own_bell() { ring(slot_); }
  void ring_others();

 private:
  struct Shared;
  Bulletin() = default;

  Result<void> lock(const std::string& path);
  Result<void> wipe_or_check(const std::string& path);
  Result<void> claim_slot(const std::string& path);
  void ring(unsigned slot);
  void change_membership();

  int fd_ = -1;
  Shared* shared_ = nullptr;
  bool first_ = false;
  bool opening_ = false;
  unsigned slot_ = kSlots;
  std::uint64_t life_ = 0;
  std::uint32_t bell_seen_ = 0;
  std::uint64_t read_to_ = 0;
};

}  // namespace perdure::lmdb
