// A program that handles one event: started without a shell, in a process group of its own, with pipes that never
// block.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "perdure/error.h"

namespace perdure::cli {

struct ChildSpec {
  std::vector<std::string> argv;
  /// "NAME=value", all of it.
  std::vector<std::string> environment;
  /// What it reads on stdin.
  std::string input;
};

class Child {
 public:
  /// Of stdout the beginning is kept, of stderr the end; the rest is read and dropped.
  static constexpr std::size_t kOutputMax = std::size_t{64} << 10;
  static constexpr std::size_t kErrorMax = std::size_t{4} << 10;

  /// Errors: kUnavailable if there is no process to be had, kNotFound if the program cannot be run.
  static Result<std::unique_ptr<Child>> start(const ChildSpec& spec);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// What to poll: for writing, for reading, for reading; -1 once closed.
  int input_fd() const { return input_; }
  int output_fd() const { return output_fd_; }
  int error_fd() const { return error_fd_; }

  /// Moves what can be moved without waiting.
  void pump();
  /// The program is gone: reads what it left in its pipes, and closes them, whoever else may have them.
  void finish();
  /// To every process of its group. Only before the program was waited for: later its number may be another's.
  void signal_group(int signal) const;

  const std::string& output() const { return output_text_; }
  bool output_was_cut() const { return output_cut_; }
  const std::string& error_tail() const { return error_text_; }

 private:
  Child() = default;
  void write_input();
  void read_output();
  void read_error();

  pid_t pid_ = -1;
  int input_ = -1, output_fd_ = -1, error_fd_ = -1;
  std::string unwritten_;
  std::string output_text_, error_text_;
  bool output_cut_ = false;
};

}  // namespace perdure::cli
