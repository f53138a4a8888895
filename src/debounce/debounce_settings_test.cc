#include <gtest/gtest.h>

#include "debounce/settings.h"

namespace perdure::debounce {
namespace {

using namespace std::chrono_literals;

std::string refusal(DebounceSettings settings) {
  auto checked = check_settings("save", std::move(settings));
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  return checked.error().message;
}

TEST(DebounceSettings, ContradictionsAreRefusedWithTheSetting) {
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.quiet = 2s, .max_wait = 2s}), "accepted");
  EXPECT_EQ(refusal({.quiet = 0s}), "accepted") << "fires as soon as it can";
  EXPECT_NE(refusal({.quiet = 2s, .max_wait = 1s}).find("max_wait cannot be less than quiet"), std::string::npos);
  EXPECT_NE(refusal({.quiet = -1s}).find("quiet cannot be negative"), std::string::npos);
  EXPECT_NE(refusal({.quiet = 24h * 365 * 101}).find("quiet cannot be more"), std::string::npos);
  EXPECT_NE(refusal({.max_wait = -1s}).find("max_wait cannot be negative"), std::string::npos);
  EXPECT_NE(refusal({.window = -1s}).find("window cannot be negative"), std::string::npos);
  EXPECT_NE(refusal({.max_wait = 5s, .window = 1s}).find("not both"), std::string::npos);
  EXPECT_EQ(refusal({.window = 0s}), "accepted");
  EXPECT_NE(refusal({.window = 0s, .edge = Edge::kLeading}).find("window cannot be 0 with the edge leading"),
            std::string::npos);
  EXPECT_NE(refusal({.quiet = 0s, .edge = Edge::kBoth}).find("quiet cannot be 0 with the edge both"),
            std::string::npos);
  EXPECT_NE(refusal({.worker = "no/name"}).find("worker"), std::string::npos);
  EXPECT_NE(refusal({.back_off = {.factor = 0}}).find("factor"), std::string::npos);
  EXPECT_NE(refusal({.max_count = UINT64_MAX}).find("max_count"), std::string::npos);
}

TEST(DebounceSettings, TheWorkerIsTheDebouncersNameUnlessItIsGiven) {
  EXPECT_EQ(check_settings("save", {})->worker, "save");
  EXPECT_EQ(check_settings("save", {.worker = "other"})->worker, "other");
}

// WORK-5, WORK-11, WORK-28, WORK-B7.
TEST(MarkerPreset, FollowsDebounceSeconds) {
  EXPECT_EQ(marker_preset()->settings.window, 2s);
  EXPECT_EQ(marker_preset()->run.timeout, 60s);
  EXPECT_EQ(marker_preset("")->settings.window, 2s);
  EXPECT_EQ(marker_preset("5")->settings.window, 5s);
  EXPECT_EQ(marker_preset("5")->run.timeout, 150s);
  EXPECT_EQ(marker_preset("0.5")->settings.window, 500ms);
  EXPECT_EQ(marker_preset("0.5")->run.timeout, kMarkerLockMin) << "the floor";
  EXPECT_EQ(marker_preset("0")->run.timeout, kMarkerLockMin) << "not every lock is stale";
  EXPECT_EQ(marker_preset("0")->settings.window, 0s);
  EXPECT_TRUE(check_settings("transcript", marker_preset("0")->settings));
  EXPECT_EQ(marker_preset("86400")->settings.window, 24h);
  for (const char* text : {"-1", "two", "2s", " 2", "2 ", "nan", "inf", "1e3", "86401", "0x10", "1,5", "--2"}) {
    auto refused = marker_preset(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find("DEBOUNCE_SECONDS"), std::string::npos);
    EXPECT_NE(refused.error().message.find(text), std::string::npos);
  }
  EXPECT_FALSE(marker_preset(-1s));
  EXPECT_FALSE(marker_preset(25h));
}

TEST(DebounceNames, AreThoseOfTheContract) {
  EXPECT_EQ(name_of(Edge::kTrailing), "trailing");
  EXPECT_EQ(name_of(Edge::kLeading), "leading");
  EXPECT_EQ(name_of(Edge::kBoth), "both");
  EXPECT_EQ(name_of(Payload::kFirst), "first");
  EXPECT_EQ(name_of(Payload::kLast), "last");
  EXPECT_EQ(name_of(Payload::kAll), "all");
  EXPECT_EQ(name_of(Payload::kMerge), "merge");
  EXPECT_EQ(name_of(KeyStatus::kIdle), "idle");
  EXPECT_EQ(name_of(KeyStatus::kWaiting), "waiting");
  EXPECT_EQ(name_of(KeyStatus::kRunning), "running");
}

}  // namespace
}  // namespace perdure::debounce
