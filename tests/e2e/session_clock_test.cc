// Wall clocks that jump by days while a process runs: leases do not notice.
//
// libfaketime stands between a worker and its wall clock, and reads the offset from a file; the steady clock is left
// alone.
#include <glob.h>

#include "session_fixture.h"

namespace perdure::e2e {
namespace {

std::string fake_time_library() {
  glob_t found = {};
  std::string path;
  if (glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, nullptr, &found) == 0) path = found.gl_pathv[0];
  globfree(&found);
  return path;
}

class SessionClock : public SessionProcesses {
 protected:
  void SetUp() override {
    if (library_.empty()) GTEST_SKIP() << "libfaketime is not installed (Debian package faketime)";
    set_clock("+0");
  }

  std::map<std::string, std::string> with_fake_clock() const {
    return {{"LD_PRELOAD", library_},
            {"FAKETIME_TIMESTAMP_FILE", clock_file_},
            {"FAKETIME_NO_CACHE", "1"},
            {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
            {"DONT_FAKE_MONOTONIC", "1"}};
  }
  void set_clock(const std::string& offset) {
    // In one step, so that nobody reads half a file.
    write_whole(clock_file_ + ".new", offset + "\n");
    std::filesystem::rename(clock_file_ + ".new", clock_file_);
  }
  static std::int64_t wall_of(Child& worker) {
    std::string answer = worker.ask("wall");
    return answer.starts_with("ok ") ? std::stoll(answer.substr(3)) : 0;
  }

  /// `jumping` and `steady` share a store; the first sees its clock jump by days, there and back.
  void jump(Child& jumping, Child& steady) {
    constexpr std::int64_t kDay = 24 * 60 * 60;
    for (std::int64_t days : {+3, -3, +400, 0}) {
      set_clock((days < 0 ? "-" : "+") + std::to_string(std::abs(days)) + "d");
      std::int64_t off = wall_of(jumping) - wall_of(steady) - days * kDay;
      ASSERT_LT(std::abs(off), 60) << "the clock has not been moved, so this shows nothing";
      // Several renewals, and looks at the other, with the new time.
      jumping.gather(Milliseconds(1200));
      ASSERT_EQ(jumping.ask("alive"), "ok yes") << "after a jump to " << days << " days";
      ASSERT_EQ(steady.ask("alive"), "ok yes") << "after a jump to " << days << " days";
    }
  }

  const std::string library_ = fake_time_library();
  const std::string clock_file_ = scratch_ / "clock";
};

TEST_F(SessionClock, AHolderWhoseClockJumpsKeepsItsLease) {
  SessionWorker holder(with_fake_clock()), other;
  open(holder, kQuick);
  open(other, kQuick);
  holder.want("leader");
  acquired(holder);
  other.want("leader");
  jump(holder, other);
  EXPECT_EQ(holder.ask("write leader key value"), "ok");
  EXPECT_TRUE(holder.take_events().empty());
  EXPECT_TRUE(other.take_events().empty());
  EXPECT_EQ(holder.ask("release leader"), "ok");
  acquired(other);
}

TEST_F(SessionClock, AnObserverWhoseClockJumpsDeclaresNobodyDead) {
  SessionWorker holder, observer(with_fake_clock());
  open(holder, kQuick);
  open(observer, kQuick);
  holder.want("leader");
  acquired(holder);
  observer.want("leader");
  jump(observer, holder);
  EXPECT_EQ(holder.ask("write leader key value"), "ok");
  EXPECT_TRUE(holder.take_events().empty());
  EXPECT_TRUE(observer.take_events().empty());
  EXPECT_EQ(holder.ask("release leader"), "ok");
  acquired(observer);
}

}  // namespace
}  // namespace perdure::e2e
