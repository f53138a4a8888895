// What the tests of the sequencer have in common: virtual time, and a storage in memory that can be told to fail, to
// take its time, and never to answer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perdure/fatal.h"
#include "perdure/sequencer.h"
#include "perdure/testing.h"

namespace perdure::sequence {

using namespace std::chrono_literals;

inline constexpr WorkspaceKind kShop{1};
inline constexpr WorkspaceKind kCafe{2};
inline constexpr SeqId kInvoice{10};
inline constexpr SeqId kOrder{11};
inline constexpr WorkspaceId kHere{7};
inline constexpr WorkspaceId kThere{8};

/// Not thread-safe: for the simulation. Calls are noted as lines.
class MemoryStorage : public SeqStorage {
 public:
  std::map<SeqKey, Number> numbers;
  LogOffset offset = 0;
  std::map<LogOffset, std::vector<SeqValue>> log;
  std::vector<std::string> calls;

  /// Every call fails with it.
  std::optional<Error> failing;
  /// Calls of this name are kept until they are let go.
  std::string held;
  std::deque<std::move_only_function<void()>> waiting;
  /// What the batcher was given.
  std::uint64_t scanned = 0;

  void let_go() {
    held.clear();
    auto all = std::exchange(waiting, {});
    for (auto& one : all) one();
  }

  void read_numbers(std::vector<SeqKey> keys, Done<std::vector<Number>> done) override {
    // What is read is read now, and answered later.
    std::vector<Number> found;
    for (const SeqKey& key : keys) found.push_back(numbers.contains(key) ? numbers[key] : 0);
    call("read_numbers", [this, found = std::move(found), done = std::move(done)]() mutable {
      failing ? done(std::unexpected(*failing)) : done(std::move(found));
    });
  }
  void read_offset(Done<LogOffset> done) override {
    call("read_offset",
         [this, done = std::move(done)]() mutable { failing ? done(std::unexpected(*failing)) : done(offset); });
  }
  void write(std::vector<SeqValue> values, LogOffset at, Done<void> done) override {
    call("write", [this, values = std::move(values), at, done = std::move(done)]() mutable {
      if (failing) return done(std::unexpected(*failing));
      if (at < offset) return done({});
      for (const SeqValue& value : values) numbers[value.key] = value.number;
      offset = at;
      done({});
    });
  }
  void scan_log(LogOffset from, Batcher batcher, Done<void> done) override {
    call("scan " + std::to_string(from), [this, from, batcher = std::move(batcher), done = std::move(done)]() mutable {
      if (failing) return done(std::unexpected(*failing));
      for (auto entry = log.lower_bound(from); entry != log.end(); ++entry) {
        ++scanned;
        if (batcher(entry->second, entry->first) == More::kEnough) break;
      }
      done({});
    });
  }

 private:
  void call(const std::string& name, std::move_only_function<void()> act) {
    calls.push_back(name);
    if (!held.empty() && name.starts_with(held)) return waiting.push_back(std::move(act));
    act();
  }
};

class SequencerFixture : public ::testing::Test {
 protected:
  SequencerFixture() {
    sim_.on_start([](testing::Node&) {});
    sim_.run_for(1ms);
  }
  ~SequencerFixture() override { sequencer_.reset(); }

  static SequencerParams params() {
    return {.kinds = {{kShop, {{kInvoice, 1}, {kOrder, 100}}}, {kCafe, {{kInvoice, 1}}}}};
  }
  /// Opens it, and waits until it has read its log.
  Sequencer& open(SequencerParams given = params()) {
    open_only(std::move(given));
    EXPECT_TRUE(sim_.run_until([&] { return !sequencer_->status().actualizing; }, 60s));
    return *sequencer_;
  }
  Sequencer& open_only(SequencerParams given = params()) {
    sequencer_.reset();
    sequencer_.emplace(Sequencer::open(sim_.node(0)->store(), std::move(given), storage_).value());
    return *sequencer_;
  }
  Result<Number> try_next(SeqId seq) {
    std::optional<Result<Number>> answer;
    sequencer_->next_async(seq, [&](Result<Number> number) { answer = std::move(number); });
    sim_.run_until([&] { return answer.has_value(); }, 60s);
    if (!answer) return fail(ErrorCode::kDeadline, "no answer");
    return *answer;
  }
  Number next(SeqId seq) {
    auto number = try_next(seq);
    EXPECT_TRUE(number) << to_string(number.error());
    return number.value_or(0);
  }
  LogOffset start(WorkspaceKind kind = kShop, WorkspaceId workspace = kHere) {
    auto offset = sequencer_->start(kind, workspace);
    EXPECT_TRUE(offset) << to_string(offset.error());
    return offset.value_or(0);
  }
  /// An event as it should be: what it draws goes to the log.
  LogOffset event(std::vector<SeqId> draws, WorkspaceId workspace = kHere) {
    LogOffset offset = start(kShop, workspace);
    std::vector<SeqValue>& entry = storage_->log[offset];
    for (SeqId seq : draws) entry.push_back({{workspace, seq}, next(seq)});
    sequencer_->flush();
    return offset;
  }
  void pass(Duration time) { sim_.run_for(time); }
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }

  testing::Simulation sim_{{.store = testing::StoreKind::kEmbedded}};
  std::shared_ptr<MemoryStorage> storage_ = std::make_shared<MemoryStorage>();
  std::optional<Sequencer> sequencer_;
};

/// Ends the process as perdure does, with the reason where the test sees it.
template <class F>
void dying(F act) {
  std::signal(SIGABRT, [](int) {
    const char* why = abort_message();
    (void)!write(2, why, std::strlen(why));
    _exit(9);
  });
  act();
}
#define EXPECT_DIES(act, why) EXPECT_EXIT(dying([&] { act; }), ::testing::ExitedWithCode(9), why)

}  // namespace perdure::sequence
