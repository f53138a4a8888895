// Reading for answers that are given in pages, whose rows may be of any size.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "perdure/transaction.h"
#include "store/ranges.h"

namespace perdure {

/// The rows of a range from its beginning: up to `limit` of them, and no more once they have `bytes` bytes. So a page
/// may be short though there is more.
inline std::vector<Row> read_page(Reader& reader, KeyRange range, std::size_t limit,
                                  std::size_t bytes = std::size_t{4} << 20) {
  std::vector<Row> page;
  std::size_t read = 0, at_once = 16;
  while (page.size() < limit && read < bytes) {
    auto rows = reader.get_range(range, {.limit = std::min(at_once, limit - page.size())});
    for (const Row& row : rows) read += row.value.size();
    bool last = rows.size() < at_once;
    std::ranges::move(rows, std::back_inserter(page));
    if (last) break;
    range.begin = next_key(page.back().key);
    // Small rows are read many at a time.
    if (read < bytes / 64) at_once *= 8;
  }
  return page;
}

}  // namespace perdure
