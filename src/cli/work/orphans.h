// What the programs of `perdure work` leave behind.
//
// A program may start others, and these may leave its process group and lose their parents. So that none outlives the
// event that it was started for, this process is a subreaper: whoever loses his parent becomes its child. Every program
// gets a mark in its environment, which those that it starts inherit; an orphan is killed once the program with his
// mark has ended. One without a mark has thrown it away, and is killed when no program runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace perdure::cli {

/// The name of the variable that holds the mark.
inline constexpr const char* kMarkVariable = "PERDURE_RUN";

/// From here on, orphans become children of this process.
void adopt_orphans();

/// The children of this process, dead ones that were not waited for among them.
std::vector<pid_t> children_of_this_process();

/// The mark of a process; empty if it has none, or is gone.
std::string mark_of(pid_t process);

/// Kills every child that `is_running` does not know, by its process or its mark; answers how many it has killed. The
/// children of these become children of this process in turn: call it again whenever one has died.
std::size_t kill_orphans(const std::function<bool(pid_t process)>& is_program,
                         const std::function<bool(const std::string& mark)>& is_running);

}  // namespace perdure::cli
