#include "schedule/zone.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/endian.h"
#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

template <class T>
void put_big(Bytes& out, T value) {
  char bytes[sizeof(T)];
  store_big(bytes, value);
  out.append(bytes, sizeof bytes);
}

/// A file as zic writes it by default: no transitions that the rule gives.
Bytes slim_file(const std::vector<Transition>& transitions, const std::string& rule, std::uint32_t leaps = 0) {
  auto header = [](std::uint32_t times, std::uint32_t types, std::uint32_t leap_count) {
    Bytes out = "TZif2" + Bytes(15, '\0');
    for (std::uint32_t count : {0U, 0U, leap_count, times, types, types == 0 ? 0U : 4U}) put_big(out, count);
    return out;
  };
  auto count = static_cast<std::uint32_t>(transitions.size());
  Bytes out = header(0, 1, 0) + Bytes(6, '\0') + Bytes("LMT\0", 4) + header(count - 1, count, leaps);
  for (std::uint32_t i = 1; i < count; ++i) put_big(out, static_cast<std::uint64_t>(transitions[i].begin));
  for (std::uint32_t i = 1; i < count; ++i) out.push_back(static_cast<char>(i));
  for (const Transition& transition : transitions) {
    put_big(out, static_cast<std::uint32_t>(transition.offset));
    out += Bytes(2, '\0');
  }
  out += Bytes("LMT\0", 4) + Bytes(std::size_t{12} * leaps, '\0') + "\n" + rule + "\n";
  return out;
}

Bytes berlin_file() {
  std::ifstream file(std::string(kZoneinfo) + "/Europe/Berlin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ZoneDirectory : public ::testing::Test {
 protected:
  ZoneDirectory() {
    std::string made = ::testing::TempDir() + "/zones-XXXXXX";
    directory_ = ::mkdtemp(made.data());
  }
  ~ZoneDirectory() override { fs::remove_all(directory_); }
  void write(const std::string& name, const Bytes& bytes) {
    fs::path path = fs::path(directory_) / name;
    fs::create_directories(path.parent_path());
    fs::path beside = path;
    beside += ".new";
    std::ofstream(beside, std::ios::binary) << bytes;
    fs::rename(beside, path);
  }
  std::string directory_;
};

Seconds seconds_of(const std::string& utc) {
  return std::chrono::duration_cast<std::chrono::seconds>(at(utc).time_since_epoch()).count();
}

// The whole database.

std::vector<std::string> all_zones() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kZoneinfo)) {
    std::string name = entry.path().lexically_relative(kZoneinfo).string();
    if (!entry.is_regular_file() || !std::isupper(static_cast<unsigned char>(name[0]))) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string magic(4, '\0');
    file.read(magic.data(), 4);
    if (magic == "TZif") names.push_back(name);
  }
  return names;
}

Seconds offset_by_libc(Seconds utc) {
  std::tm broken{};
  std::time_t time = utc;
  ::localtime_r(&time, &broken);
  return broken.tm_gmtoff;
}

TEST(ZoneDatabase, EveryZoneIsAsTheCLibraryHasIt) {
  auto names = all_zones();
  ASSERT_GT(names.size(), 300U);
  std::mt19937_64 random(20260101);
  std::uniform_int_distribution<Seconds> any(0, seconds_of("2250-01-01 00:00"));
  for (const std::string& name : names) {
    auto zone = Zone::load(name);
    ASSERT_TRUE(zone) << zone.error().message;
    ASSERT_EQ(::setenv("TZ", name.c_str(), 1), 0);
    ::tzset();
    std::vector<Seconds> moments;
    for (int i = 0; i < 100; ++i) moments.push_back(any(random));
    // Both sides of each change since 1970.
    for (Seconds at = 0; at < kEndOfRules - 400 * 86'400; at = zone->segment(at).end) {
      moments.push_back(at);
      if (at > 0) moments.push_back(at - 1);
    }
    for (Seconds moment : moments)
      ASSERT_EQ(zone->segment(moment).offset, offset_by_libc(moment)) << name << " at " << moment;
  }
  ::unsetenv("TZ");
  ::tzset();
}

