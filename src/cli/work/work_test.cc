// perdure work as a process, with real programs under it. Tests and programs wait for each other by named pipes, and
// learn that a process is gone by the lock that it held.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include "cli/work/child.h"
#include "cli/work/work_test_daemon.h"

namespace perdure::cli {
namespace {

class CliWork : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    for (const char* name : {"ready", "go", "go-e1", "go-e2", "go-e3", "go-e4"})
      ASSERT_EQ(::mkfifo((folder_ + "/" + name).c_str(), 0600), 0);
  }
  void TearDown() override {
    ::close(ready_);
    std::filesystem::remove_all(folder_);
  }

  WorkProcess work(const std::string& script, std::vector<std::string> flags = {}) {
    return WorkProcess(server_.url(), std::move(flags), "cd " + folder_ + "; " + script, folder_ + "/err");
  }
  // The next line that a program has written to the pipe "ready".
  std::string ready() {
    if (ready_ < 0) ready_ = ::open((folder_ + "/ready").c_str(), O_RDWR | O_CLOEXEC);
    std::string line;
    for (char c; ::read(ready_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  // Lets the program that reads this pipe go on.
  void go(const std::string& name = "go") { std::ofstream(folder_ + "/" + name) << "go\n"; }
  // Whether some process holds the lock that programs take by kTakeLock.
  bool lock_is_held() {
    int fd = ::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
    ::close(fd);
    return held;
  }
  // Returns once no process holds it.
  void wait_for_lock() {
    int fd = ::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::flock(fd, LOCK_EX), 0);
    ::close(fd);
  }

  // Inherited by all that the program starts.
  static constexpr const char* kTakeLock = "exec 9>>lock; flock -s 9; ";

  WorkTestDaemon daemon_;
  HttpTestServer server_{daemon_.handler()};
  int ready_ = -1;
  std::string folder_ = testing::TempDir() + "perdure_work_" + std::to_string(::getpid());
};

TEST_F(CliWork, AProgramGetsTheValueAndItsOutputIsTheResult) {
  daemon_.add("e1", R"({"to":"ada"})");
  daemon_.add("e2", "7");
  daemon_.add("e3", R"("quiet")");
  WorkProcess process = work(
      R"(read value; case $value in
         7) echo plain text;;
         '"quiet"') ;;
         *) echo "[$value,\"$PERDURE_EVENT_ID $PERDURE_ATTEMPT $PERDURE_WORKER $PERDURE_SPACE $TRACEPARENT\"]";;
         esac)");
  EXPECT_EQ(daemon_.settled(0), R"(complete e1 {"result":[{"to":"ada"},"e1 2 mail default 00-ab"]})");
  EXPECT_EQ(daemon_.settled(1), R"(complete e2 {"result":"plain text"})");
  EXPECT_EQ(daemon_.settled(2), "complete e3 {}");
  EXPECT_EQ(process.stop(), 0) << process.err();
  EXPECT_NE(process.err().find("completed 3, failed 0"), std::string::npos);
}

