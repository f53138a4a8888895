#include "sim/scenario.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/seeded_bug.h"
#include "sim/workload.h"

namespace perdure::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    auto comma = list.find(',');
    if (auto word = trimmed(list.substr(0, comma)); !word.empty()) words.emplace_back(word);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return words;
}

class Parser {
 public:
  explicit Parser(std::string_view file) : file_(file) { scenario_.name = std::filesystem::path(file).stem().string(); }

  Result<Scenario> parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      auto end = text.find('\n');
      if (auto done = parse_line(text.substr(0, end)); !done) return std::unexpected(done.error());
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    line_ = 0;
    if (scenario_.workload.empty()) return wrong("names no workload; write a line `workload = NAME`");
    return scenario_;
  }

 private:
  std::unexpected<Error> wrong(const std::string& what) const {
    std::string where = std::string(file_) + (line_ > 0 ? ":" + std::to_string(line_) : "");
    return fail(ErrorCode::kInvalidArgument, where + ": " + what);
  }

  Result<void> parse_line(std::string_view line) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return {};
    auto equals = line.find('=');
    if (equals == std::string_view::npos)
      return wrong("'" + std::string(line) + "' is not `key = value`; begin a comment with #");
    key_ = trimmed(line.substr(0, equals));
    value_ = trimmed(line.substr(equals + 1));
    if (value_.empty()) return wrong(key_ + " has no value; give it one, or take the line out");
    if (!seen_.insert(key_).second) return wrong(key_ + " stands here for the second time; take one line out");
    return parse_key();
  }

  Result<void> parse_key() {
    if (key_ == "workload") return parse_workload();
    if (key_ == "mode") return parse_mode();
    if (key_ == "catches") return parse_catches();
    if (key_ == "weight") return parse_number(scenario_.weight, {1, 1000});
    if (key_ == "drain_s") return parse_number(scenario_.drain_s, {1, 3600});
    if (key_ == "nodes") return parse_range(scenario_.nodes, {1, 9});
    if (key_ == "duration_s") return parse_range(scenario_.duration_s, {1, 3600});
    if (key_ == "remote") return parse_range(scenario_.remote, {0, 1});
    if (key_ == "replicas") return parse_range(scenario_.replicas, {0, 1});
    if (key_ == "unknown_commits") return parse_range(scenario_.unknown_commits, {0, 1});
    if (key_ == "knows_deaths") return parse_range(scenario_.knows_deaths, {0, 1});
    if (key_ == "request_us") return parse_range(scenario_.request_us, {0, 1'000'000});
    if (key_ == "sync_us") return parse_range(scenario_.sync_us, {0, 1'000'000});
    if (key_ == "bell_us") return parse_range(scenario_.bell_us, {0, 1'000'000});
    if (key_.starts_with("event.")) return parse_event();
    if (key_.starts_with("fault.")) return parse_fault(key_.substr(6));
    if (key_.starts_with("knob.")) return parse_knob(key_.substr(5));
    return wrong("there is no key '" + key_ + "'; docs/internals/simulation.md lists them");
  }

  Result<void> parse_workload() {
    if (!find_workload(value_)) return wrong("there is no workload '" + value_ + "'; there are: " + workload_names());
    scenario_.workload = value_;
    return {};
  }

  Result<void> parse_mode() {
    if (value_ != "safety" && value_ != "liveness") return wrong("mode is safety or liveness, not '" + value_ + "'");
    scenario_.mode = value_ == "safety" ? Scenario::Mode::kSafety : Scenario::Mode::kLiveness;
    return {};
  }

  Result<void> parse_catches() {
    for (std::string& bug : words_of(value_)) {
      if (!std::ranges::any_of(seeded_bugs(), [&](const SeededBugInfo& info) { return info.name == bug; }))
        return wrong("there is no seeded bug '" + bug + "'; src/base/seeded_bug.cc lists them");
      scenario_.catches.push_back(std::move(bug));
    }
    return {};
  }

  /// CLASS NODE at [+]MS for MS
  Result<void> parse_event() {
    std::istringstream words(value_);
    std::string kind_name, node, at, at_ms, lasting, for_ms, rest;
    words >> kind_name >> node >> at >> at_ms >> lasting >> for_ms;
    auto index = to_number(node);
    if (at != "at" || lasting != "for" || !index || *index < 0 || words >> rest)
      return wrong("an event is `CLASS NODE at MS for MS`, with +MS if it is after the end of the one before");
    auto kind = fault_by_name(kind_name);
    if (!kind) return no_such_fault(kind_name);
    using From = ScriptedFault::From;
    ScriptedFault fault{*kind, static_cast<int>(*index), From::kStart, {}, {}};
    if (at_ms.starts_with("+")) {
      fault.from = From::kPrevious;
      at_ms.erase(0, 1);
    }
    for (auto [text, range] : {std::pair(&at_ms, &fault.at_ms), std::pair(&for_ms, &fault.for_ms)}) {
      value_ = *text;
      if (auto done = parse_range(*range, {0, 3'600'000}); !done) return done;
    }
    scenario_.script.push_back(fault);
    return {};
  }

  Result<void> parse_fault(const std::string& name) {
    auto kind = fault_by_name(name);
    if (kind) return parse_range(scenario_.faults[static_cast<std::size_t>(*kind)], {0, 1000});
    return no_such_fault(name);
  }

  Result<void> no_such_fault(const std::string& name) const {
    std::string names;
    for (const FaultInfo& info : fault_table()) names += (names.empty() ? "" : ", ") + std::string(info.name);
    return wrong("there is no class of faults '" + name + "'; there are: " + names);
  }

  Result<void> parse_knob(const std::string& name) {
    if (scenario_.workload.empty()) return wrong("put the line `workload = NAME` before its knobs");
    const WorkloadInfo* info = find_workload(scenario_.workload);
    auto knob = std::ranges::find(info->knobs, name, &KnobInfo::name);
    if (knob != info->knobs.end()) return parse_range(scenario_.knobs[name], {0, 1'000'000'000});
    std::string names;
    for (const KnobInfo& known : info->knobs) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return wrong("the workload " + scenario_.workload + " has no knob '" + name + "'; it has: " + names);
  }

  Result<void> parse_number(std::int64_t& number, NumberRange allowed) {
    NumberRange range;
    if (auto done = parse_range(range, allowed); !done) return done;
    if (range.low != range.high) return wrong(key_ + " is one number, not a range");
    number = range.low;
    return {};
  }

  Result<void> parse_range(NumberRange& range, NumberRange allowed) {
    auto dots = value_.find("..");
    auto low = to_number(std::string_view(value_).substr(0, dots));
    auto high = dots == std::string::npos ? low : to_number(std::string_view(value_).substr(dots + 2));
    if (!low || !high) return wrong("'" + value_ + "' is neither a number nor a range; write 3 or 1..5");
    if (*low > *high) return wrong("the range " + value_ + " is empty; put the smaller number first");
    if (*low < allowed.low || *high > allowed.high)
      return wrong(key_ + " goes from " + std::to_string(allowed.low) + " to " + std::to_string(allowed.high) +
                   ", and " + value_ + " does not lie in there");
    range = {*low, *high};
    return {};
  }

  static std::optional<std::int64_t> to_number(std::string_view text) {
    text = trimmed(text);
    std::int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  const std::string_view file_;
  std::size_t line_ = 0;
  std::string key_, value_;
  std::set<std::string> seen_;
  Scenario scenario_;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view file) {
  return Parser(file).parse(text);
}

Result<std::vector<Scenario>> load_scenarios(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.path().extension() == ".scenario") files.push_back(entry.path());
  if (files.empty()) return fail(ErrorCode::kNotFound, directory + " has no *.scenario files");
  std::ranges::sort(files);
  std::vector<Scenario> scenarios;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    auto scenario = parse_scenario(std::string(std::istreambuf_iterator<char>(in), {}), file.string());
    if (!scenario) return std::unexpected(std::move(scenario.error()));
    scenarios.push_back(std::move(*scenario));
  }
  return scenarios;
}

}  // namespace perdure::sim
