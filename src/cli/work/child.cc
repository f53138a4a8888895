#include "cli/work/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace perdure::cli {
namespace {

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    close_fd(read);
    close_fd(write);
  }
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
};

int take(int& fd) {
  (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
  return std::exchange(fd, -1);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Between fork and exec, where only calls that are safe in a signal handler are allowed.
[[noreturn]] void become(char* const* argv, char* const* environment, const Pipe& in, const Pipe& out, const Pipe& err,
                         int report, pid_t parent) {
  ::setpgid(0, 0);
  // It must not outlive us when we are killed: its event is given to somebody else then.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(in.read, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  ::execvpe(argv[0], argv, environment);
  int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const ChildSpec& spec) {
  Pipe in, out, err, report;
  if (!in.open() || !out.open() || !err.open() || !report.open())
    return fail(ErrorCode::kUnavailable, "no pipes for the program: " + std::string(std::strerror(errno)));
  auto argv = pointers(spec.argv), environment = pointers(spec.environment);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorCode::kUnavailable, "no process for the program: " + std::string(std::strerror(errno)));
  if (pid == 0) become(argv.data(), environment.data(), in, out, err, report.write, parent);
  ::setpgid(pid, pid);  // Here too, so that it is so whoever comes first.
  close_fd(report.write);
  int error = 0;
  ssize_t got;
  while ((got = ::read(report.read, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got > 0) {
    (void)::waitpid(pid, nullptr, 0);
    return fail(ErrorCode::kNotFound, "cannot run " + spec.argv[0] + ": " + std::strerror(error));
  }
  auto child = std::unique_ptr<Child>(new Child());
  child->pid_ = pid;
  child->input_ = take(in.write);
  child->output_fd_ = take(out.read);
  child->error_fd_ = take(err.read);
  child->unwritten_ = spec.input;
  child->write_input();
  return child;
}

Child::~Child() {
  close_fd(input_);
  close_fd(output_fd_);
  close_fd(error_fd_);
}

void Child::signal_group(int signal) const {
  (void)::kill(-pid_, signal);
}

void Child::write_input() {
  while (input_ >= 0 && !unwritten_.empty()) {
    ssize_t written = ::write(input_, unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    // A program need not read what it is given: a broken pipe is its business.
    if (written < 0) break;
    unwritten_.erase(0, static_cast<std::size_t>(written));
  }
  close_fd(input_);
}

void Child::read_output() {
  std::array<char, 16384> buffer;
  while (output_fd_ >= 0) {
    ssize_t got = ::read(output_fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close_fd(output_fd_);
    std::size_t kept = std::min(static_cast<std::size_t>(got), kOutputMax - output_text_.size());
    output_text_.append(buffer.data(), kept);
    if (kept < static_cast<std::size_t>(got)) output_cut_ = true;
  }
}

void Child::read_error() {
  std::array<char, 16384> buffer;
  while (error_fd_ >= 0) {
    ssize_t got = ::read(error_fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close_fd(error_fd_);
    error_text_.append(buffer.data(), static_cast<std::size_t>(got));
    if (error_text_.size() > kErrorMax) error_text_.erase(0, error_text_.size() - kErrorMax);
  }
}

void Child::pump() {
  write_input();
  read_output();
  read_error();
}

void Child::finish() {
  unwritten_.clear();
  read_output();
  read_error();
  close_fd(input_);
  close_fd(output_fd_);
  close_fd(error_fd_);
}

}  // namespace perdure::cli
