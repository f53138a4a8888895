// Random expressions in zones with changes of every kind, against a walk through all minutes.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <set>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

constexpr Seconds kMinute = 60, kDay = 86'400;

/// From `least` to one less than `end`, of which a generator on its own would prefer the first.
template <class T>
T any_of(T least, T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(least, end));
}

/// A field as text, and what it means.
struct AnyField {
  std::string text;
  std::set<int> numbers;
  bool star = false;
};

/// A star alone in so many of ten cases.
AnyField any_field(int least, int most, int stars) {
  AnyField field;
  if (any_of(0, 10) < stars) {
    field = {"*", {}, true};
    for (int number = least; number <= most; ++number) field.numbers.insert(number);
    return field;
  }
  int items = any_of(1, 4);
  for (int i = 0; i < items; ++i) {
    int kind = any_of(0, 6);
    int first = any_of(least, most + 1), last = any_of(first, most + 1);
    int step = any_of(1, most + 1);
    std::string text;
    if (kind == 0) {
      text = "*", first = least, last = most, step = 1;
    } else if (kind == 1) {
      text = "*/" + std::to_string(step), first = least, last = most;
    } else if (kind == 2) {
      text = std::to_string(first) + "-" + std::to_string(last), step = 1;
    } else if (kind == 3) {
      text = std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(step);
    } else if (kind == 4) {
      text = std::to_string(first) + "/" + std::to_string(step), last = most;
    } else {
      text = std::to_string(first), last = first, step = 1;
    }
    if (i == 0) field.star = kind < 2;
    field.text += (i == 0 ? "" : ",") + text;
    for (int number = first; number <= last; number += step) field.numbers.insert(number);
  }
  return field;
}

struct AnyCron {
  AnyField minute = any_field(0, 59, 0), hour = any_field(0, 23, 1), day = any_field(1, 31, 7),
           month = any_field(1, 12, 9), weekday = any_field(0, 6, 7);

  std::string text() const {
    return minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + weekday.text;
  }
  bool every_hour() const { return hour.star || hour.numbers.size() == 24; }
  bool fits(Seconds local) const {
    using namespace std::chrono;
    auto date = floor<days>(seconds(local));
    year_month_day ymd{sys_days(date)};
    auto of_day = static_cast<int>(local - Seconds{date.count()} * kDay);
    bool by_day = day.numbers.contains(static_cast<int>(static_cast<unsigned>(ymd.day())));
    bool by_weekday = weekday.numbers.contains(static_cast<int>(std::chrono::weekday(sys_days(date)).c_encoding()));
    return minute.numbers.contains(of_day / 60 % 60) && hour.numbers.contains(of_day / 3600) &&
           month.numbers.contains(static_cast<int>(static_cast<unsigned>(ymd.month()))) &&
           (!day.star && !weekday.star ? by_day || by_weekday : by_day && by_weekday);
  }

  /// The first time after `after`, found by looking at every minute up to `to`.
  std::optional<Seconds> walk(Seconds after, Seconds to, const Zone& zone) const {
    Seconds begun = after - after % kMinute;
    Seconds latest = zone.local(begun);
    for (Seconds past = begun - 3 * kDay; past < begun; past += kMinute) latest = std::max(latest, zone.local(past));
    for (Seconds now = begun + kMinute; now < to; now += kMinute) {
      Seconds shown = zone.local(now);
      if (every_hour()) {
        if (fits(shown)) return now;
        continue;
      }
      while (latest < shown) {
        latest += kMinute;
        if (fits(latest)) return now;
      }
    }
    return std::nullopt;
  }
};

const std::vector<Zone>& zones() {
  static const std::vector<Zone>* loaded = [] {
    auto* all = new std::vector<Zone>;
    for (const char* name : {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
                             "Asia/Kolkata", "America/Sao_Paulo", "Africa/Casablanca", "America/Nuuk", "Asia/Gaza",
                             "Europe/Dublin", "Antarctica/Troll", "Pacific/Kwajalein", "Asia/Pyongyang"})
      all->push_back(*Zone::load(name));
    return all;
  }();
  return *loaded;
}

Seconds seconds_of(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

TEST(CronRandom, NextIsWhatAWalkThroughAllMinutesFinds) {
  const Seconds begin = seconds_of(at("1973-01-01 00:00")), end = seconds_of(at("2045-01-01 00:00"));
  bool found_some = false, found_none = false;
  EXPECT_TRUE(rc::check([&] {
    AnyCron any;
    auto cron = Cron::parse(any.text());
    if (!cron) {
      RC_ASSERT(cron.error().message.find("never fires") != std::string::npos);
      return;
    }
    for (int i = 0; i < 20; ++i) {
      const Zone& zone = zones()[any_of<std::size_t>(0, zones().size())];
      Seconds after = any_of(begin, end);
      // Mostly near a change.
      Seconds change = zone.segment(after).end;
      if (change < end && i > 0) after = change + any_of<Seconds>(-4 * 3600, 2 * 3600);
      const Seconds to = after + 3 * kDay;
      auto next = cron->next(WallTime(std::chrono::seconds(after)), zone);
      RC_ASSERT(next.has_value());
      auto walked = any.walk(after, to, zone);
      (walked ? found_some : found_none) = true;
      if (walked)
        RC_ASSERT(seconds_of(*next) == *walked);
      else
        RC_ASSERT(seconds_of(*next) >= to - kMinute);
    }
  }));
  EXPECT_TRUE(found_some && found_none);
}

TEST(CronRandom, TextOfAnyKindIsReadOrRefusedWithAReason) {
  EXPECT_TRUE(rc::check([] {
    auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789*/-,? \tabcdefjlmnoprstuwyLW#@")));
    auto cron = Cron::parse(text);
    if (!cron)
      RC_ASSERT(cron.error().message.starts_with("the cron expression \"") ||
                cron.error().message.starts_with("a cron expression"));
  }));
}

}  // namespace
}  // namespace perdure::schedule
