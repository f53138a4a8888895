#include "cli/run.h"

#include <algorithm>

#include "cli/help.h"

namespace perdure::cli {
namespace {

void report(World& world, const Failure& failure) {
  if (failure.message.empty()) return;
  world.err << "perdure: " << failure.message << "\n";
  if (!failure.hint.empty()) world.err << failure.hint << "\n";
  world.err << std::flush;
}

}  // namespace

int run(const std::vector<std::string>& args, World& world) {
  auto parsed = parse(args, world.variables);
  if (!parsed) {
    const Command* command = command_of(args);
    // Whoever installs it is a person, and wants to know.
    const bool answers = command && !command->answer_anyway.empty() && std::ranges::count(args, "--install") == 0;
    // First, for nobody may read the report, or even have ears for it.
    if (answers) world.answer_early(world.out, command->answer_anyway, kHookedWaits);
    report(world, parsed.error());
    return answers ? kExitOk : parsed.error().exit_code;
  }
  if (parsed->help) {
    world.out << (parsed->command == nullptr ? main_help() : help_of(*parsed->command)) << std::flush;
    return kExitOk;
  }
  Context context(world, parsed->arguments);
  auto done = parsed->command->run(context, parsed->arguments);
  world.out << std::flush;
  if (!done) {
    report(world, done.error());
    return done.error().exit_code;
  }
  if (!world.out) {
    // A full disk, say. A pipe that somebody closed ends the process before this.
    report(world, {kExitError, "could not write the output"});
    return kExitError;
  }
  return kExitOk;
}

}  // namespace perdure::cli
