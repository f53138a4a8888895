#include "kill_records.h"

#include <algorithm>
#include <sstream>

#include "base/endian.h"
#include "scratch.h"

namespace perdure::e2e {

std::vector<sim::Value> decode_list(const std::optional<Bytes>& stored) {
  std::vector<sim::Value> list;
  if (stored)
    for (std::size_t at = 0; at + 8 <= stored->size(); at += 8)
      list.push_back(load_little<sim::Value>(stored->data() + at));
  return list;
}

void append_value(Bytes& stored, sim::Value value) {
  char bytes[8];
  store_little(bytes, value);
  stored.append(bytes, sizeof bytes);
}

std::string records_file(const std::string& directory, int process, int life, const std::string& kind) {
  return directory + "/" + std::to_string(process) + "-" + std::to_string(life) + "." + kind;
}

Result<Life> KillRecords::add(const std::string& directory, int process, int life, std::int64_t end_ns) {
  std::vector<std::int64_t> completions;
  std::map<std::string, Counter> begun;
  std::istringstream lines(read_whole(records_file(directory, process, life, "counters")));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, counter;
    std::int64_t time = 0;
    words >> what >> counter >> time;
    Counter& counted = counters[counter];
    if (what == "begun" && !lines.eof()) ++counted.unknown;
    if ((what == "ok" || what == "failed") && !lines.eof()) --counted.unknown;
    if (what == "ok" && !lines.eof()) ++counted.acknowledged, completions.push_back(time);
  }
  std::string name = records_file(directory, process, life, "history");
  auto parsed = sim::parse_history(read_whole(name), name);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  for (std::size_t number = 0; number < parsed->size(); ++number)
    if (parsed->txn(number).ending == sim::Ending::kOk) completions.push_back(parsed->txn(number).completed_ns);
  history.merge(*parsed);

  Life told{completions.size(), 0};
  std::ranges::sort(completions);
  if (!completions.empty()) completions.push_back(std::max(end_ns, completions.back()));
  for (std::size_t i = 1; i < completions.size(); ++i)
    told.longest_stall_ns = std::max(told.longest_stall_ns, completions[i] - completions[i - 1]);
  return told;
}

Result<void> KillRecords::add_final_lists(Store& store) {
  auto rows = store.read(
      [](Reader& reader) { return reader.get_range(prefix_range("list/"), {.limit = std::size_t{1} << 40}); });
  if (!rows) return std::unexpected(std::move(rows.error()));
  for (const Row& row : *rows)
    history.add_final_read(std::stoull(row.key.substr(list_key(0).size() - 1)), decode_list(row.value));
  return {};
}

}  // namespace perdure::e2e
