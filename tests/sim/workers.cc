#include "workers.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace perdure::sim {
namespace {

struct Child {
  std::size_t job;
  pid_t pid;
  int pipe;
  std::string buffer;
};

void write_all(int pipe, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(pipe, text.data(), text.size());
    if (written <= 0) _exit(3);  // The parent is gone.
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

Child start(std::size_t job, const std::function<void(std::size_t, const Tell&)>& work) {
  int ends[2];
  check(pipe(ends) == 0, "cannot make a pipe");
  std::fflush(nullptr);
  pid_t pid = fork();
  check(pid >= 0, "cannot start a worker");
  if (pid == 0) {
    close(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(job, [&](const std::string& line) { write_all(ends[1], line + "\n"); });
    std::fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  return {job, pid, ends[0], {}};
}

/// Hands over the lines that are there. False at the end.
bool read_lines(Child& child, const std::function<void(std::size_t, const std::string&)>& hear) {
  char bytes[65536];
  ssize_t count = read(child.pipe, bytes, sizeof bytes);
  if (count <= 0) return false;
  child.buffer.append(bytes, static_cast<std::size_t>(count));
  for (std::size_t end; (end = child.buffer.find('\n')) != std::string::npos;) {
    hear(child.job, child.buffer.substr(0, end));
    child.buffer.erase(0, end + 1);
  }
  return true;
}

std::string wait_for(const Child& child) {
  close(child.pipe);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status)) return std::string("the process died: ") + strsignal(WTERMSIG(status));
  return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void Workers::run(std::size_t jobs, const std::function<void(std::size_t, const Tell&)>& work,
                  const std::function<void(std::size_t, const std::string&)>& hear,
                  const std::function<void(std::size_t, const std::string&)>& ended,
                  const std::function<void()>& tick) {
  std::vector<Child> children;
  std::size_t next = 0;
  while (next < jobs || !children.empty()) {
    while (next < jobs && children.size() < at_once_) children.push_back(start(next++, work));
    std::vector<pollfd> polled;
    for (const Child& child : children) polled.push_back({child.pipe, POLLIN, 0});
    poll(polled.data(), polled.size(), 1000);
    tick();
    for (std::size_t i = children.size(); i-- > 0;) {
      if (polled[i].revents == 0 || read_lines(children[i], hear)) continue;
      Child over = std::move(children[i]);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      ended(over.job, wait_for(over));
    }
  }
}

unsigned cores() {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

}  // namespace perdure::sim
