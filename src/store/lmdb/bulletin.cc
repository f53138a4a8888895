#include "store/lmdb/bulletin.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "base/assert.h"
#include "store/engine.h"
#include "store/lmdb/errors.h"
#include "store/lmdb/process.h"

namespace perdure::lmdb {
namespace {

constexpr std::uint64_t kMagic = 0x33'65'72'75'64'72'65'70;  // "perdure3"
/// Names no key: everything may have changed. A key whose hash happens to be this only wakes too many.
constexpr std::uint64_t kEverything = 0;

/// Locks of open file descriptions: not dropped when some other descriptor of the file is closed, as plain ones are.
bool ofd_lock(int fd, int command, short type, off_t at, struct flock* out = nullptr) {
  struct flock region = {};
  region.l_type = type;
  region.l_whence = SEEK_SET;
  region.l_start = at;
  region.l_len = 1;
  int result;
  do result = fcntl(fd, command, &region);
  while (result != 0 && errno == EINTR);
  if (out) *out = region;
  return result == 0;
}

constexpr off_t kOpeningByte = 0;
off_t slot_byte(unsigned slot) {
  return 1 + static_cast<off_t>(slot);
}

std::uint64_t pid_namespace() {
  struct stat status = {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

struct Bulletin::Shared {
  struct alignas(64) Slot {
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint32_t> bell;
    std::atomic<std::uint64_t> life;
    /// When the process began, as start_of_process says: its number may be given to another later.
    std::atomic<std::uint64_t> started;
  };

  std::atomic<std::uint64_t> magic;
  std::uint64_t pid_namespace;
  std::atomic<std::uint64_t> durable;
  std::atomic<std::uint32_t> membership;
  alignas(64) std::atomic<std::uint64_t> reserved;
  std::atomic<std::uint64_t> head;
  Slot slots[kSlots];
  std::atomic<std::uint64_t> ring[kRing];
};

Result<std::unique_ptr<Bulletin>> Bulletin::join(const std::string& directory, std::uint64_t life) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
  std::string path = directory + "/bulletin";
  std::unique_ptr<Bulletin> bulletin(new Bulletin);
  bulletin->life_ = life;
  bulletin->fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (bulletin->fd_ < 0) return std::unexpected(errno_error(errno, "cannot open " + path));
  for (auto step : {&Bulletin::lock, &Bulletin::wipe_or_check, &Bulletin::claim_slot})
    if (auto done = (bulletin.get()->*step)(path); !done) return std::unexpected(std::move(done.error()));
  return bulletin;
}

Bulletin::~Bulletin() {
  if (shared_ && slot_ < kSlots) {
    shared_->slots[slot_].pid = 0;
    change_membership();
    // Closing alone would leave the lock to children that were forked meanwhile.
    ofd_lock(fd_, F_OFD_SETLK, F_UNLCK, slot_byte(slot_));
  }
  if (shared_) munmap(shared_, sizeof(Shared));
  if (fd_ >= 0) close(fd_);  // Drops the locks too.
}

Result<void> Bulletin::lock(const std::string& path) {
  if (!ofd_lock(fd_, F_OFD_SETLKW, F_WRLCK, kOpeningByte))
    return std::unexpected(errno_error(errno, "cannot lock " + path));
  opening_ = true;
  first_ = true;
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (is_held(slot)) first_ = false;
  return {};
}

bool Bulletin::is_held(unsigned slot) const {
  struct flock holder;
  check(ofd_lock(fd_, F_OFD_GETLK, F_WRLCK, slot_byte(slot), &holder), "a lock that can be asked for");
  if (holder.l_type == F_UNLCK) return false;
  // Before the file is mapped there is only the lock to go by; those who then seem to be here are looked at later.
  if (!shared_) return true;
  const auto& held = shared_->slots[slot];
  int pid = held.pid;
  return pid == 0 || !process_is_gone(pid, held.started);
}

Result<void> Bulletin::wipe_or_check(const std::string& path) {
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return std::unexpected(errno_error(errno, "cannot stat " + path));
  bool fits = status.st_size == sizeof(Shared);
  if (!fits && !first_)
    return fail(ErrorCode::kUnsupportedFormat,
                path + " is of another version of perdure, whose processes have the store open; stop them first");
  // Its blocks are kept from one opening to the next, so that a store on a full disk can still be opened.
  if (!fits) {
    int code = ftruncate(fd_, 0) != 0 ? errno : posix_fallocate(fd_, 0, sizeof(Shared));
    if (code) return std::unexpected(errno_error(code, "cannot make " + path));
  }
  void* mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) return std::unexpected(errno_error(errno, "cannot map " + path));
  shared_ = static_cast<Shared*>(mapped);
  if (first_) {
    std::memset(mapped, 0, sizeof(Shared));
    shared_->pid_namespace = pid_namespace();
    shared_->magic = kMagic;
  } else if (shared_->magic != kMagic) {
    return fail(ErrorCode::kUnsupportedFormat,
                path + " is of another version of perdure, whose processes have the store open; stop them first");
  } else if (shared_->pid_namespace != pid_namespace()) {
    return fail(ErrorCode::kUnavailable, path +
                                             " is in use in another container: processes that share an LMDB store "
                                             "must see each other's process ids");
  }
  return {};
}

Result<void> Bulletin::claim_slot(const std::string& path) {
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (shared_->slots[slot].pid == getpid() && is_held(slot))
      return fail(ErrorCode::kInvalidArgument,
                  "this process has the store of " + path + " open already; share the handle instead");
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    // A slot whose process is dead but not yet buried keeps its number until somebody has looked after it.
    if (shared_->slots[slot].pid != 0 || !ofd_lock(fd_, F_OFD_SETLK, F_WRLCK, slot_byte(slot))) continue;
    slot_ = slot;
    bell_seen_ = shared_->slots[slot].bell;
    shared_->slots[slot].life = life_;
    shared_->slots[slot].started = start_of_process(getpid());
    shared_->slots[slot].pid = getpid();
    change_membership();
    return {};
  }
  return fail(ErrorCode::kLimitExceeded, std::to_string(kSlots) + " processes have " + path + " open; no more fit");
}

void Bulletin::finish_opening() {
  if (opening_) ofd_lock(fd_, F_OFD_SETLK, F_UNLCK, kOpeningByte);
  opening_ = false;
}

std::uint64_t Bulletin::durable() const {
  return shared_->durable;
}

void Bulletin::raise_durable(std::uint64_t epoch) {
  std::uint64_t known = shared_->durable;
  while (known < epoch && !shared_->durable.compare_exchange_weak(known, epoch)) {
  }
}

std::vector<Bulletin::Peer> Bulletin::peers() const {
  std::vector<Peer> peers;
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    int pid = shared_->slots[slot].pid;
    if (pid != 0 && slot != slot_) peers.push_back({slot, pid});
  }
  return peers;
}

