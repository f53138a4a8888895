// Test what you build on perdure under crashes, pauses, power cuts and clock jumps.
//
//   Report report = for_each_seed({.count = 200}, {.nodes = 2}, [](Simulation& sim) {
//     sim.on_start([](Node& node) { start_my_handlers(node.store()); });
//     sim.crash(0, Crash::kAfterApply);
//     sim.run_for(10s);
//     sim.expect(what_must_hold(sim.read(...)), "the transfer is there once");
//   });
//
// A simulation is several nodes on one store, in one thread and in virtual time: hours pass in milliseconds, and a seed
// decides which task runs next, how long each call takes and what goes wrong. The code of perdure is that which ships;
// the same seed gives the same run. Your code takes part if it
//   - uses the asynchronous calls: transact_async, Session::open_async, acquire_async and so on. Those that block are
//     refused with kInvalidArgument; CancelSignal::wait and Watch::wait must not be used at all;
//   - takes time and chance from the Node, and starts no threads.
//
// Link perdure::testing. Nothing here is thread-safe: a simulation belongs to the thread that made it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/store.h"
#include "perdure/time.h"

namespace perdure::testing {

/// Faults that come by themselves, as the seed has it.
enum class Faults {
  kNone,  ///< Only those that the test asks for.
  kSome,  ///< A few crashes, pauses, clock jumps, conflicts, lost answers, and times in which the store is out of
          ///< reach.
  kMany,  ///< More of them, and power cuts, slow and full disks, lost and late watches.
};

/// What the nodes share.
enum class StoreKind {
  kDrawn,     ///< One of the two, by the seed.
  kEmbedded,  ///< As LMDB: visible at once, durable after a sync; the death of a node is known at once.
  kRemote,    ///< As a database across a network: answers may be lost, and nobody knows who is dead.
};

struct SimulationOptions {
  std::uint64_t seed = 1;
  int nodes = 1;  ///< From 1 to 9.
  StoreKind store = StoreKind::kDrawn;
  Faults faults = Faults::kNone;
  /// For how long of virtual time such faults come; then all is well again.
  Duration faults_last = std::chrono::seconds(30);
  /// Keeps what happened as lines; otherwise only its hash.
  bool keep_trace = false;
};

/// When a crash comes.
enum class Crash : std::uint8_t {
  kAtOnce,
  kBeforeApply,  ///< When the node's next commit reaches the store: it is lost.
  kAfterApply,   ///< When its next commit has been applied, before anybody is told. Renewals of sessions are commits
                 ///< too.
};

class Simulation;

/// One life of a simulated node: a process that begins, and ends with its next crash. A crash ends it as `kill -9`
/// would: none of its code runs any more, no callback is called and no answer comes. The object itself is there until
/// the end of the simulation, so that a reference to it is always good; from its death on only index, life, name and
/// alive are of use.
class PERDURE_EXPORT Node {
 public:
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  int index() const;
  /// 1 for the first life of a node, 2 after its first crash, and so on.
  int life() const;
  /// "n2.1": node and life, as in the trace.
  const std::string& name() const;
  bool alive() const;
  /// The store as this node has it open. Closed once the node is dead.
  Store& store();

  /// The steady clock of the node.
  SteadyTime now() const;
  /// Its wall clock: up to ten seconds beside those of others, and it may be made to jump.
  WallTime wall_now() const;
  /// Runs `task` on the node after `delay`, and later if it is paused then; never if it is dead by then.
  void after(Duration delay, std::move_only_function<void()> task);
  /// Chance that replays.
  std::uint64_t random();
  /// A line of your own in the trace.
  void note(std::string_view text);
  /// Keeps `thing`, a session or the object that your handlers work with, until this life is over; then lets go of it.
  void keep(std::shared_ptr<void> thing);

 private:
  friend class Simulation;
  class Impl;
  explicit Node(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The call grammar: { setup | on_start } { run_for | run_until | a fault | heal | read | expect }. The nodes start
/// with the first call of the second kind. run_for and run_until are for the test, never for what runs on a node;
/// everything else may be called there too.
class PERDURE_EXPORT Simulation {
 public:
  explicit Simulation(const SimulationOptions& options = {});
  /// The nodes die as in a crash.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Commits what the test begins with, before any node starts.
  void setup(const std::function<void(Transaction&)>& body);
  /// Called for each life of each node, on that node: set up handlers here.
  void on_start(std::function<void(Node&)> handler);

  /// The present life of a node; null while it is down.
  Node* node(int index);
  /// Lets virtual time pass.
  void run_for(Duration virtual_time);
  /// The same until `enough` says true, looked at after each task: whether it did so within `at_most`.
  bool run_until(const std::function<bool()>& enough, Duration at_most);

  /// The node dies, and its next life begins `back_after` later. One that is down stays as it is.
  void crash(int node, Crash when = Crash::kAtOnce, Duration back_after = std::chrono::seconds(1));
  /// The node stands still while time goes on: its timers come late.
  void pause(int node, Duration duration);
  /// Moves its wall clock, in either direction, and not its steady clock.
  void jump_wall_clock(int node, Duration by);
  /// The node cannot reach the store.
  void cut_off(int node, Duration duration);
  /// All nodes die, and an embedded store may lose of its last commits those that nobody has been told of.
  void power_cut(Duration back_after = std::chrono::seconds(1));
  /// Ends all faults, and lets none come by itself any more: what is down starts, what is paused goes on.
  void heal();

  /// A transaction that only reads, from outside: it sees all that is applied, durable or not. It costs no time.
  template <class F>
  [[nodiscard]] auto read(F&& body);
  /// What must hold. The first time that it does not ends the run: later run_for and run_until return at once.
  /// Answers `holds`.
  bool expect(bool holds, std::string_view what);
  /// What did not hold, in words; empty if all is well.
  const std::vector<std::string>& failures() const;

  const SimulationOptions& options() const;
  /// Virtual time since the beginning.
  Duration elapsed() const;
  /// Chance for the test itself.
  std::uint64_t random();
  /// Equal for equal runs, and hardly for others.
  std::uint64_t trace_hash() const;
  /// Empty unless the options ask for it.
  const std::vector<std::string>& trace() const;

 private:
  void observe(const std::function<void(Store&)>& look);
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t count = 100;
};

struct PERDURE_EXPORT Report {
  struct Failure {
    std::uint64_t seed;
    std::string what;
    /// Of the same seed, run again for it.
    std::vector<std::string> trace;
  };

  std::uint64_t passed = 0;
  std::optional<Failure> failure;
  bool ok() const { return !failure; }
  /// "200 seeds passed"; or the seed, what was wrong, how to replay it, and the end of its trace.
  std::string to_string() const;
};

/// Runs `test` for each seed, up to the first that fails: by `expect`, or by an exception. That one is run once more
/// for its trace, which also finds a test that does not replay: one that asks a clock of its own, say. The seed and
/// keep_trace of `options` are not looked at.
PERDURE_EXPORT Report for_each_seed(const SeedRange& seeds, const SimulationOptions& options,
                                    const std::function<void(Simulation&)>& test);

template <class F>
auto Simulation::read(F&& body) {
  using R = decltype(std::declval<Store&>().read(body));
  std::optional<R> result;
  observe([&](Store& store) { result.emplace(store.read(body)); });
  return std::move(*result);
}

}  // namespace perdure::testing
