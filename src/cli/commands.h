// The parts of the table of commands, each beside what it runs.
#pragma once

#include <vector>

#include "cli/command.h"
#include "cli/context.h"

namespace perdure::cli {

/// The headings of the help, in its order.
inline constexpr const char* kEvents = "Events";
inline constexpr const char* kWorkers = "Workers and schedules";
inline constexpr const char* kActors = "Actors";
inline constexpr const char* kDebouncers = "Debouncers";
inline constexpr const char* kSequences = "Sequences";
inline constexpr const char* kData = "Application data";
inline constexpr const char* kTranscripts = "Transcripts";
inline constexpr const char* kSystem = "The system";

std::vector<Command> emit_commands();
std::vector<Command> work_commands();
std::vector<Command> event_commands();
std::vector<Command> resource_commands();
std::vector<Command> actor_commands();
std::vector<Command> data_commands();
std::vector<Command> hook_commands();
std::vector<Command> stream_commands();
std::vector<Command> store_commands();
std::vector<Command> serve_commands();
std::vector<Command> system_commands();
std::vector<Command> bench_commands();
std::vector<Command> transcript_commands();

/// Most commands are one call whose answer is an object.
OrFailure<void> ask_and_print(Context& context, const Call& call);
/// The same for one whose answer only matters with --json: otherwise `message` is said.
OrFailure<void> ask_and_say(Context& context, const Call& call, std::string_view message);

}  // namespace perdure::cli
