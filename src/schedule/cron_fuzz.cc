// libFuzzer target: whatever text is a cron expression fires, in order, and at whole minutes of the clock on the wall.
//
//     cmake --preset clang && ninja -C build/clang cron_fuzz && build/clang/src/schedule/cron_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "schedule/cron.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  using namespace perdure::schedule;
  static const Zone kZone = [] {
    auto transitions = *expand_rule("CET-1CEST,M3.5.0,M10.5.0/3", 0);
    transitions.front().begin = kBeginningOfTime;
    return Zone("Berlin", std::move(transitions));
  }();
  auto cron = Cron::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!cron) {
    check(!cron.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  WallTime time(std::chrono::hours(24 * 365 * 56));
  for (int i = 0; i < 5; ++i) {
    auto next = cron->next(time, kZone);
    check(next && *next > time, "it fires again, and later");
    check(next->time_since_epoch() % std::chrono::minutes(1) == Duration::zero(), "it fires on the minute");
    time = *next;
  }
  return 0;
}
