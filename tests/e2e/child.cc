#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace perdure::e2e {
namespace {

constexpr Milliseconds kGlance{5};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    std::string line = *entry;
    if (!more.contains(line.substr(0, line.find('=')))) merged.push_back(std::move(line));
  }
  for (const auto& [name, value] : more) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& string : strings) out.push_back(string.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::int64_t steady_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

Child::Child(const std::vector<std::string>& arguments, const Options& options) {
  static const bool ignored = ::signal(SIGPIPE, SIG_IGN) != SIG_ERR;  // A dead child is found by its silence.
  (void)ignored;
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for a child");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<std::string> words = arguments, environment = merged_environment(options.environment);
  int code =
      posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = out[0];
  if (code == 0) return;
  close(input_);
  close(output_);
  throw std::runtime_error("cannot start " + words[0] + ": " + std::strerror(code));
}

Child::~Child() {
  kill();
  if (input_ >= 0) close(input_);
  close(output_);
}

void Child::say(const std::string& line) {
  std::string text = line + "\n";
  (void)!write(input_, text.data(), text.size());
}

std::optional<std::string> Child::answer(Milliseconds patience) {
  return take(answers_, patience);
}

std::optional<std::string> Child::event(Milliseconds patience) {
  return take(events_, patience);
}

std::string Child::ask(const std::string& line, Milliseconds patience) {
  say(line);
  return answer(patience).value_or("(no answer)");
}

std::deque<std::string> Child::take_events() {
  return std::exchange(events_, {});
}

void Child::gather(Milliseconds patience) {
  std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
  for (std::int64_t left; (left = until - steady_ns()) > 0;)
    if (!read_more(std::chrono::ceil<Milliseconds>(std::chrono::nanoseconds(left)))) return;
}

void Child::end_input() {
  close(std::exchange(input_, -1));
}

void Child::signal(int number) {
  if (!ending_) ::kill(pid_, number);
}

void Child::kill() {
  if (ending_) return;
  signal(SIGKILL);
  wait();
}

std::optional<Child::Ending> Child::wait(Milliseconds patience) {
  std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
  while (!ending_) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 && info.si_pid == pid_)
      ending_ = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    else if (steady_ns() > until)
      return std::nullopt;
    else
      poll(nullptr, 0, static_cast<int>(kGlance.count()));
  }
  return ending_;
}

bool Child::wait_until_stopped(Milliseconds patience) {
  std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
  while (steady_ns() < until) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid_) return true;
    poll(nullptr, 0, static_cast<int>(kGlance.count()));
  }
  return false;
}

std::optional<std::string> Child::take(std::deque<std::string>& from, Milliseconds patience) {
  std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
  while (from.empty()) {
    std::int64_t left = until - steady_ns();
    if (left <= 0 || !read_more(std::chrono::ceil<Milliseconds>(std::chrono::nanoseconds(left)))) return std::nullopt;
  }
  std::string line = std::move(from.front());
  from.pop_front();
  return line;
}

bool Child::read_more(Milliseconds patience) {
  pollfd polled = {output_, POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(patience.count())) <= 0) return false;
  char buffer[1 << 16];
  ssize_t size = read(output_, buffer, sizeof buffer);
  if (size <= 0) return false;
  partial_.append(buffer, static_cast<std::size_t>(size));
  std::size_t from = 0;
  for (std::size_t end; (end = partial_.find('\n', from)) != std::string::npos; from = end + 1) {
    std::string line = partial_.substr(from, end - from);
    if (line.starts_with('!'))
      events_.push_back(line.substr(1));
    else
      answers_.push_back(std::move(line));
  }
  partial_.erase(0, from);
  return true;
}

}  // namespace perdure::e2e
