// Judges list-append histories that were written to files: check_history FILE...
// All of them together are one history (sim/history.h says what a file looks like). Exits 0 if it is strictly
// serializable, 1 with what is wrong if it is not, 2 if a file cannot be read.
#include <fstream>
#include <iostream>
#include <iterator>

#include "sim/list_append.h"

int main(int count, char** arguments) {
  using namespace perdure::sim;
  if (count < 2) {
    std::cerr << "usage: " << arguments[0] << " FILE...\n";
    return 2;
  }
  History history;
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto parsed = parse_history(text, arguments[i]);
    if (!file || !parsed) {
      std::cerr << (parsed ? std::string(arguments[i]) + ": cannot be read" : parsed.error().message) << "\n";
      return 2;
    }
    history.merge(*parsed);
  }
  Verdict verdict = check_list_append(history);
  std::cout << to_string(verdict) << "\n";
  return verdict.ok ? 0 : 1;
}
