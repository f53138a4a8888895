#include "cli/work/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace perdure::cli {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The parent of a process, from /proc/PID/stat: the second field behind the name, which may hold anything, ')' too.
pid_t parent_of(const std::string& process) {
  std::string stat = read_all("/proc/" + process + "/stat");
  std::istringstream behind_name(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string state;
  pid_t parent = -1;
  behind_name >> state >> parent;
  return parent;
}

// For kernels that do not list children.
std::vector<pid_t> search_children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::string name = entry.path().filename().string();
    pid_t pid = 0;
    auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc() && end == name.data() + name.size() && parent_of(name) == ::getpid()) found.push_back(pid);
  }
  return found;
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> children_of_this_process() {
  // There is one thread, whose number is that of the process.
  std::string self = std::to_string(::getpid());
  std::ifstream list("/proc/" + self + "/task/" + self + "/children");
  if (!list) return search_children();
  return {std::istream_iterator<pid_t>(list), {}};
}

std::string mark_of(pid_t process) {
  std::string environment = read_all("/proc/" + std::to_string(process) + "/environ");
  std::string prefix = std::string(kMarkVariable) + "=";
  for (std::size_t at = 0; at < environment.size();) {
    std::size_t end = std::min(environment.find('\0', at), environment.size());
    std::string_view entry(environment.data() + at, end - at);
    if (entry.starts_with(prefix)) return std::string(entry.substr(prefix.size()));
    at = end + 1;
  }
  return "";
}

std::size_t kill_orphans(const std::function<bool(pid_t process)>& is_program,
                         const std::function<bool(const std::string& mark)>& is_running) {
  std::size_t killed = 0;
  for (pid_t process : children_of_this_process()) {
    if (is_program(process) || is_running(mark_of(process))) continue;
    // It is a child that was not waited for, so its number cannot have become another's.
    if (::kill(process, SIGKILL) == 0) ++killed;
  }
  return killed;
}

}  // namespace perdure::cli
