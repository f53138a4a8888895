#include "cli/completion.h"

#include <algorithm>
#include <vector>

#include "cli/command.h"

namespace perdure::cli {
namespace {

std::vector<const Command*> shown() {
  std::vector<const Command*> commands;
  for (const Command& command : all_commands())
    if (!command.hidden) commands.push_back(&command);
  return commands;
}

// The first word of a command, and the second if it has one.
std::string_view first_word(const Command& command) {
  return std::string_view(command.name).substr(0, command.name.find(' '));
}

std::string_view second_word(const Command& command) {
  std::size_t blank = command.name.find(' ');
  return blank == std::string::npos ? std::string_view() : std::string_view(command.name).substr(blank + 1);
}

std::vector<std::string> first_words() {
  std::vector<std::string> words;
  for (const Command* command : shown())
    if (words.empty() || std::ranges::count(words, first_word(*command)) == 0) words.emplace_back(first_word(*command));
  words.emplace_back("help");
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string seconds_of(std::string_view first) {
  std::vector<std::string> words;
  for (const Command* command : shown())
    if (first_word(*command) == first && !second_word(*command).empty()) words.emplace_back(second_word(*command));
  return joined(words);
}

// What may stand behind a command: its choices, and all flags.
std::string offers_of(const Command& command) {
  std::vector<std::string> words;
  for (const Positional& each : command.positionals)
    if (!each.choices.empty()) words.push_back(each.choices);
  for (const Flag& flag : command.flags) words.push_back("--" + flag.name);
  for (const Flag& flag : global_flags()) words.push_back("--" + flag.name);
  words.emplace_back("--help");
  return joined(words);
}

std::string bash() {
  std::string out = "# bash completion for perdure\n_perdure() {\n";
  out += "  local cur=${COMP_WORDS[COMP_CWORD]} one=${COMP_WORDS[1]} two=${COMP_WORDS[2]} words=\n";
  // Behind "--" of work stands a command of the shell's.
  out += "  local i; for ((i = 1; i < COMP_CWORD; i++)); do\n";
  out += "    [[ ${COMP_WORDS[i]} == -- ]] && { COMPREPLY=($(compgen -c -f -- \"$cur\")); return; }\n  done\n";
  out += "  if ((COMP_CWORD == 1)); then words='" + joined(first_words()) + "'\n  else case $one in\n";
  for (const std::string& first : first_words()) {
    std::string seconds = seconds_of(first);
    if (seconds.empty()) {
      const Command* command = find_command(first);
      if (command != nullptr) out += "    " + first + ") words='" + offers_of(*command) + "' ;;\n";
      if (first == "help") out += "    help) words='" + joined(first_words()) + "' ;;\n";
      continue;
    }
    out += "    " + first + ") if ((COMP_CWORD == 2)); then words='" + seconds + "'; else case $two in\n";
    for (const Command* command : shown())
      if (first_word(*command) == first)
        out += "      " + std::string(second_word(*command)) + ") words='" + offers_of(*command) + "' ;;\n";
    out += "      esac; fi ;;\n";
  }
  out += "  esac; fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n";
  return out + "  ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _perdure perdure\n";
}

// zsh can run the functions of bash.
std::string zsh() {
  return "#compdef perdure\nautoload -U +X bashcompinit && bashcompinit\n" + bash() +
         "[[ ${funcstack[1]} == _perdure ]] && _bash_complete -F _perdure\n";
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "\\'" : c == '\\' ? "\\\\" : std::string(1, c);
  return out + "'";
}

std::string fish() {
  std::string out = "# fish completion for perdure\ncomplete -c perdure -f\n";
  std::string groups;
  for (const std::string& first : first_words()) {
    std::string seconds = seconds_of(first);
    const Command* command = find_command(first);
    std::string summary = command != nullptr ? command->summary
                          : first == "help"  ? "Say more about a command"
                                             : seconds;
    out += "complete -c perdure -n __fish_use_subcommand -a " + first + " -d " + quoted(summary) + "\n";
  }
  for (const Command* command : shown()) {
    std::string first(first_word(*command)), second(second_word(*command));
    std::string seen = "__fish_seen_subcommand_from " + first;
    if (!second.empty()) {
      out += "complete -c perdure -n '" + seen + "; and not __fish_seen_subcommand_from " + seconds_of(first) +
             "' -a " + second + " -d " + quoted(command->summary) + "\n";
      seen += "; and __fish_seen_subcommand_from " + second;
    }
    for (const Positional& each : command->positionals)
      if (!each.choices.empty()) out += "complete -c perdure -n '" + seen + "' -a " + quoted(each.choices) + "\n";
    for (const Flag& flag : command->flags)
      out += "complete -c perdure -n '" + seen + "' -l " + flag.name + (flag.value.empty() ? "" : " -r") + " -d " +
             quoted(flag.summary) + "\n";
  }
  for (const Flag& flag : global_flags())
    out += "complete -c perdure -l " + flag.name + (flag.value.empty() ? "" : " -r") + " -d " + quoted(flag.summary) +
           "\n";
  return out;
}

}  // namespace

OrFailure<std::string> completion(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  return usage("'" + std::string(shell) + "' is not a shell that completion is known for", "bash, zsh or fish");
}

}  // namespace perdure::cli
