// The background beside the foreground, on real threads: for the sanitizers, and for what only chance finds.
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <map>
#include <optional>
#include <thread>

#include "perdure/sequence.h"
#include "store/store_test_util.h"

namespace perdure::sequence {
namespace {

using namespace std::chrono_literals;

/// Each tenth of them is a store of its own.
const int kRepetitions = on_test_server() ? 200 : 1'000;

/// SEQ-U11: events, flushes, actualizing and looks at the status, while all is stored behind them at once.
TEST(SequencerRace, NothingIsHandedOutTwiceAndNothingRaces) {
  Store store = fresh_store();
  Sequences sequences = *Sequences::open(store);
  ASSERT_TRUE(sequences.set("p", {.types = {{"shop", {{"invoice", 1}, {"order", 100}}}}}));
  Session session = *Session::open(store);
  auto owner = sequences.own(session, "p").value();
  WorkspaceKind shop = owner.kind("shop").value();
  SeqId seqs[] = {owner.seq("invoice").value(), owner.seq("order").value()};
  SequencerParams params = owner.params();
  params.flush_timeout = 0ms;
  params.unflushed_max = 2;
  params.cached_max = 1;

  std::optional<Sequencer> sequencer;
  LogOffset last = 0;
  std::map<SeqKey, Number> numbers;
  for (int life = 0; life < 10; ++life) {
    sequencer.emplace(Sequencer::open(store, params, owner.storage()).value());
    std::jthread watcher([&](const std::stop_token& end) {
      while (!end.stop_requested()) (void)sequencer->status();
    });
    for (int i = 0; i < kRepetitions / 10; ++i) {
      WorkspaceId workspace{static_cast<std::uint64_t>(i % 3)};
      auto offset = sequencer->start(shop, workspace);
      while (!offset) {
        ASSERT_TRUE(sequencer->wait_ready(20s)) << to_string(offset.error());
        offset = sequencer->start(shop, workspace);
      }
      ASSERT_EQ(*offset, last + 1);
      LogWrite entry{shop, workspace};
      for (SeqId seq : seqs) {
        Number number = sequencer->next(seq).value();
        Number& before = numbers[{workspace, seq}];
        ASSERT_EQ(number, before == 0 && seq == seqs[1] ? 100 : before + 1);
        if (i % 5 != 0) before = number;
        entry.numbers.emplace_back(seq, number);
      }
      if (i % 5 == 0) {
        sequencer->actualize();
        continue;
      }
      ASSERT_TRUE(store.transact([&](Transaction& txn) { owner.write(txn, *offset, entry); }));
      last = *offset;
      sequencer->flush();
    }
    watcher.request_stop();
    watcher.join();
    // Dropped with whatever is under way.
    sequencer.reset();
  }
}

/// A storage that has nothing, and fails as often as it is asked for a number.
class Unreachable final : public SeqStorage {
 public:
  void read_numbers(std::vector<SeqKey>, Done<std::vector<Number>> done) override {
    done(fail(ErrorCode::kUnavailable, "never"));
  }
  void read_offset(Done<LogOffset> done) override { done(LogOffset{0}); }
  void write(std::vector<SeqValue>, LogOffset, Done<void> done) override { done({}); }
  void scan_log(LogOffset, Batcher, Done<void> done) override { done({}); }
};

constexpr WorkspaceKind kKind{1};
constexpr SeqId kSeq{1};

/// SEQ-U9: `next` is under way, and somebody closes the sequencer, or its store.
template <class F>
void refuses_next_when(F end) {
  for (int i = 0; i < kRepetitions / 10; ++i) {
    Store store = fresh_store();
    SequencerParams params{.kinds = {{kKind, {{kSeq, 1}}}}};
    params.retry = 0ms;
    Sequencer sequencer = Sequencer::open(store, params, std::make_shared<Unreachable>()).value();
    ASSERT_TRUE(sequencer.wait_ready(20s));
    ASSERT_TRUE(sequencer.start(kKind, WorkspaceId{1}));
    std::optional<Result<Number>> refused;
    std::jthread caller([&] { refused = sequencer.next(kSeq); });
    while (sequencer.status().failures == 0) std::this_thread::yield();
    end(store, sequencer);
    caller.join();
    ASSERT_TRUE(refused && !*refused);
    EXPECT_EQ(refused->error().code, ErrorCode::kClosed);
  }
}

TEST(SequencerRace, ANumberThatIsBeingReadIsRefusedByCloseFromAnotherThread) {
  refuses_next_when([](Store&, Sequencer& sequencer) { EXPECT_TRUE(sequencer.close()); });
}

TEST(SequencerRace, ANumberThatIsBeingReadIsRefusedByTheEndOfTheStore) {
  refuses_next_when([](Store& store, Sequencer& sequencer) {
    EXPECT_TRUE(store.close());
    EXPECT_TRUE(sequencer.status().fenced);
  });
}

TEST(SequencerRace, CloseWakesWhoWaits) {
  class Silent final : public SeqStorage {
   public:
    void read_numbers(std::vector<SeqKey>, Done<std::vector<Number>>) override {}
    void read_offset(Done<LogOffset>) override {}
    void write(std::vector<SeqValue>, LogOffset, Done<void>) override {}
    void scan_log(LogOffset, Batcher, Done<void>) override {}
  };
  Store store = fresh_store();
  Sequencer sequencer = Sequencer::open(store, {}, std::make_shared<Silent>()).value();
  EXPECT_FALSE(sequencer.wait_ready(1ms));
  // Gone when the next one waits in its place.
  auto before = std::make_shared<int>();
  std::weak_ptr<int> waits = before;
  sequencer.when_ready([before = std::move(before)] {});
  std::jthread closer([&] {
    while (!waits.expired()) std::this_thread::yield();
    EXPECT_TRUE(sequencer.close());
  });
  EXPECT_FALSE(sequencer.wait_ready(1h));
}

/// SEQ-B3: a call of the storage that does not return is waited for as long as was said, and no longer.
TEST(SequencerRace, CloseDoesNotWaitForACallThatDoesNotReturn) {
  class Stuck final : public SeqStorage {
   public:
    std::latch entered{1}, over{1};
    void read_numbers(std::vector<SeqKey>, Done<std::vector<Number>>) override {}
    void read_offset(Done<LogOffset>) override {
      entered.count_down();
      over.wait();
    }
    void write(std::vector<SeqValue>, LogOffset, Done<void>) override {}
    void scan_log(LogOffset, Batcher, Done<void>) override {}
  };
  Store store = fresh_store();
  auto storage = std::make_shared<Stuck>();
  Sequencer sequencer = Sequencer::open(store, {}, storage).value();
  storage->entered.wait();
  auto closed = std::async(std::launch::async, [&] { return sequencer.close(1ms); });
  bool in_time = closed.wait_for(10s) == std::future_status::ready;
  storage->over.count_down();
  EXPECT_TRUE(in_time);
  Result<void> result = closed.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kDeadline);
  EXPECT_TRUE(sequencer.close(20s)) << "when it has returned";
}

}  // namespace
}  // namespace perdure::sequence
