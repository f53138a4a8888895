#include "log_check.h"

#include <cstdio>
#include <sstream>

namespace perdure::e2e {
namespace {

LogEntry decode(const Bytes& bytes) {
  LogEntry entry;
  std::istringstream(bytes) >> entry.process >> entry.chain >> entry.n;
  return entry;
}

}  // namespace

Bytes log_key(std::int64_t place) {
  char key[32];
  std::snprintf(key, sizeof key, "log/%012lld", static_cast<long long>(place));
  return key;
}

Bytes LogEntry::encode() const {
  return std::to_string(process) + " " + std::to_string(chain) + " " + std::to_string(n);
}

Bytes LogEntry::chain_key(int copy) const {
  return "chain/" + std::to_string(process) + "/" + std::to_string(chain) + "/" + std::to_string(copy);
}

void Acknowledged::hear(const std::string& event) {
  std::istringstream words(event);
  std::string kind, entry;
  std::int64_t place = 0;
  words >> kind >> place;
  if (kind == "end") end_seen = std::max(end_seen, place);
  if (kind != "ack") return;
  std::getline(words >> std::ws, entry);
  auto [known, added] = entries.emplace(place, entry);
  if (!added && known->second != entry)
    contradictions.push_back("place " + std::to_string(place) + " was given to (" + known->second + ") and (" + entry +
                             ")");
}

std::vector<std::string> check_log(Store& store, const Acknowledged& acknowledged) {
  std::vector<std::string> wrong;
  auto object = [&](std::string what) {
    if (wrong.size() < 10) wrong.push_back(std::move(what));
  };
  auto read = store.read([&](Reader& reader) {
    wrong = acknowledged.contradictions;  // Anew in each run of the body.
    std::int64_t end = decode_counter(reader.get(kLogEnd));
    if (std::int64_t total = decode_counter(reader.get(kLogTotal)); total != end)
      object("the counter says " + std::to_string(total) + ", the log ends at " + std::to_string(end));
    if (acknowledged.end_seen > end)
      object("a reader was shown a log of " + std::to_string(acknowledged.end_seen) + ", now it ends at " +
             std::to_string(end));
    auto rows = reader.get_range(prefix_range("log/"), {.limit = std::size_t{1} << 40});
    if (static_cast<std::int64_t>(rows.size()) != end)
      object("the log has " + std::to_string(rows.size()) + " rows and ends at " + std::to_string(end));
    std::map<std::pair<int, int>, std::int64_t> newest;
    std::map<Bytes, Bytes> by_key;
    for (std::int64_t place = 1; const Row& row : rows) {
      if (row.key != log_key(place++)) object("the log has a hole before " + printable(row.key));
      LogEntry entry = decode(row.value);
      std::int64_t& last = newest[{entry.process, entry.chain}];
      if (entry.n != last + 1)
        object(printable(row.key) + " does not follow " + std::to_string(last) + ": " + row.value);
      last = entry.n;
      by_key.emplace(row.key, row.value);
    }
    for (const auto& [place, entry] : acknowledged.entries) {
      auto found = by_key.find(log_key(place));
      if (found == by_key.end() || found->second != entry)
        object("acknowledged, but not there: (" + entry + ") at " + std::to_string(place));
    }
    for (const auto& [chain, last] : newest)
      for (int copy = 0; copy < kCopies; ++copy) {
        Bytes key = LogEntry{chain.first, chain.second, 0}.chain_key(copy);
        if (std::int64_t n = decode_counter(reader.get(key)); n != last)
          object(key + " is " + std::to_string(n) + ", its newest entry " + std::to_string(last));
      }
  });
  if (!read) object("cannot read: " + to_string(read.error()));
  return wrong;
}

}  // namespace perdure::e2e
