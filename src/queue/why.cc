// Why an event does not run just now, in words.
#include <chrono>
#include <cstdio>

#include "queue/inspect.h"
#include "queue/rules.h"
#include "queue/worker_table.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

std::string text_of(DueTime time) {
  using namespace std::chrono;
  auto since = time.time_since_epoch();
  sys_days day{floor<days>(since)};
  year_month_day date(day);
  hh_mm_ss clock(since - floor<days>(since));
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string text_of(WallTime time) {
  return text_of(std::chrono::floor<std::chrono::milliseconds>(time));
}

Why::Reason rule_reason(const Rule& rule) {
  bool pause = rule.type == Rule::Type::kPause;
  std::string text = pause ? "paused" : "blocked";
  if (!rule.by.empty()) text += " by " + rule.by;
  text += " since " + text_of(rule.since);
  if (!rule.reason.empty()) text += " (" + rule.reason + ")";
  if (rule.until) text += " until " + text_of(*rule.until);
  return {pause ? "paused" : "blocked", std::move(text), rule.since, rule.by};
}

/// How many ready events are claimed before this one, up to a bound.
std::string place_in_line(Reader& reader, BytesView prefix, const EventRow& row) {
  constexpr std::size_t kCounted = 1'000;
  KeyRange before = tuple::extensions(ready_key(prefix));
  before.end = tuple::pack_onto(ready_key(prefix), row.priority, row.stamp);
  std::size_t count = reader.get_range(before, {.limit = kCounted}).size();
  if (count == 0) return "it is the next one";
  return (count == kCounted ? "1000 events or more are"
          : count == 1      ? "1 event is"
                            : std::to_string(count) + " events are") +
         std::string(" before it");
}

void ready_reasons(Reader& reader, BytesView prefix, const Loaded& event, WallTime now, Why& why) {
  const auto names = event.row.names();
  for (const Rule& rule : read_rules(reader, prefix, now)) why.reasons.push_back(rule_reason(rule));
  if (reader.get_range(tuple::extensions(servers_key(prefix)), {.limit = 1}).empty())
    why.reasons.push_back({"unserved", "no node has a handler for the worker " + std::string(names.worker)});
  bool waits = !names.limit_key.empty() &&
               reader.get(tuple::pack_onto(waiting_key(prefix, names.limit_key), event.row.priority, event.row.stamp));
  if (waits)
    why.reasons.push_back({"limit_key", "as many events with the limit key " + std::string(names.limit_key) +
                                            " are running as the worker allows"});
  auto settings = read_settings(reader, prefix);
  auto used = reader.get(rate_key(prefix));
  if (settings.rate && used && wall_time(decode_counter(used)) > now - settings.rate->per / settings.rate->count)
    why.reasons.push_back({"rate", "the worker takes " + std::to_string(settings.rate->count) + " events in " +
                                       std::to_string(std::chrono::duration<double>(settings.rate->per).count()) +
                                       " s"});
  if (why.reasons.empty()) why.reasons.push_back({"behind", "ready: " + place_in_line(reader, prefix, event.row)});
}

}  // namespace

Result<Why> why_not(Reader& reader, std::string_view space, const Uuid& id, WallTime now) {
  SystemAccess access(reader);
  auto event = load(reader, space, id);
  if (!event) return fail(ErrorCode::kNotFound, "there is no event " + to_string(id) + ", or it has ended");
  Bytes prefix = worker_prefix(space, event->row.names().worker);
  Why why;
  const EventRow& row = event->row;
  switch (row.state) {
    case Stored::kScheduled:
      why.reasons.push_back({"scheduled", row.retries > 0 && !row.failures.empty()
                                              ? "it is tried again at " + text_of(row.delay_until) +
                                                    ", after attempt " + std::to_string(row.attempts) +
                                                    " failed: " + row.failures.back().error
                                              : "it is due at " + text_of(row.delay_until)});
      for (const Rule& rule : read_rules(reader, prefix, now)) why.reasons.push_back(rule_reason(rule));
      break;
    case Stored::kRunning: {
      auto open = row.locked_until ? std::nullopt : session::read_open(reader, row.session);
      std::string owner = row.locked_until ? "a claim until " + text_of(*row.locked_until)
                          : open           ? "node " + open->name
                                           : "a node that is gone, and will be run again";
      why.reasons.push_back({"running",
                             "it is running since " + text_of(row.locked_at.value_or(now)) + ", under " + owner,
                             row.locked_at});
      break;
    }
    case Stored::kDead:
      why.reasons.push_back({"dead", "it is dead after " + std::to_string(row.attempts) + " attempts" +
                                         (row.failures.empty() ? "" : ": " + row.failures.back().error) +
                                         "; redrive it to try again"});
      break;
    default:
      ready_reasons(reader, prefix, *event, now, why);
  }
  for (const auto& reason : why.reasons) why.text += (why.text.empty() ? "" : "; ") + reason.text;
  return why;
}

}  // namespace perdure::queue
