#include "store/lmdb/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

namespace perdure::lmdb {

std::uint64_t start_of_process(int pid) {
  // "PID (NAME) STATE ...", the start is the 20th word after the name, which may hold anything, blanks and brackets
  // too.
  constexpr int kWordsBefore = 19;
  char text[1024];
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text);
  close(fd);
  std::string_view line(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  std::size_t at = line.rfind(')');
  if (at == std::string_view::npos) return 0;
  line.remove_prefix(std::min(at + 2, line.size()));
  for (int i = 0; i < kWordsBefore; ++i) {
    at = line.find(' ');
    if (at == std::string_view::npos) return 0;
    line.remove_prefix(at + 1);
  }
  std::uint64_t started = 0;
  std::from_chars(line.data(), line.data() + line.size(), started);
  return started;
}

bool process_is_gone(int pid, std::uint64_t started) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  pollfd polled = {fd, POLLIN, 0};
  bool ended = poll(&polled, 1, 0) > 0;
  close(fd);
  if (ended) return true;
  std::uint64_t now = started == 0 ? 0 : start_of_process(pid);
  return now != 0 && now != started;
}

}  // namespace perdure::lmdb
