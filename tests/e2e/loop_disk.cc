#include "loop_disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "child.h"

namespace perdure::e2e {
namespace {

constexpr unsigned long kExt4Shutdown = 0x8004587D;
constexpr std::uint32_t kNoLogFlush = 2;
/// Another test may take the free loop device first, and a dying process may hold its files a moment longer.
constexpr int kAttempts = 200;

std::unexpected<Error> refused(const std::string& what) {
  return fail(ErrorCode::kUnavailable, what + ": " + std::strerror(errno));
}

Result<void> enter_own_mount_namespace() {
  static bool entered = false;
  if (entered) return {};
  if (unshare(CLONE_NEWNS) != 0) return refused("this machine refuses a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return refused("/ cannot be made private");
  entered = true;
  return {};
}

}  // namespace

Result<std::unique_ptr<LoopDisk>> LoopDisk::make(std::uint64_t bytes) {
  if (auto entered = enter_own_mount_namespace(); !entered) return std::unexpected(entered.error());
  std::unique_ptr<LoopDisk> disk(new LoopDisk);
  std::string image = disk->scratch_ / "image";
  write_whole(image, "");
  if (truncate(image.c_str(), static_cast<off_t>(bytes)) != 0) return refused("cannot make " + image);
  Child mkfs({"mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", image},
             {.environment = {{"PATH", "/usr/sbin:/sbin:/usr/bin:/bin"}}});
  if (mkfs.wait() != 0) return fail(ErrorCode::kUnavailable, "mkfs.ext4 does not work here");
  disk->mount_point_ = disk->scratch_ / "disk";
  std::filesystem::create_directory(disk->mount_point_);
  if (auto attached = disk->attach(image); !attached) return std::unexpected(attached.error());
  unlink(image.c_str());
  if (auto mounted = disk->mount(); !mounted) return std::unexpected(mounted.error());
  return disk;
}

LoopDisk::~LoopDisk() {
  if (mounted_ && umount2(mount_point_.c_str(), 0) != 0) umount2(mount_point_.c_str(), MNT_DETACH);
  if (device_fd_ >= 0) close(device_fd_);
}

Result<void> LoopDisk::attach(const std::string& image) {
  int image_fd = open(image.c_str(), O_RDWR | O_CLOEXEC);
  int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  Result<void> done = control < 0 ? refused("this machine refuses loop devices") : Result<void>();
  for (int attempt = 0; done && device_fd_ < 0; ++attempt) {
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    device_ = "/dev/loop" + std::to_string(number);
    int fd = number < 0 ? -1 : open(device_.c_str(), O_RDWR | O_CLOEXEC);
    loop_config config = {};
    config.fd = static_cast<std::uint32_t>(image_fd);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
      device_fd_ = fd;
      break;
    }
    bool taken = fd >= 0 && errno == EBUSY && attempt < kAttempts;
    if (!taken) done = refused("this machine refuses the loop device " + device_);
    if (fd >= 0) close(fd);
  }
  if (control >= 0) close(control);
  close(image_fd);
  return done;
}

Result<void> LoopDisk::mount() {
  if (::mount(device_.c_str(), mount_point_.c_str(), "ext4", 0, nullptr) != 0)
    return refused("this machine refuses to mount " + device_);
  mounted_ = true;
  return {};
}

Result<void> LoopDisk::cut_power() {
  int fd = open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t flags = kNoLogFlush;
  int result = fd < 0 ? -1 : ioctl(fd, kExt4Shutdown, &flags);
  int code = errno;
  if (fd >= 0) close(fd);
  errno = code;
  if (result != 0) return refused("ext4 here refuses to be shut down");
  return {};
}

Result<void> LoopDisk::restart() {
  for (int attempt = 0; umount2(mount_point_.c_str(), 0) != 0; ++attempt) {
    if (errno != EBUSY || attempt == kAttempts) return refused("cannot unmount " + mount_point_);
    poll(nullptr, 0, 5);
  }
  mounted_ = false;
  return mount();
}

}  // namespace perdure::e2e
