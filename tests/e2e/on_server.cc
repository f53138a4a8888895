// Runs test programs on a server of its own: the same tests that `./dev test` runs on a store in memory or in a
// directory, with a part of the server for each store that they open (store/store_test_util.h).
//
//     on_server ENGINE[,ENGINE...] REPORT PROGRAM...
//
// Engines are postgres and etcd; several are run beside each other. Says for each program how many of its tests passed,
// and shows what those said that did not; the same goes into the file REPORT-ENGINE.txt. Fails if one failed, or hung,
// or none ran. With PERDURE_TEST_SYNC=off in its environment, PostgreSQL does not sync: for tests that make thousands
// of tables, and in which nobody cuts its power.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "child.h"
#include "scratch.h"
#ifdef PERDURE_POSTGRES_BIN
#include "postgres_server.h"
#endif
#ifdef PERDURE_ETCD_SERVER
#include "etcd_server.h"
#endif

namespace perdure::e2e {
namespace {

/// A program that says nothing for so long hangs.
constexpr Milliseconds kSilenceMax{120'000};
constexpr Milliseconds kEngineMax{600'000};

/// What is not run on a server, by program, as gtest filters have it, and why. Everything else that the programs have
/// is.
const std::map<std::string, std::string> kLeftOut = {
    // Functions that need no store, and parts on stores of the simulation, whose time is not that of a server.
    {"session_test", "ObserverTest.*"},
    {"session_sim_test", "*FollowTest.*:DueLoopTest.*:Keeper.*:StoreClockTest.*:StoreLeadershipTest.*:Sweep.*"},
    {"actor_state_test", "ListOrder.*:Merge.*:StateCodec.*:StateCodecRandom.*:StateCodecRefuses.*"},
    {"queue_test", "QueueRows.*"},
    {"schedule_test", "Cron*:Interval*:SchedulePlan.*:ScheduleRows.*:TimingSeries.*:Zone*"},
    {"debounce_test", "DebounceNames.*:DebounceRows.*:DebounceSettings.*:MarkerPreset.*:MergePatch.*"},
    {"tick_test", "*TickEdges.*:TickLeader.*:TickRuns.*:TickStore.*:TickTable.*"},
    // It is about a store where a commit costs nothing.
    {"queue_pause_test", "QueuePause.AHundredThousandThatWaitedRunInTheirOrder"},
    // On a server it is the same as a kill, which is tested there.
    {"queue_poison_test", "QueuePoison.AnEventThatEndsItsProcessIsGivenUp"},
    // They are about LMDB: what it knows of processes that died, a commit that its disk has in part, its bulletin.
    {"watch_processes_test",
     "WatchProcesses.TheDeathOfAnotherProcessFiresIt:WatchProcesses.ACommitWhoseProcessDiedBeforeTellingFiresIt:"
     "WatchProcesses.MoreChangesThanTheBulletinHoldsFireIt"},
};

/// A transaction holds 1.3 MiB there: these are about hooks that are kept whole, and about how much goes into a batch
/// and a message, or is booked in one.
const std::map<std::string, std::string> kLeftOutOnEtcd = {
    {"transcript_node_test",
     "TranscriptTend.HooksGoAfterSevenDaysAlsoOfASessionThatGoesOn:"
     "TranscriptRun.ThousandsOfMessagesAreStoredInBatches:TranscriptRun.WhatARowHasNoRoomForIsCut:"
     "TranscriptUuids.OfALongTranscriptAreBookedAndEachIsStoredOnce"},
};

/// What came of the tests of one program.
struct Outcome {
  int passed = 0, skipped = 0;
  std::map<std::string, std::string> failed;  ///< With what each said.
  double seconds = 0;
  std::string trouble;
};

std::string filter_of(const std::string& engine, const std::string& program) {
  std::string all;
  for (const auto& left_out : {kLeftOut, engine == "etcd" ? kLeftOutOnEtcd : decltype(kLeftOut){}})
    if (auto found = left_out.find(program); found != left_out.end()) all += (all.empty() ? "-" : ":") + found->second;
  return all.empty() ? "*" : all;
}

/// "Suite.Name" of "[  FAILED  ] Suite.Name, where ... (12 ms)".
std::string test_of(const std::string& line) {
  std::string name = line.substr(13);
  return name.substr(0, name.find_first_of(", "));
}

Outcome run(const std::string& engine, const std::string& path, const std::string& store) {
  Outcome outcome;
  std::int64_t began_ns = steady_ns();
  // It ends with us, also if we are killed.
  Child child({"setpriv", "--pdeathsig=KILL", "--", path,
               "--gtest_filter=" + filter_of(engine, std::filesystem::path(path).filename())},
              {.environment = {{"PERDURE_TEST_STORE", store}}});
  std::string running, said;
  while (auto line = child.answer(kSilenceMax)) {
    bool ended = line->ends_with(" ms)");
    if (line->starts_with("[ RUN      ]")) {
      running = test_of(*line);
      said.clear();
    } else if (line->starts_with("[       OK ]") && ended) {
      ++outcome.passed;
      running.clear();
    } else if (line->starts_with("[  SKIPPED ]") && ended) {
      ++outcome.skipped;
      running.clear();
    } else if (line->starts_with("[  FAILED  ]") && ended && !running.empty()) {
      outcome.failed[std::exchange(running, "")] = said;
    } else {
      said += "    " + *line + "\n";
    }
  }
  auto ending = child.wait(Milliseconds(1000));
  if (!running.empty()) outcome.failed[running] = said + (ending ? "    the program ended\n" : "    it hangs\n");
  if (!ending)
    outcome.trouble = "said nothing for long";
  else if (*ending != 0 && outcome.failed.empty())
    outcome.trouble = "ended with " + std::to_string(*ending);
  else if (outcome.passed == 0 && outcome.failed.empty())
    outcome.trouble = "ran no test";
  outcome.seconds = static_cast<double>(steady_ns() - began_ns) / 1e9;
  return outcome;
}

int run_all(const std::string& engine, const std::string& report, const std::vector<std::string>& programs,
            const std::string& store) {
  std::ofstream file(report + "-" + engine + ".txt");
  int passed = 0, failed = 0;
  auto print = [&](const std::string& text) {
    std::cout << text << std::flush;
    file << text << std::flush;
  };
  for (const std::string& path : programs) {
    Outcome outcome = run(engine, path, store);
    passed += outcome.passed;
    failed += static_cast<int>(outcome.failed.size()) + (outcome.trouble.empty() ? 0 : 1);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s", outcome.seconds);
    print("  " + std::filesystem::path(path).filename().string() + ": " + std::to_string(outcome.passed) + " passed, " +
          std::to_string(outcome.failed.size()) + " failed" +
          (outcome.skipped ? ", " + std::to_string(outcome.skipped) + " skipped" : "") + " in " + seconds +
          (outcome.trouble.empty() ? "" : ": " + outcome.trouble) + "\n");
    for (const auto& [test, said] : outcome.failed) print("  FAILED " + test + "\n" + said);
  }
  print("on " + engine + ": " + std::to_string(passed) + " passed, " + std::to_string(failed) + " failed\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}

/// Each in a process of its own.
int run_beside(const std::string& engines, const std::vector<std::string>& arguments) {
  std::vector<std::unique_ptr<Child>> runs;
  std::istringstream names(engines);
  for (std::string engine; std::getline(names, engine, ',');) {
    std::vector<std::string> words = {"setpriv", "--pdeathsig=KILL", "--",
                                      std::filesystem::read_symlink("/proc/self/exe"), engine};
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    runs.push_back(std::make_unique<Child>(words));
  }
  int worst = 0;
  for (auto& run : runs) {
    while (auto line = run->answer(kEngineMax)) std::cout << *line << std::endl;
    worst = std::max(worst, std::abs(run->wait().value_or(1)));
  }
  return worst;
}

int main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) return 2;
  const std::string &engine = arguments[0], &report = arguments[1];
  if (engine.find(',') != std::string::npos) return run_beside(engine, arguments);
  std::vector<std::string> programs(arguments.begin() + 2, arguments.end());
#ifdef PERDURE_POSTGRES_BIN
  if (engine == "postgres") {
    const char* sync = std::getenv("PERDURE_TEST_SYNC");
    PostgresServer server(std::string("max_connections = 300\nfsync = ") + (sync ? sync : "on") + "\n");
    return run_all(engine, report, programs, server.url("perdure_schema=t"));
  }
#endif
#ifdef PERDURE_ETCD_SERVER
  if (engine == "etcd") {
    Scratch scratch;
    EtcdCluster server(scratch / "etcd");
    return run_all(engine, report, programs, server.url("/t"));
  }
#endif
  std::cerr << "there is no " << engine << " here\n";
  return 2;
}

}  // namespace
}  // namespace perdure::e2e

int main(int count, char** arguments) {
  return perdure::e2e::main({arguments + 1, arguments + count});
}
