// Times as the tests of this folder write them.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "schedule/cron.h"
#include "schedule/zone.h"

namespace perdure::schedule {

/// "2026-03-29 01:00" or "2026-03-29 01:00:30" of UTC.
inline WallTime at(const std::string& text) {
  int year = 0, second = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0;
  int read = std::sscanf(text.c_str(), "%d-%u-%u %u:%u:%d", &year, &month, &day, &hour, &minute, &second);
  EXPECT_GE(read, 5) << text;
  using namespace std::chrono;
  auto date = sys_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day));
  return WallTime(date.time_since_epoch() + hours(hour) + minutes(minute) + seconds(second));
}

/// The same back, with seconds if there are any.
inline std::string text_of(WallTime time) {
  using namespace std::chrono;
  auto date = floor<days>(time.time_since_epoch());
  year_month_day ymd{sys_days(date)};
  auto of_day = duration_cast<seconds>(time.time_since_epoch() - date).count();
  char text[40];
  std::snprintf(text, sizeof text, of_day % 60 == 0 ? "%04d-%02u-%02u %02d:%02d" : "%04d-%02u-%02u %02d:%02d:%02d",
                static_cast<int>(ymd.year()), static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                static_cast<int>(of_day / 3600), static_cast<int>(of_day / 60 % 60), static_cast<int>(of_day % 60));
  return text;
}

/// The first `count` times after `after` at which `expression` fires in `zone`, in UTC.
inline std::vector<std::string> fires(const std::string& expression, const std::string& zone, const std::string& after,
                                      int count) {
  auto cron = Cron::parse(expression);
  auto place = Zone::load(zone);
  EXPECT_TRUE(cron && place) << expression << " in " << zone;
  if (!cron || !place) return {};
  std::vector<std::string> out;
  WallTime time = at(after);
  for (int i = 0; i < count; ++i) {
    auto next = cron->next(time, *place);
    if (!next) break;
    EXPECT_GT(*next, time) << expression << " after " << text_of(time);
    time = *next;
    out.push_back(text_of(time));
  }
  return out;
}

}  // namespace perdure::schedule
