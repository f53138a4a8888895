#pragma once

#include <atomic>
#include <vector>

#include "runtime/thread.h"
#include "store/lmdb/bulletin.h"

namespace perdure::lmdb {

class PeerListener {
 public:
  virtual ~PeerListener() = default;
  /// Others have committed: Bulletin::changes says what.
  virtual void peers_committed() = 0;
  /// A process that had the store open is gone without closing it.
  virtual void peer_died(int pid) = 0;
};

/// Listens to the other processes that have the store open: to their bell, and for their deaths. Neither polls: one
/// thread sleeps on a futex, one on the process descriptors of the others.
class Peers {
 public:
  Peers(Bulletin& bulletin, PeerListener& listener);
  /// Stops listening; no call is running afterwards.
  ~Peers();

 private:
  struct Watched {
    Bulletin::Peer peer;
    int pidfd;
  };

  void hear_bells();
  void watch_processes();
  /// Brings the watched processes in line with the bulletin; dead ones are buried.
  void update_watched();
  void bury(const Bulletin::Peer& peer);

  Bulletin& bulletin_;
  PeerListener& listener_;
  std::atomic<bool> stopping_ = false;
  /// The membership that watch_processes was last woken for; of the bell thread. It is read before either thread looks
  /// at the peers, so that nobody who joins in between is overlooked.
  std::uint32_t members_;
  /// Wakes watch_processes.
  int wake_fd_;
  std::vector<Watched> watched_;
  Thread bell_thread_;
  Thread process_thread_;
};

}  // namespace perdure::lmdb