bool Bulletin::alone() const {
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (slot != slot_ && shared_->slots[slot].pid.load(std::memory_order_relaxed) != 0) return false;
  return true;
}

std::uint32_t Bulletin::membership() const {
  return shared_->membership;
}

bool Bulletin::is_over(std::uint64_t life) const {
  if (life == life_) return false;
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (shared_->slots[slot].life == life && shared_->slots[slot].pid != 0) return !is_held(slot);
  return true;
}

bool Bulletin::bury(const Peer& peer) {
  std::int32_t pid = peer.pid;
  if (!shared_->slots[peer.slot].pid.compare_exchange_strong(pid, 0)) return false;
  change_membership();
  return true;
}

std::uint64_t Bulletin::reserve(std::span<const std::uint64_t> changed_keys) {
  bool too_many = changed_keys.size() > kRing / 2;
  std::uint64_t at = shared_->reserved.load(std::memory_order_relaxed);
  std::uint64_t end = at + (too_many ? 1 : changed_keys.size());
  shared_->reserved.store(end, std::memory_order_relaxed);
  // Readers must see that places are taken before what is in them changes.
  std::atomic_thread_fence(std::memory_order_release);
  if (too_many) {
    shared_->ring[at % kRing].store(kEverything | slot_, std::memory_order_relaxed);
  } else {
    for (std::uint64_t hash : changed_keys)
      shared_->ring[at++ % kRing].store((hash & kWatchHashMask) | slot_, std::memory_order_relaxed);
  }
  return end;
}

void Bulletin::announce(std::uint64_t reserved) {
  std::uint64_t head = shared_->head;
  while (head < reserved && !shared_->head.compare_exchange_weak(head, reserved)) {
  }
  ring_others();
}

void Bulletin::start_listening() {
  read_to_ = shared_->reserved;
}

std::optional<std::vector<std::uint64_t>> Bulletin::changes() {
  std::uint64_t head = shared_->head.load(std::memory_order_acquire);
  std::uint64_t from = read_to_;
  if (head <= from) return std::vector<std::uint64_t>();
  read_to_ = head;
  if (head - from > kRing) return std::nullopt;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t at = from; at < head; ++at) {
    std::uint64_t entry = shared_->ring[at % kRing].load(std::memory_order_relaxed);
    if ((entry & ~kWatchHashMask) == slot_) continue;  // Our own, known already.
    if ((entry & kWatchHashMask) == kEverything) return std::nullopt;
    hashes.push_back(entry & kWatchHashMask);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (shared_->reserved.load(std::memory_order_relaxed) - from > kRing) return std::nullopt;
  return hashes;
}

void Bulletin::wait_for_bell() {
  auto& bell = shared_->slots[slot_].bell;
  std::uint32_t now = bell;
  while (now == bell_seen_) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAIT, bell_seen_, nullptr, nullptr, 0);
    now = bell;
  }
  bell_seen_ = now;
}

void Bulletin::ring(unsigned slot) {
  auto& bell = shared_->slots[slot].bell;
  ++bell;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bulletin::ring_others() {
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (slot != slot_ && shared_->slots[slot].pid.load(std::memory_order_relaxed) != 0) ring(slot);
}

void Bulletin::change_membership() {
  ++shared_->membership;
  ring_others();
}

}  // namespace perdure::lmdb
