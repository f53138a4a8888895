// Events that come by the clock: each nominal time of a schedule becomes one, whichever processes are there.
#include <cstdio>
#include <cstdlib>

#include "perdure/queue.h"
#include "perdure/schedule.h"

using namespace perdure;
using namespace std::chrono_literals;

namespace {

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

Value report(Job& job) {
  return "a report for " + *job.value().as_text() + ", by " + job.event().module + " " + job.event().modifier;
}

}  // namespace

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Queue queue = must(Queue::open(store));
  if (!queue.work("report", report)) return 1;

  // [first]
  Schedules schedules = must(Schedules::open(store));  // In as many processes as you like.

  // By the clock on the wall, also when it is changed.
  must(schedules.set("weekdays",
                     {.cron = "30 6 * * mon-fri", .timezone = "Europe/Berlin", .worker = "report", .value = "Berlin"}));
  // By elapsed time, the first at once. One event for all that were missed while no process was there.
  must(schedules.set("halfday", {.every = "Every 12hrs", .worker = "report", .value = "all", .missed = Missed::kOne}));
  // [first]

  // Once more by hand, outside of the series.
  Emitted now = must(schedules.run("weekdays"));
  std::printf("%s\n", must(queue.wait(now.id, 10s)).result.as_text()->c_str());

  // What is wrong with one is said in one sentence.
  for (const char* cron : {"0 25 * * *", "0 0 30 2 *"}) {
    auto refused = schedules.set("wrong", {.cron = cron, .worker = "report"});
    if (!refused) std::printf("%s\n", refused.error().message.c_str());
  }

  // [pause]
  if (!schedules.pause("halfday", {.by = "ann", .reason = "the printer is empty"})) return 1;
  for (const ScheduleInfo& info : must(schedules.list()))
    std::printf("%s: %s\n", info.name.c_str(), info.paused ? info.paused->reason.c_str() : "goes on");
  // [pause]
}
