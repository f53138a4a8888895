// libFuzzer target: whatever bytes are a time zone file give a zone whose clock can be asked anything.
//
//     cmake --preset clang && ninja -C build/clang zone_fuzz && build/clang/src/schedule/zone_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "schedule/zone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  using namespace perdure::schedule;
  auto transitions = parse_tzif(BytesView(reinterpret_cast<const char*>(data), size));
  if (!transitions) return 0;
  check(transitions->front().begin == kBeginningOfTime, "a zone has no beginning");
  for (std::size_t i = 1; i < transitions->size(); ++i)
    check((*transitions)[i - 1].begin < (*transitions)[i].begin, "transitions are in order");
  Zone zone("any", std::move(*transitions));
  for (Seconds utc = -2'000'000'000; utc < 9'000'000'000; utc += 123'456'789) {
    Seconds shown = zone.local(utc);
    check(zone.latest_local(utc) >= shown, "what is shown now is among what was shown");
    Seconds first = zone.first_shown(shown);
    check(first <= utc && zone.local(first) >= shown, "it was first shown by then");
  }
  return 0;
}
