#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "cli/answer_early.h"
#include "cli/run.h"

namespace {

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::size_t terminal_columns() {
  winsize size = {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::optional<std::uint64_t> size_of_input() {
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return static_cast<std::uint64_t>(status.st_size);
}

bool input_is_ready() {
  if (std::cin.rdbuf()->in_avail() > 0) return true;
  pollfd one = {STDIN_FILENO, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  perdure::cli::World world = {.in = std::cin,
                               .out = std::cout,
                               .err = std::cerr,
                               .variables = variable,
                               .in_is_terminal = ::isatty(STDIN_FILENO) == 1,
                               .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                               .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                               .columns = terminal_columns(),
                               .in_is_ready = input_is_ready,
                               .in_size = size_of_input(),
                               .answer_early = perdure::cli::answer_early};
  return perdure::cli::run(std::vector<std::string>(argv + 1, argv + argc), world);
}
