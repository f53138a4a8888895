#include "sim/trace.h"

namespace perdure::sim {

std::string show_time(Duration since_beginning) {
  auto micros = since_beginning.count() / 1000;
  std::string fraction = std::to_string(micros % 1'000'000);
  return std::to_string(micros / 1'000'000) + "." + std::string(6 - fraction.size(), '0') + fraction;
}

std::string Trace::line(SteadyTime when, std::string_view who, std::string_view what) {
  std::string time = show_time(when - kBeginning);
  std::string text(time.size() < 11 ? 11 - time.size() : 0, ' ');
  text += time + "  ";
  text += who;
  text.append(who.size() < 8 ? 8 - who.size() : 0, ' ');
  return text += " " + std::string(what);
}

}  // namespace perdure::sim
