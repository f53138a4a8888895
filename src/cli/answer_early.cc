// How the caller is let go: a timer interrupts the process wherever it is, a system call included, and the handler
// forks. The parent exits; the child returns from the handler into the very work that was interrupted, with its memory,
// its connections and its locks. So nothing that blocks, be it a name server, a pipe, a lock or a disk, has to know of
// the deadline, and nothing is lost for it.
#include "cli/answer_early.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace perdure::cli {
namespace {

constexpr time_t kInputSeconds = 5, kRestSeconds = 10;

/// What happens when the timer goes off the next time.
enum class Next { kLetCallerGo, kEndInput, kEndProcess };
volatile Next next = Next::kLetCallerGo;

void start_timer(timeval after) {
  itimerval timer = {.it_interval = {}, .it_value = after};
  (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

void replace(int stream) {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) (void)::dup2(null, stream);
}

void leave_caller() {
  (void)::setsid();
  // Callers wait for the end of these too.
  replace(STDOUT_FILENO);
  replace(STDERR_FILENO);
}

// Nothing but what may be done inside of a signal handler.
void on_timer(int) {
  int number = errno;
  switch (next) {
    case Next::kLetCallerGo:
      // Not fork(), which runs handlers of libraries that may be the very code that was interrupted.
      if (pid_t child = ::_Fork(); child > 0) ::_exit(0);
      // Without a child the caller has to wait: the event comes first.
      else if (child == 0)
        leave_caller();
      next = Next::kEndInput;
      start_timer({kInputSeconds, 0});
      break;
    case Next::kEndInput:
      replace(STDIN_FILENO);
      next = Next::kEndProcess;
      start_timer({kRestSeconds, 0});
      break;
    case Next::kEndProcess:
      ::_exit(0);
  }
  errno = number;
}

}  // namespace

void answer_early(std::ostream&, std::string_view answer, Duration within) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  int lowest = -1;
  do {
    lowest = ::open("/dev/null", O_RDWR);
  } while (lowest >= 0 && lowest <= STDERR_FILENO);
  if (lowest >= 0) ::close(lowest);
  struct sigaction action = {};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  (void)::sigaction(SIGALRM, &action, nullptr);
  // The mask is the caller's.
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  (void)::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  // Before the timer, unless that might take long: a timer that goes off first would let the caller go without it.
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  bool ready = ::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
  auto write_answer = [&] { (void)!::write(STDOUT_FILENO, answer.data(), answer.size()); };
  if (ready) write_answer();
  auto us = std::chrono::duration_cast<std::chrono::microseconds>(within).count();
  start_timer({us / 1'000'000, us % 1'000'000});
  // Who does not read is let go as well: the child goes on with a stdout that takes everything.
  if (!ready) write_answer();
}

}  // namespace perdure::cli
