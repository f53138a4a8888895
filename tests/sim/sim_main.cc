#include <cstdio>
#include <cstdlib>
#include <string>
#include "sim/run.h"
using namespace perdure; using namespace perdure::sim;
int main(int argc, char** argv) {
  auto s = load_scenarios(PERDURE_SCENARIOS);
  if (!s) { std::printf("%s\n", to_string(s.error()).c_str()); return 2; }
  unsigned long from = std::strtoul(argv[1],0,10), n = std::strtoul(argv[2],0,10);
  std::string only = argc > 3 ? argv[3] : "";
  for (unsigned long seed = from; seed < from+n; ++seed)
    for (auto& sc : *s) {
      if (!only.empty() && sc.name != only) continue;
      auto o = run_once(sc, seed, argc>4 ? Trace::Keep::kLines : Trace::Keep::kHash);
      for (auto& l : o.trace) std::printf("%s\n", l.c_str());
      std::fflush(stdout); if (!o.violations.empty()||n<4||o.steps>100000) std::printf("%s %lu: ops %lu steps %lu time %.1f hash %lx %s\n", sc.name.c_str(), seed, o.operations, o.steps, double(o.virtual_time.count())/1e9, o.trace_hash, o.violations.empty()?"":o.violations[0].c_str());
    }
}
