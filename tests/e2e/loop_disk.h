// A small disk of its own, ext4 on a loop device, that can lose power.
//
// Nothing of it outlives the test, however that ends: the image has no name, the loop device frees itself with its last
// user, and the mount belongs to a mount namespace that ends with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "perdure/error.h"
#include "scratch.h"

namespace perdure::e2e {

class LoopDisk {
 public:
  /// Errors: kUnavailable if this machine refuses namespaces, loop devices or mounting, with what it refused.
  static Result<std::unique_ptr<LoopDisk>> make(std::uint64_t bytes);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  /// Where it is mounted.
  const std::string& path() const { return mount_point_; }

  /// From now on nothing reaches the disk, and what was not synced is lost: EXT4_IOC_SHUTDOWN without a flush of the
  /// journal.
  Result<void> cut_power();
  /// Unmounts, and mounts again: the journal is replayed. Nobody may have a file on it open.
  Result<void> restart();

 private:
  LoopDisk() = default;
  Result<void> attach(const std::string& image);
  Result<void> mount();

  Scratch scratch_;
  std::string mount_point_;
  std::string device_;
  int device_fd_ = -1;
  bool mounted_ = false;
};

}  // namespace perdure::e2e
