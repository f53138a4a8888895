#include "cli/suggest.h"

#include <algorithm>
#include <vector>

namespace perdure::cli {
namespace {

// How many letters must be put in, left out or replaced to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string> names) {
  std::string best;
  std::size_t least = std::min<std::size_t>(3, (typed.size() + 1) / 2 + 1);
  for (const std::string& name : names) {
    std::size_t off = distance(typed, name);
    if (off >= least) continue;
    least = off;
    best = name;
  }
  return best;
}

}  // namespace perdure::cli
