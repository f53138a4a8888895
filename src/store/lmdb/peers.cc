#include "store/lmdb/peers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"

namespace perdure::lmdb {
namespace {

int open_process(int pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace

Peers::Peers(Bulletin& bulletin, PeerListener& listener)
    : bulletin_(bulletin), listener_(listener), members_(bulletin.membership()), wake_fd_(eventfd(1, EFD_CLOEXEC)) {
  check(wake_fd_ >= 0, "an eventfd can be made");
  bell_thread_.start("perdure-bell", [this] { hear_bells(); });
  process_thread_.start("perdure-peers", [this] { watch_processes(); });
}

Peers::~Peers() {
  stopping_ = true;
  bulletin_.ring_own_bell();
  bell_thread_.join();
  eventfd_write(wake_fd_, 1);
  process_thread_.join();
  for (const Watched& watched : watched_) close(watched.pidfd);
  close(wake_fd_);
}

void Peers::hear_bells() {
  while (!stopping_) {
    listener_.peers_committed();
    if (std::uint32_t now = bulletin_.membership(); now != members_) {
      members_ = now;
      eventfd_write(wake_fd_, 1);
    }
    bulletin_.wait_for_bell();
  }
}

void Peers::watch_processes() {
  while (!stopping_) {
    std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0}};
    for (const Watched& watched : watched_) polled.push_back({watched.pidfd, POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0) {
      check(errno == EINTR, "process descriptors can be polled");
      continue;
    }
    if (polled[0].revents) {
      eventfd_t ignored;
      eventfd_read(wake_fd_, &ignored);
    }
    for (std::size_t i = 1; i < polled.size(); ++i)
      if (polled[i].revents) bury(watched_[i - 1].peer);
    update_watched();
  }
}

void Peers::update_watched() {
  std::vector<Bulletin::Peer> peers = bulletin_.peers();
  auto same = [](const Bulletin::Peer& a, const Bulletin::Peer& b) { return a.slot == b.slot && a.pid == b.pid; };
  std::erase_if(watched_, [&](const Watched& watched) {
    if (std::ranges::any_of(peers, [&](const auto& peer) { return same(peer, watched.peer); })) return false;
    close(watched.pidfd);
    return true;
  });
  for (const Bulletin::Peer& peer : peers) {
    if (std::ranges::any_of(watched_, [&](const auto& watched) { return same(peer, watched.peer); })) continue;
    int pidfd = open_process(peer.pid);
    // Its lock tells whether the number still names the process that took the slot.
    bool gone = pidfd < 0 ? errno == ESRCH : !bulletin_.is_held(peer.slot);
    if (gone) {
      if (pidfd >= 0) close(pidfd);
      bury(peer);
    } else if (pidfd >= 0) {
      watched_.push_back({peer, pidfd});
    }
  }
}

void Peers::bury(const Bulletin::Peer& peer) {
  // Everybody who sees a death acts on it: what is to be done in each process does not depend on who was first.
  bulletin_.bury(peer);
  listener_.peer_died(peer.pid);
}

}  // namespace perdure::lmdb
