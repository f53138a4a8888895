#include "tally.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace perdure::sim {
namespace {

constexpr char kNewline = '\x1f';

template <class... T>
std::string formatted(const char* format, T... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string line = text;
  std::ranges::replace(line, '\n', kNewline);
  return line;
}

std::string unescaped(const std::string& line) {
  std::string text = line;
  std::ranges::replace(text, kNewline, '\n');
  return text;
}

void Tally::add(const Scenario& scenario, const RunOutcome& outcome) {
  ++runs;
  operations += outcome.operations;
  steps += outcome.steps;
  virtual_ms += static_cast<std::uint64_t>(outcome.virtual_time / std::chrono::milliseconds(1));
  for (const FaultInfo& fault : fault_table())
    faults[std::string(fault.name)] += outcome.faults[static_cast<std::size_t>(fault.kind)];
  ++scenarios[scenario.name];
}

void Tally::add(const Tally& other) {
  runs += other.runs;
  repeated += other.repeated;
  operations += other.operations;
  virtual_ms += other.virtual_ms;
  steps += other.steps;
  for (const auto& [name, count] : other.faults) faults[name] += count;
  for (const auto& [name, count] : other.scenarios) scenarios[name] += count;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

std::string Tally::to_lines() const {
  std::ostringstream out;
  out << "runs " << runs << "\nrepeated " << repeated << "\noperations " << operations << "\nvirtual_ms " << virtual_ms
      << "\nsteps " << steps << "\n";
  for (const auto& [name, count] : faults) out << "fault " << name << " " << count << "\n";
  for (const auto& [name, count] : scenarios) out << "scenario " << name << " " << count << "\n";
  for (const std::string& failure : failures) out << "failure " << escaped(failure) << "\n";
  return out.str();
}

bool Tally::read_line(const std::string& line) {
  std::istringstream in(line);
  std::string word, name;
  std::uint64_t count = 0;
  in >> word;
  if (word == "failure") {
    failures.push_back(unescaped(line.substr(8)));
    return true;
  }
  if (word == "fault" || word == "scenario") {
    in >> name >> count;
    (word == "fault" ? faults : scenarios)[name] += count;
    return true;
  }
  in >> count;
  if (word == "runs")
    runs += count;
  else if (word == "repeated")
    repeated += count;
  else if (word == "operations")
    operations += count;
  else if (word == "virtual_ms")
    virtual_ms += count;
  else if (word == "steps")
    steps += count;
  else
    return false;
  return true;
}

std::string Tally::report(double seconds) const {
  std::string text = formatted("simulation: %llu seeds, %zu failed, in %.0f s\n", static_cast<unsigned long long>(runs),
                               failures.size(), seconds);
  text += formatted("  virtual time          %.1f hours\n", static_cast<double>(virtual_ms) / 3'600'000);
  text += formatted("  operations checked    %llu\n", static_cast<unsigned long long>(operations));
  text += formatted("  tasks                 %llu\n", static_cast<unsigned long long>(steps));
  text += formatted("  repeated and equal    %llu runs\n", static_cast<unsigned long long>(repeated));
  text += "  faults by class\n";
  for (const FaultInfo& fault : fault_table()) {
    auto found = faults.find(std::string(fault.name));
    text += formatted("    %-20s%llu\n", std::string(fault.name).c_str(),
                      static_cast<unsigned long long>(found == faults.end() ? 0 : found->second));
  }
  text += "  runs by scenario\n";
  for (const auto& [name, count] : scenarios)
    text += formatted("    %-20s%llu\n", name.c_str(), static_cast<unsigned long long>(count));
  return text;
}

}  // namespace perdure::sim