// Files.

TEST(ZoneFile, TheRuleGoesOnWhereTransitionsEnd) {
  auto berlin = parse_tzif(slim_file({{0, 3208}, {-2422054408, 3600}, {seconds_of("1996-10-27 01:00"), 3600}},
                                     "CET-1CEST,M3.5.0,M10.5.0/3"));
  ASSERT_TRUE(berlin) << berlin.error().message;
  Zone zone("Berlin", *berlin);
  EXPECT_EQ(zone.segment(seconds_of("2026-03-29 00:59:59")).offset, 3600);
  EXPECT_EQ(zone.segment(seconds_of("2026-03-29 01:00")).offset, 7200);
  EXPECT_EQ(zone.segment(seconds_of("2026-10-25 00:59:59")).offset, 7200);
  EXPECT_EQ(zone.segment(seconds_of("2199-07-01 00:00")).offset, 7200);
  EXPECT_EQ(zone.segment(seconds_of("1880-01-01 00:00")).offset, 3208);
}

TEST(ZoneFile, TheRuleHoldsFromTheLastTransitionOnlyEvenIfNothingChangesThere) {
  // By its rule, clocks would have been changed in 2000 already.
  Seconds last = seconds_of("2020-06-01 00:00");
  auto parsed = parse_tzif(slim_file({{0, 3600}, {5, 7200}, {last, 7200}}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  ASSERT_TRUE(parsed);
  Zone zone("any", *parsed);
  EXPECT_EQ(zone.segment(seconds_of("2000-12-01 00:00")).offset, 7200);
  EXPECT_EQ(zone.segment(seconds_of("2020-12-01 00:00")).offset, 3600);
}

TEST(ZoneFile, ATransitionAndARuleThatDisagreeAreKeptInOrder) {
  Seconds late = kEndOfRules + 5;
  auto parsed = parse_tzif(slim_file({{0, 3600}, {late, 7200}}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, (std::vector<Transition>{{kBeginningOfTime, 3600}, {late, 7200}}));
}

std::vector<Transition> rule(const std::string& text, const std::string& after, std::size_t count) {
  auto all = expand_rule(text, seconds_of(after));
  EXPECT_TRUE(all) << text;
  if (!all) return {};
  all->resize(std::min(all->size(), count));
  return *all;
}

TEST(ZoneRule, EveryForm) {
  using Rules = std::vector<Transition>;
  std::string now = "2026-01-01 00:00";
  auto utc = seconds_of;
  EXPECT_EQ(rule("EST5", now, 3), (Rules{{utc(now), -5 * 3600}}));
  EXPECT_EQ(rule("<+0545>-5:45", now, 3), (Rules{{utc(now), 20'700}}));
  EXPECT_EQ(rule("EST5EDT,M3.2.0,M11.1.0", now, 3),
            (Rules{{utc(now), -18'000}, {utc("2026-03-08 07:00"), -14'400}, {utc("2026-11-01 06:00"), -18'000}}));
  // The second half of the year first, as in the south.
  EXPECT_EQ(rule("AEST-10AEDT,M10.1.0,M4.1.0/3", now, 3),
            (Rules{{utc(now), 39'600}, {utc("2026-04-04 16:00"), 36'000}, {utc("2026-10-03 16:00"), 39'600}}));
  // Negative summer time, negative hours, hours past the day's end.
  EXPECT_EQ(rule("IST-1GMT0,M10.5.0,M3.5.0/1", now, 3),
            (Rules{{utc(now), 0}, {utc("2026-03-29 01:00"), 3600}, {utc("2026-10-25 01:00"), 0}}));
  EXPECT_EQ(rule("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", now, 2),
            (Rules{{utc(now), -7200}, {utc("2026-03-29 01:00"), -3600}}));
  EXPECT_EQ(rule("EET-2EEST,M3.4.4/50,M10.4.4/50", now, 2),
            (Rules{{utc(now), 7200}, {utc("2026-03-28 00:00"), 10'800}}));
  // Days by number, without and with 29 February.
  EXPECT_EQ(rule("AAA0BBB,J60/0,J300/0", "2028-01-01 00:00", 2)[1].begin, utc("2028-03-01 00:00"));
  EXPECT_EQ(rule("AAA0BBB,J60/0,J300/0", "2026-01-01 00:00", 2)[1].begin, utc("2026-03-01 00:00"));
  EXPECT_EQ(rule("AAA0BBB,59/0,300/0", "2028-01-01 00:00", 2)[1].begin, utc("2028-02-29 00:00"));
  EXPECT_EQ(rule("AAA0BBB,J59/0,J300/0", "2028-01-01 00:00", 2)[1].begin, utc("2028-02-28 00:00"));
  // Summer all year.
  auto all_year = *expand_rule("XXX3EDT4,0/0,J365/23", utc(now));
  for (const Transition& transition : all_year) EXPECT_EQ(transition.offset, -4 * 3600);
  // Up to November 2262, later than which no WallTime is.
  EXPECT_EQ(expand_rule("EST5EDT,M3.2.0,M11.1.0", utc(now))->back().begin, 9'241'020'000);
}

TEST(ZoneRule, WhatIsNoRuleIsRefused) {
  for (const char* text : {"E", "EST", "EST5EDT", "EST5EDT,M3.2.0", "EST5EDT,M13.2.0,M11.1.0", "EST5EDT,M3.6.0,M11.1.0",
                           "EST5EDT,M3.2.7,M11.1.0", "EST5EDT,J0,J300", "EST5EDT,366,1", "EST25", "EST5:60", "<EST5",
                           "EST5EDT,M3.2.0,M11.1.0x", "EST5EDT,M3.2.0/168,M11.1.0"}) {
    auto expanded = expand_rule(text, 0);
    ASSERT_FALSE(expanded) << text;
    EXPECT_EQ(expanded.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ZoneFile, WhatIsCutShortIsRefused) {
  Bytes whole = berlin_file();
  ASSERT_TRUE(parse_tzif(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(parse_tzif(BytesView(whole).substr(0, size))) << size;
}

TEST(ZoneFile, WhatMakesNoSenseIsRefused) {
  auto message = [](const Bytes& file) {
    auto parsed = parse_tzif(file);
    return parsed ? "no error" : parsed.error().message;
  };
  EXPECT_EQ(message(slim_file({{0, 0}, {5, 60}}, "")), "no error");
  EXPECT_THAT(message(slim_file({{0, 0}, {5, 60}, {5, 0}}, "")), HasSubstr("out of order"));
  EXPECT_THAT(message(slim_file({{0, 0}, {5, 26 * 3600}}, "")), HasSubstr("out of range"));
  EXPECT_THAT(message(slim_file({{0, 0}}, "", 1)), HasSubstr("leap seconds"));
  EXPECT_THAT(message(slim_file({{0, 0}}, "nonsense")), HasSubstr("its rule \"nonsense\""));
  Bytes untyped = slim_file({{0, 0}, {5, 60}}, "");
  // The index of the type, after two headers, a block of one type, and the one transition.
  std::size_t index = 44 + 10 + 44 + 8;
  ASSERT_EQ(untyped[index], 1);
  untyped[index] = 2;
  EXPECT_THAT(message(untyped), HasSubstr("a type that is not there"));
  Bytes old = slim_file({{0, 0}}, "");
  old[4] = '\0';
  EXPECT_THAT(message(old), HasSubstr("first version"));
}

// The clock on the wall.

TEST(ZoneClock, LatestShownAndFirstShownAtAGapAndAFold) {
  Zone berlin = *Zone::load("Europe/Berlin");
  Seconds gap = seconds_of("2026-03-29 01:00"), fold = seconds_of("2026-10-25 01:00");
  EXPECT_EQ(berlin.local(gap - 1), gap - 1 + 3600);
  EXPECT_EQ(berlin.local(gap), gap + 7200);
  for (Seconds skipped : {gap + 3600, gap + 5000, gap + 7200}) EXPECT_EQ(berlin.first_shown(skipped), gap);
  EXPECT_EQ(berlin.first_shown(gap + 7201), gap + 1);
  // 02:30 is first shown half an hour before the change.
  EXPECT_EQ(berlin.first_shown(fold + 5400), fold - 1800);
  EXPECT_EQ(berlin.first_shown(fold + 7200), fold + 3600);
  EXPECT_EQ(berlin.latest_local(fold), fold - 1 + 7200);
  EXPECT_EQ(berlin.latest_local(fold + 3600), fold + 7200);
}

// Names.

TEST(ZoneName, UnknownOnesAreRefusedWithAHint) {
  auto zone = Zone::load("Mars/Phobos");
  ASSERT_FALSE(zone);
  EXPECT_EQ(zone.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(zone.error().message,
            "there is no time zone \"Mars/Phobos\"; write it as in the IANA database, like Europe/Berlin or UTC");
}

TEST(ZoneName, NoPathLeadsOutOfTheDatabase) {
  for (const std::string& name :
       {std::string("../zoneinfo/Europe/Berlin"), std::string("/usr/share/zoneinfo/Europe/Berlin"),
        std::string("Europe/../Europe/Berlin"), std::string("Europe/./Berlin"), std::string("Europe//Berlin"),
        std::string("Europe/Berlin/"), std::string("Europe"), std::string("europe/berlin"), std::string("localtime"),
        std::string("posixrules"), std::string("right/Europe/Berlin"), std::string("zone.tab"), std::string(),
        std::string("Europe/Berlin\0", 14), std::string(300, 'E'), std::string("CET-1CEST"), std::string("\xff")}) {
    auto zone = Zone::load(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().code, ErrorCode::kInvalidArgument) << name << ": " << zone.error().message;
  }
}

TEST_F(ZoneDirectory, WithoutADatabaseThereIsUtcAndAClearError) {
  EXPECT_TRUE(Zone::load("UTC", directory_));
  EXPECT_TRUE(Zone::load("Etc/UTC", directory_ + "/nowhere"));
  for (const std::string& place : {directory_, directory_ + "/nowhere"}) {
    auto zone = Zone::load("Europe/Berlin", place);
    ASSERT_FALSE(zone);
    EXPECT_EQ(zone.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(zone.error().message, HasSubstr("install the package tzdata"));
  }
}

TEST_F(ZoneDirectory, ADamagedFileIsNamed) {
  write("Europe/Berlin", "nonsense");
  auto zone = Zone::load("Europe/Berlin", directory_);
  ASSERT_FALSE(zone);
  EXPECT_EQ(zone.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(zone.error().message, HasSubstr(directory_ + "/Europe/Berlin is of no use: it is not a time zone file"));
}

TEST_F(ZoneDirectory, AnUpdateIsSeenAndALossIsNot) {
  Zones zones(directory_);
  write("Europe/Berlin", slim_file({{0, 3600}}, "CET-1"));
  auto before = zones.find("Europe/Berlin");
  ASSERT_TRUE(before);
  EXPECT_EQ((*before)->segment(0).offset, 3600);
  EXPECT_EQ(*zones.find("Europe/Berlin"), *before);
  write("Europe/Berlin", slim_file({{0, 7200}}, "EET-2"));
  EXPECT_EQ((*zones.find("Europe/Berlin"))->segment(0).offset, 7200);
  EXPECT_EQ((*before)->segment(0).offset, 3600);
  fs::remove(fs::path(directory_) / "Europe/Berlin");
  EXPECT_EQ((*zones.find("Europe/Berlin"))->segment(0).offset, 7200);
  EXPECT_FALSE(Zones(directory_).find("Europe/Berlin"));
}

}  // namespace
}  // namespace perdure::schedule
