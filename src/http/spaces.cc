#include "http/spaces.h"

#include <optional>

#include "perdure/tuple.h"
#include "perdure/tuple_reader.h"
#include "store/ranges.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

/// Parts whose rows begin with a space; see docs/internals/key_layout.md.
constexpr const char* kParts[] = {"actor", "debounce", "key",    "kind",    "partition",
                                  "push",  "queue",    "remote", "schedule"};

/// The first space after `after` in which the part has a row.
std::optional<std::string> next_space(Reader& reader, const char* part, const std::string& after) {
  Bytes prefix = tuple::pack_onto(kSystemKeys, part);
  KeyRange range = tuple::extensions(prefix);
  if (!after.empty()) range.begin = tuple::extensions(tuple::pack_onto(prefix, after)).end;
  auto rows = reader.get_range(range, {.limit = 1});
  if (rows.empty()) return std::nullopt;
  tuple::Reader key(rows[0].key);
  key.skip_prefix(prefix);
  std::string space(key.next_text());
  return key.ok() ? std::optional(space) : std::nullopt;
}

}  // namespace

std::vector<std::string> list_spaces(Reader& reader, const std::string& after, std::size_t limit) {
  SystemAccess access(reader);
  std::vector<std::string> spaces;
  std::string last = after;
  while (spaces.size() < limit) {
    std::optional<std::string> first;
    for (const char* part : kParts)
      if (auto next = next_space(reader, part, last); next && (!first || *next < *first)) first = next;
    if (!first) break;
    spaces.push_back(*first);
    last = *first;
  }
  return spaces;
}

}  // namespace perdure::http