TEST_F(CliWork, AnExitCodeFailsTheEventWithTheEndOfStderr) {
  daemon_.add("e1");
  daemon_.add("e2");
  WorkProcess process = work(R"(if test $PERDURE_EVENT_ID = e2; then kill -SEGV $$; fi
                                head -c 100000 /dev/zero | tr '\0' x >&2; echo no such address >&2; exit 3)");
  std::string failed = daemon_.settled(0);
  EXPECT_TRUE(failed.starts_with(R"(fail e1 {"error":"exit code 3: xxx)")) << failed.substr(0, 100);
  EXPECT_TRUE(failed.ends_with(R"(no such address"})"));
  EXPECT_LT(failed.size(), 5000u);
  EXPECT_NE(daemon_.settled(1).find("killed by signal 11"), std::string::npos) << daemon_.settled(1);
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, OutputIsKeptWithinItsCap) {
  daemon_.add("e1");
  WorkProcess process = work("head -c 1000000 /dev/zero | tr '\\0' 7");
  std::string done = daemon_.settled(0);
  EXPECT_TRUE(done.starts_with(R"(complete e1 {"result":"777)")) << "what was cut is not read as a number";
  EXPECT_LT(done.size(), Child::kOutputMax + 100);
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, AProgramThatReadsNothingIsGivenALargeValue) {
  daemon_.add("e1", "\"" + std::string(900'000, 'x') + "\"");
  daemon_.add("e2", "\"" + std::string(900'000, 'x') + "\"");
  WorkProcess process =
      work("test $PERDURE_EVENT_ID = e2 && exec wc -c; exec 0<&-; echo up > ready; read line < go; exit 0");
  EXPECT_EQ(ready(), "up");
  go();
  EXPECT_EQ(daemon_.settled(0), "complete e1 {}");
  EXPECT_EQ(daemon_.settled(1), R"(complete e2 {"result":900003})");
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, SoManyRunAtOnceAndNoMore) {
  for (std::string id : {"e1", "e2", "e3", "e4"}) daemon_.add(id);
  WorkProcess process =
      work("echo $PERDURE_EVENT_ID > ready; read line < go-$PERDURE_EVENT_ID", {"--concurrency", "3"});
  std::set<std::string> seen = {ready(), ready(), ready()};
  EXPECT_EQ(seen, (std::set<std::string>{"e1", "e2", "e3"}));
  EXPECT_TRUE(daemon_.all_settled().empty());
  go("go-e2");
  EXPECT_EQ(daemon_.settled(0), "complete e2 {}");
  EXPECT_EQ(ready(), "e4");
  for (std::string id : {"e1", "e3", "e4"}) go("go-" + id);
  daemon_.settled(3);
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, AProgramThatHangsForksAndIgnoresTermLeavesNothingBehind) {
  daemon_.add("e1");
  // Children in its group, in a session of their own, orphaned, and without their environment.
  WorkProcess process = work(std::string(kTakeLock) +
                                 R"(trap '' TERM; (while :; do sleep 1000; done) &
                                    setsid sh -c "trap '' TERM; sleep 1000 & sleep 1000" &
                                    (setsid sh -c 'sleep 1000 & exec sleep 1000' & )
                                    env -i PATH=$PATH setsid sh -c "trap '' TERM; sleep 1000" &
                                    echo up > ready; sleep 1000; sleep 1000)",
                             {"--timeout", "300ms", "--kill-after", "100ms"});
  EXPECT_EQ(ready(), "up");
  EXPECT_TRUE(lock_is_held());
  EXPECT_EQ(daemon_.settled(0), R"(fail e1 {"error":"timed out after 300ms"})");
  wait_for_lock();
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, WhatAProgramLeavesRunningEndsWithIt) {
  daemon_.add("e1");
  daemon_.add("e2");
  WorkProcess process =
      work(std::string("test $PERDURE_EVENT_ID = e2 && { echo up > ready; read line < go; exit 0; }; ") + kTakeLock +
               "setsid sleep 1000 & sleep 1000 & exit 0",
           {"--concurrency", "2"});
  EXPECT_EQ(ready(), "up");
  EXPECT_EQ(daemon_.settled(0), "complete e1 {}");
  wait_for_lock();
  go();
  EXPECT_EQ(daemon_.settled(1), "complete e2 {}") << "the other one was left alone";
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, OrphansOfAProgramThatStillRunsAreLeftAlone) {
  daemon_.add("e1");
  daemon_.add("e2");
  WorkProcess process = work(R"(test $PERDURE_EVENT_ID = e2 && exit 0
                                (setsid sh -c 'read line < go; echo alive > ready' &)
                                read line < ready; echo $line)",
                             {"--concurrency", "2"});
  EXPECT_EQ(daemon_.settled(0), "complete e2 {}");
  go();
  EXPECT_EQ(daemon_.settled(1), R"(complete e1 {"result":"alive"})");
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, ClaimsAreExtendedWhileAProgramRuns) {
  daemon_.add("e1");
  WorkProcess process = work("read line < go", {"--lock", "200ms"});
  EXPECT_EQ(daemon_.settled(0), R"(extend e1 {"lock":"200ms"})");
  EXPECT_EQ(daemon_.settled(1), R"(extend e1 {"lock":"200ms"})");
  go();
  std::size_t number = 2;
  while (daemon_.settled(number).starts_with("extend")) ++number;
  EXPECT_EQ(daemon_.settled(number), "complete e1 {}");
  EXPECT_EQ(process.stop(), 0);
}

TEST_F(CliWork, ALostClaimStopsItsProgramAndIsNotFatal) {
  daemon_.make_stale("e1");
  daemon_.make_stale("e2");
  daemon_.add("e1");
  WorkProcess process =
      work(std::string(kTakeLock) + "test $PERDURE_EVENT_ID = e1 && { echo up > ready; sleep 1000; }; :",
           {"--lock", "1s"});
  EXPECT_EQ(ready(), "up");
  EXPECT_EQ(daemon_.settled(0), R"(extend e1 {"lock":"1s"})");
  wait_for_lock();
  daemon_.add("e2");
  EXPECT_EQ(daemon_.settled(1), "complete e2 {}");
  daemon_.add("e3");
  EXPECT_EQ(daemon_.settled(2), "complete e3 {}");
  EXPECT_EQ(process.stop(), 0);
  EXPECT_NE(process.err().find("event e2: could not complete it: the claim is lost"), std::string::npos)
      << process.err();
}

TEST_F(CliWork, ASignalLetsWhatRunsFinish) {
  daemon_.add("e1");
  WorkProcess process = work("echo up > ready; read line < go");
  EXPECT_EQ(ready(), "up");
  process.signal(SIGTERM);
  daemon_.add("e2");
  go();
  EXPECT_EQ(process.wait(), 0) << process.err();
  EXPECT_EQ(daemon_.all_settled(), std::vector<std::string>{"complete e1 {}"});
}

TEST_F(CliWork, ASecondSignalKillsAndGivesBack) {
  daemon_.add("e1");
  WorkProcess process =
      work(std::string(kTakeLock) + "trap '' TERM INT; echo up > ready; while :; do sleep 1000; done");
  EXPECT_EQ(ready(), "up");
  process.signal(SIGINT);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 1);
  wait_for_lock();
  EXPECT_EQ(daemon_.all_settled(), std::vector<std::string>{"release e1 {}"});
}

TEST_F(CliWork, ProgramsDoNotOutliveAWorkerThatIsKilled) {
  daemon_.add("e1");
  WorkProcess process = work(std::string(kTakeLock) + "echo up > ready; exec sleep 1000");
  EXPECT_EQ(ready(), "up");
  EXPECT_TRUE(lock_is_held());
  process.signal(SIGKILL);
  EXPECT_EQ(process.wait(), -SIGKILL);
  wait_for_lock();
}

TEST_F(CliWork, ADaemonThatComesLaterOrComesBackIsFound) {
  std::string path = folder_ + "/d.sock";
  auto server = std::make_unique<HttpTestServer>(daemon_.handler(), path);
  daemon_.add("e1");
  WorkProcess process(server->url(), {}, "cd " + folder_ + "; echo up > ready; read line < go", folder_ + "/err");
  EXPECT_EQ(ready(), "up");
  server.reset();
  go();
  server = std::make_unique<HttpTestServer>(daemon_.handler(), path);
  EXPECT_EQ(daemon_.settled(0), "complete e1 {}");
  EXPECT_EQ(process.stop(), 0) << process.err();
  server.reset();

  WorkProcess early("unix://" + path, {"--verbose"}, "true", folder_ + "/err");
  while (early.err().find("trying again") == std::string::npos) ::sched_yield();
  daemon_.add("e2");
  server = std::make_unique<HttpTestServer>(daemon_.handler(), path);
  EXPECT_EQ(daemon_.settled(1), "complete e2 {}");
  EXPECT_EQ(early.stop(), 0);
  EXPECT_NE(early.err().find("answers again"), std::string::npos);
}

TEST_F(CliWork, ARefusalForGoodEndsIt) {
  HttpTestServer strict(always(403, problem(403, "permission_denied", "not you")));
  WorkProcess process(strict.url(), {}, "true", folder_ + "/err");
  EXPECT_EQ(process.wait(), 1);
  EXPECT_NE(process.err().find("perdure: not you"), std::string::npos) << process.err();
}

TEST_F(CliWork, DrainsAndEnds) {
  for (int i = 0; i < 50; ++i) daemon_.add("e" + std::to_string(i));
  WorkProcess process = work("exit 0", {"--drain", "--concurrency", "8"});
  EXPECT_EQ(process.wait(), 0) << process.err();
  EXPECT_EQ(daemon_.all_settled().size(), 50u);
}

TEST(CliWorkUsage, IsCheckedBeforeAnythingIsClaimed) {
  HttpTestServer server(always(500, "{}"));
  TestWorld world;
  world.variables["PERDURE_URL"] = server.url();
  world.variables["PATH"] = "/usr/bin:/bin";
  for (std::vector<std::string> bad : {std::vector<std::string>{"work", "mail", "--", "no-such-program"},
                                       {"work", "mail", "--", "./no-such-program"},
                                       {"work", "mail", "--concurrency", "0", "--", "sh"},
                                       {"work", "mail", "--timeout", "soon", "--", "sh"},
                                       {"work", "mail", "--lock", "1ms", "--", "sh"}})
    EXPECT_EQ(world.run(bad).exit_code, 2) << bad[2];
  EXPECT_TRUE(server.asked().empty());
}

}  // namespace
}  // namespace perdure::cli
