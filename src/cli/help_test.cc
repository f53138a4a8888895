#include "cli/help.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/command.h"
#include "cli/completion.h"

namespace perdure::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CliHelp, ListsEveryCommandWithASummary) {
  std::string help = main_help();
  for (const Command& command : all_commands()) {
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_TRUE(command.run) << command.name;
    EXPECT_EQ(has(help, "\n  " + command.name), !command.hidden) << command.name;
  }
}

TEST(CliHelp, EveryCommandOfTheContractIsThere) {
  for (std::string name :
       {"serve",  "emit",    "work",    "worker ls", "kind show", "schedule set", "debouncer rm",  "partition ls",
        "pause",  "unpause", "block",   "unblock",   "events",    "event",        "why",           "cancel",
        "dead",   "redrive", "call",    "cast",      "actors",    "actor",        "kill",          "unlock",
        "touch",  "append",  "log",     "numbers",   "status",    "hold",         "release",       "version",
        "backup", "verify",  "key get", "history",   "stream",    "completion",   "clock advance", "hook"})
    EXPECT_NE(find_command(name), nullptr) << name;
}

TEST(CliHelp, TheManualPageHasEveryCommandAndFlag) {
  std::ifstream file(PERDURE_SOURCE_DIR "/docs/man/perdure.1");
  std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, man_page()) << "write it anew: perdure man > docs/man/perdure.1";
  for (const Command& command : all_commands()) {
    if (command.hidden) continue;
    EXPECT_TRUE(has(page, ".SS \"perdure " + command.name)) << command.name;
    for (const Flag& flag : command.flags)
      EXPECT_TRUE(has(page, "\\-\\-" + flag.name.substr(0, flag.name.find('-')))) << flag.name;
  }
}

TEST(CliCompletion, OffersEveryCommandAndFlag) {
  for (std::string shell : {"bash", "zsh", "fish"}) {
    std::string script = *completion(shell);
    for (const Command& command : all_commands()) {
      if (command.hidden) continue;
      EXPECT_TRUE(has(script, command.name.substr(command.name.find(' ') + 1))) << shell << " " << command.name;
      for (const Flag& flag : command.flags) EXPECT_TRUE(has(script, flag.name)) << shell << " " << flag.name;
    }
  }
  EXPECT_FALSE(completion("tcsh"));
}

TEST(CliCompletion, BashCompletesCommandsFlagsAndFiles) {
  std::string path = testing::TempDir() + "perdure_completion.bash";
  std::ofstream(path) << *completion("bash") << R"bash(
offers() { COMP_WORDS=(perdure "$@"); COMP_CWORD=$(($# )); COMPREPLY=(); _perdure; echo "${COMPREPLY[*]}"; }
test "$(offers unp)" = unpause || exit 1
test "$(offers worker s)" = 'show set' || exit 2
test "$(offers emit mail 1 --uni)" = '--unique --unique-for' || exit 3
test "$(offers completion f)" = fish || exit 4
test "$(offers work mail -- tru)" != '' || exit 5
)bash";
  EXPECT_EQ(std::system(("bash " + path).c_str()), 0);
}

}  // namespace
}  // namespace perdure::cli
