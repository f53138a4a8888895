// What the workers of the kill test write down, and what the test makes of it.
//
// Each life of each process writes two files: PROCESS-LIFE.history, of list appends, in the format of sim/history.h,
// and PROCESS-LIFE.counters, with a line "begun COUNTER" before each increment and "ok|failed|unknown COUNTER TIME"
// after.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "perdure/bytes.h"
#include "perdure/store.h"
#include "sim/history.h"

namespace perdure::e2e {

inline constexpr BytesView kAddCounter = "counter/add";
inline constexpr BytesView kReadCounter = "counter/read-modify-write";

inline Bytes list_key(sim::Key key) {
  return "list/" + std::to_string(key);
}
/// A list as it is stored: eight bytes a value.
std::vector<sim::Value> decode_list(const std::optional<Bytes>& stored);
void append_value(Bytes& stored, sim::Value value);

std::string records_file(const std::string& directory, int process, int life, const std::string& kind);

/// What the records of one life say.
struct Life {
  std::uint64_t completed = 0;
  std::int64_t longest_stall_ns = 0;  ///< Between completions, from the first to `end_ns`.
};

/// What the records of all lives say, taken together.
struct KillRecords {
  struct Counter {
    std::int64_t acknowledged = 0;
    std::int64_t unknown = 0;
  };
  std::map<std::string, Counter> counters;
  sim::History history;

  /// Reads the files of a life that ended at `end_ns`.
  Result<Life> add(const std::string& directory, int process, int life, std::int64_t end_ns);
  /// Adds the lists as they are in the store now.
  Result<void> add_final_lists(Store& store);
};

}  // namespace perdure::e2e
