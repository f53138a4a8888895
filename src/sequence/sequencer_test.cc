// The seed's test plan, and the rules that it leaves unsaid.
#include <algorithm>
#include <random>

#include "sequence/sequencer_fixture.h"

namespace perdure::sequence {
namespace {

using Strings = std::vector<std::string>;
using Sequencing = SequencerFixture;

constexpr Number kLargest = UINT64_MAX;

// SEQ-1, SEQ-5, SEQ-13, SEQ-25, C-1, C-2: the first test of the plan, as it is written.
TEST_F(Sequencing, GoesOnAfterWhatIsInTheLog) {
  storage_->log[42] = {{{kHere, kInvoice}, 13}};
  open();
  EXPECT_EQ(start(), 43u);
  EXPECT_EQ(next(kInvoice), 14u);
  sequencer_->flush();
  pass(500ms);
  EXPECT_EQ(storage_->offset, 43u);
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 14u);
}

// SEQ-23, SEQ-24, SEQ-28, SEQ-29, C-21: the second.
TEST_F(Sequencing, WhatIsActualizedIsHandedOutAgain) {
  storage_->log[42] = {{{kHere, kInvoice}, 13}};
  open();
  EXPECT_EQ(start(), 43u);
  EXPECT_EQ(next(kInvoice), 14u);
  EXPECT_EQ(next(kOrder), 100u);
  pass(500ms);
  EXPECT_EQ(storage_->offset, 42u) << "nothing of it goes to the storage";
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 13u);
  sequencer_->actualize();
  EXPECT_EQ(sequencer_->status().offset, 0u);
  ASSERT_TRUE(sim_.run_until([&] { return !sequencer_->status().actualizing; }, 1s));
  EXPECT_EQ(start(), 43u);
  EXPECT_EQ(next(kInvoice), 14u);
  EXPECT_EQ(next(kOrder), 100u);
}

// SEQ-14, SEQ-24: the event before it is stored meanwhile, and takes nothing of it along.
TEST_F(Sequencing, NothingOfAnEventThatIsUnderWayIsStored) {
  open();
  event({kInvoice});
  EXPECT_EQ(start(), 2u);
  EXPECT_EQ(next(kInvoice), 2u);
  pass(500ms);
  EXPECT_EQ(storage_->offset, 1u);
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 1u);
  sequencer_->actualize();
  ASSERT_TRUE(sim_.run_until([&] { return !sequencer_->status().actualizing; }, 1s));
  EXPECT_EQ(start(), 2u);
  EXPECT_EQ(next(kInvoice), 2u);
}

// SEQ-26, SEQ-27: the third, with an empty storage.
TEST_F(Sequencing, BeginsWithOneAndWithTheInitialValues) {
  open();
  EXPECT_EQ(start(), 1u);
  EXPECT_EQ(next(kInvoice), 1u);
  EXPECT_EQ(next(kOrder), 100u);
}

// SEQ-3, SEQ-26, SEQ-27, SEQ-U13: and with several workspaces, in batches without order, with keys that repeat.
TEST_F(Sequencing, TakesTheLargestNumberOfEachWorkspaceAndSequence) {
  storage_->log[1] = {{{kHere, kInvoice}, 3}, {{kHere, kInvoice}, 2}, {{kThere, kInvoice}, 5}};
  storage_->log[2] = {};
  storage_->log[3] = {{{kHere, kOrder}, 200}, {{kHere, kInvoice}, 1}};
  open();
  EXPECT_EQ((storage_->numbers),
            (std::map<SeqKey, Number>{{{kHere, kInvoice}, 3}, {{kHere, kOrder}, 200}, {{kThere, kInvoice}, 5}}));
  storage_->calls.clear();
  EXPECT_EQ(start(kShop, kHere), 4u);
  EXPECT_EQ(next(kInvoice), 4u);
  EXPECT_EQ(next(kOrder), 201u);
  sequencer_->flush();
  EXPECT_EQ(start(kCafe, kThere), 5u);
  EXPECT_EQ(next(kInvoice), 6u);
  EXPECT_EQ(storage_->calls, Strings()) << "they are in the cache";
}

// SEQ-8, SEQ-9, SEQ-10, SEQ-16, SEQ-22, SEQ-30, SEQ-U8, C-4: the fourth.
TEST_F(Sequencing, CallsAgainstTheGrammarEndTheProcess) {
  open();
  EXPECT_DIES((void)try_next(kInvoice), "without start");
  EXPECT_DIES(sequencer_->flush(), "without start");
  EXPECT_DIES(sequencer_->actualize(), "without start");
  EXPECT_DIES((void)sequencer_->start(WorkspaceKind{99}, kHere), "kind of workspace that it does not know");
  start();
  storage_->held = "read_numbers";
  sequencer_->next_async(kInvoice, [](Result<Number>) {});
  EXPECT_DIES(sequencer_->flush(), "while a number is being read");
  EXPECT_DIES(sequencer_->actualize(), "while a number is being read");
  EXPECT_DIES(sequencer_->next_async(kInvoice, [](Result<Number>) {}), "while a number is being read");
  storage_->let_go();
  pass(1ms);
  EXPECT_DIES((void)sequencer_->start(kShop, kHere), "neither flushed nor actualized");
  EXPECT_DIES((void)sequencer_->start(WorkspaceKind{99}, kHere), "neither flushed nor actualized");
  sequencer_->actualize();
  EXPECT_DIES(sequencer_->actualize(), "without start");
  EXPECT_DIES((void)sequencer_->start(WorkspaceKind{99}, kHere), "does not know") << "also while it actualizes";
  ASSERT_TRUE(sequencer_->close());
  EXPECT_DIES((void)sequencer_->start(WorkspaceKind{99}, kHere), "after it was closed") << "that comes first";
  EXPECT_DIES((void)try_next(kInvoice), "after it was closed");
  EXPECT_DIES(sequencer_->flush(), "after it was closed");
  EXPECT_DIES(sequencer_->actualize(), "after it was closed");
  EXPECT_DIES((void)sequencer_->wait_ready(1s), "after it was closed");
  EXPECT_TRUE(sequencer_->close()) << "SEQ-U9: again is fine";
}

// SEQ-U2.
TEST_F(Sequencing, AnInitialValueOfZeroAndANegativeCacheEndTheProcess) {
  EXPECT_DIES(open_only({.kinds = {{kShop, {{kInvoice, 0}}}}}), "initial value of 0");
  EXPECT_DIES(open_only({.kinds = {}, .cached_max = -1}), "negative cached_max");
}

// SEQ-U1.
TEST_F(Sequencing, Defaults) {
  SequencerParams params;
  EXPECT_EQ(params.unflushed_max, 500u);
  EXPECT_EQ(params.cached_max, 100'000);
  EXPECT_EQ(params.batch_pause, 5ms);
  EXPECT_EQ(params.retry, 500ms);
  EXPECT_LT(params.flush_timeout, 500ms);
  static_assert(sizeof(SeqId) == 2 && sizeof(WorkspaceKind) == 2 && sizeof(WorkspaceId) == 8 && sizeof(Number) == 8);
}

// C-7: the kind comes first, and nobody can take one for the other.
using Start = decltype(&Sequencer::start);
static_assert(std::is_invocable_v<Start, Sequencer&, WorkspaceKind, WorkspaceId>);
static_assert(!std::is_invocable_v<Start, Sequencer&, WorkspaceId, WorkspaceKind>);

// SEQ-2, SEQ-11, SEQ-U3.
TEST_F(Sequencing, RefusesWhileItReadsTheLog) {
  storage_->held = "scan";
  open_only();
  EXPECT_EQ(storage_->calls, Strings()) << "open itself asks for nothing";
  pass(1s);
  EXPECT_TRUE(sequencer_->status().actualizing);
  auto refused = sequencer_->start(kShop, kHere);
  EXPECT_EQ(code_of(refused), ErrorCode::kUnavailable);
  EXPECT_EQ(refused.value_or(0), 0u);
  bool told = false;
  sequencer_->when_ready([&] { told = true; });
  EXPECT_FALSE(told);
  storage_->let_go();
  pass(1ms);
  EXPECT_TRUE(told);
  EXPECT_EQ(start(), 1u);
}

// SEQ-14, SEQ-20, SEQ-21, SEQ-U4.
TEST_F(Sequencing, OffsetsAreConsecutiveAlsoWithoutNumbers) {
  open();
  EXPECT_EQ(start(), 1u);
  EXPECT_EQ(next(kInvoice), 1u);
  EXPECT_EQ(next(kInvoice), 2u);
  EXPECT_EQ(next(kInvoice), 3u);
  sequencer_->flush();
  EXPECT_EQ(event({}), 2u);
  EXPECT_EQ(event({}), 3u);
  pass(500ms);
  EXPECT_EQ(storage_->offset, 3u);
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 3u);
  EXPECT_EQ(sequencer_->status().flushed_offset, 3u);
  EXPECT_EQ(event({}), 4u);
  pass(500ms);
  EXPECT_EQ(storage_->offset, 4u) << "also if no number is stored with it";
}

// SEQ-15, C-3.
TEST_F(Sequencing, AnUnknownSequenceIsAnErrorAndTheEventGoesOn) {
  open();
  EXPECT_EQ(start(kCafe), 1u);
  EXPECT_EQ(code_of(try_next(kOrder)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(next(kInvoice), 1u);
  sequencer_->flush();
  EXPECT_EQ(start(), 2u);
}

// SEQ-U12: the floor holds from every source.
TEST_F(Sequencing, NoNumberIsBelowTheInitialValue) {
  storage_->numbers[{kHere, kOrder}] = 5;
  open();
  start();
  EXPECT_EQ(next(kOrder), 100u) << "from the storage";
  sequencer_->flush();
  pass(1s);
  storage_->log[2] = {{{kHere, kOrder}, 7}};
  storage_->numbers[{kHere, kOrder}] = 7;
  storage_->offset = 1;
  open();
  start();
  EXPECT_EQ(next(kOrder), 100u) << "from the log";
}

// SEQ-B6.
TEST_F(Sequencing, TheLastNumberIsNotFollowedByZero) {
  storage_->numbers[{kHere, kInvoice}] = kLargest - 1;
  open();
  start();
  EXPECT_EQ(next(kInvoice), kLargest);
  EXPECT_EQ(code_of(try_next(kInvoice)), ErrorCode::kTooLarge);
  EXPECT_EQ(next(kOrder), 100u) << "the event goes on";
}

TEST_F(Sequencing, TheLastOffsetIsNotFollowedByZero) {
  storage_->offset = kLargest - 1;
  open();
  EXPECT_EQ(event({}), kLargest);
  EXPECT_EQ(code_of(sequencer_->start(kShop, kHere)), ErrorCode::kTooLarge);
  pass(1s);
  storage_->calls.clear();
  open();
  EXPECT_EQ(storage_->calls, Strings{"read_offset"}) << "there is nothing behind it";
  EXPECT_EQ(code_of(sequencer_->start(kShop, kHere)), ErrorCode::kTooLarge);
}

// SEQ-17, SEQ-18, SEQ-19: what is where, seen by what the storage is asked for.
TEST_F(Sequencing, AReadLoadsAllNumbersOfTheWorkspace) {
  storage_->numbers = {{{kHere, kInvoice}, 4}, {{kHere, kOrder}, 150}};
  open();
  storage_->calls.clear();
  start();
  EXPECT_EQ(next(kInvoice), 5u);
  EXPECT_EQ(next(kOrder), 151u);
  EXPECT_EQ(next(kInvoice), 6u);
  EXPECT_EQ(storage_->calls, Strings{"read_numbers"});
}

// SEQ-17, SEQ-B5: without a cache, each number is found where it is newest.
TEST_F(Sequencing, WithoutACacheNothingIsHandedOutTwice) {
  SequencerParams given = params();
  given.cached_max = 0;
  open(given);
  start();
  EXPECT_EQ(next(kInvoice), 1u);
  EXPECT_EQ(next(kInvoice), 2u) << "drawn";
  sequencer_->flush();
  start();
  EXPECT_EQ(next(kInvoice), 3u) << "not stored yet";
  sequencer_->flush();
  pass(1s);
  start();
  EXPECT_EQ(next(kInvoice), 4u) << "stored";
  sequencer_->flush();
}

// SEQ-B5.
TEST_F(Sequencing, ACacheOfOneEvictsAndNothingIsHandedOutTwice) {
  SequencerParams given = params();
  given.cached_max = 1;
  open(given);
  std::map<SeqKey, Number> last;
  for (int i = 0; i < 300; ++i) {
    WorkspaceId workspace = i % 3 == 0 ? kHere : kThere;
    start(kShop, workspace);
    for (SeqId seq : {kInvoice, kOrder, kInvoice}) {
      Number number = next(seq);
      Number& before = last[{workspace, seq}];
      EXPECT_EQ(number, before == 0 && seq == kOrder ? 100 : before + 1);
      before = number;
    }
    sequencer_->flush();
    if (i % 7 == 0) pass(150ms);
  }
}

// SEQ-B4: numbers that are read must not replace those that are newer and not stored yet.
TEST_F(Sequencing, WhatIsReadReplacesNothingNewer) {
  SequencerParams given = params();
  given.cached_max = 2;
  given.flush_timeout = 1h;
  storage_->numbers = {{{kHere, kInvoice}, 10}, {{kHere, kOrder}, 200}};
  open(given);
  event({kOrder});
  // Others push it out.
  event({kInvoice, kOrder}, kThere);
  start();
  EXPECT_EQ(next(kInvoice), 11u) << "reads both";
  EXPECT_EQ(next(kOrder), 202u);
}

// SEQ-17, SEQ-B4, SEQ-B5, SEQ-24: all of it by chance, beside what it should be.
TEST_F(Sequencing, IsLikeAMapOfNumbers) {
  std::mt19937_64 random(11);
  for (std::int64_t cached : {0, 1, 2, 3, 5, 100}) {
    storage_ = std::make_shared<MemoryStorage>();
    SequencerParams given;
    for (std::uint16_t seq = 1; seq <= 5; ++seq) given.kinds[kShop][SeqId{seq}] = seq;
    given.cached_max = cached;
    given.unflushed_max = 100;
    open(given);
    std::map<SeqKey, Number> last;
    LogOffset offset = 0;
    for (int i = 0; i < 400; ++i) {
      WorkspaceId workspace{random() % 3};
      ASSERT_EQ(start(kShop, workspace), offset + 1);
      std::map<SeqKey, Number> drawn = last;
      std::vector<SeqValue> entry;
      for (auto draws = random() % 6; draws > 0; --draws) {
        SeqKey key{workspace, SeqId{static_cast<std::uint16_t>(1 + random() % 5)}};
        Number& number = drawn[key];
        number = std::max<Number>(number + 1, static_cast<Number>(key.seq));
        ASSERT_EQ(next(key.seq), number) << "with a cache of " << cached << ", event " << i;
        entry.push_back({key, number});
      }
      if (random() % 4 == 0) {
        sequencer_->actualize();
        ASSERT_TRUE(sim_.run_until([&] { return !sequencer_->status().actualizing; }, 10s));
        continue;
      }
      std::ranges::shuffle(entry, random);
      storage_->log[++offset] = entry;
      last = drawn;
      sequencer_->flush();
      if (random() % 8 == 0) pass(150ms);
    }
  }
}

// SEQ-B4, the same when it is stored while the older numbers are on their way.
TEST_F(Sequencing, WhatWasReadBeforeAFlushIsNotTakenAfterIt) {
  SequencerParams given = params();
  given.cached_max = 2;
  storage_->numbers = {{{kHere, kInvoice}, 10}, {{kHere, kOrder}, 200}};
  open(given);
  LogOffset offset = start();
  EXPECT_EQ(next(kOrder), 201u);
  storage_->log[offset] = {{{kHere, kOrder}, 201}};
  sequencer_->flush();
  // Others push both out.
  event({kInvoice, kOrder}, kThere);
  storage_->held = "read_numbers";
  start();
  std::optional<Result<Number>> answer;
  sequencer_->next_async(kInvoice, [&](Result<Number> number) { answer = std::move(number); });
  pass(200ms);
  ASSERT_EQ((storage_->numbers[{kHere, kOrder}]), 201u) << "stored meanwhile";
  storage_->let_go();
  pass(1ms);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->value(), 11u);
  EXPECT_EQ(next(kOrder), 202u);
}

// SEQ-6, SEQ-12, SEQ-U3: more than unflushed_max, not as many.
TEST_F(Sequencing, RefusesWhenTooMuchIsNotStoredAndHurries) {
  SequencerParams given = params();
  given.unflushed_max = 2;
  given.flush_timeout = 1h;
  open(given);
  event({kInvoice});
  event({kOrder});
  storage_->held = "write";
  EXPECT_EQ(event({kInvoice}, kThere), 3u) << "two are not too many";
  EXPECT_EQ(sequencer_->status().unflushed, 3u);
  auto refused = sequencer_->start(kShop, kHere);
  EXPECT_EQ(code_of(refused), ErrorCode::kLimitExceeded);
  bool told = false;
  sequencer_->when_ready([&] { told = true; });
  pass(1ms);
  EXPECT_EQ(storage_->waiting.size(), 1u) << "it did not wait an hour";
  EXPECT_FALSE(told);
  storage_->let_go();
  pass(1ms);
  EXPECT_TRUE(told);
  EXPECT_EQ(sequencer_->status().unflushed, 0u);
  EXPECT_EQ(start(), 4u);
}

// SEQ-6: flush_timeout after the first that is not stored, however many follow.
TEST_F(Sequencing, IsStoredOnceInAWhileHoweverMuchComes) {
  SequencerParams given = params();
  given.flush_timeout = 100ms;
  open(given);
  for (int i = 0; i < 100; ++i) {
    event({kInvoice});
    pass(10ms);
  }
  auto writes = std::ranges::count(storage_->calls, "write");
  EXPECT_GE(writes, 8) << "it does not wait for silence";
  EXPECT_LE(writes, 10) << "it waits for more";
}

// SEQ-U5, C-20.
TEST_F(Sequencing, WhatGrewWhileItWasStoredIsStoredAgain) {
  open();
  event({kInvoice, kOrder});
  storage_->held = "write";
  pass(200ms);
  ASSERT_EQ(storage_->waiting.size(), 1u);
  event({kInvoice});
  storage_->let_go();
  EXPECT_EQ(sequencer_->status().unflushed, 1u);
  EXPECT_EQ(storage_->offset, 1u);
  pass(200ms);
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 2u);
  EXPECT_EQ(storage_->offset, 2u);
}

// SEQ-7: nothing is written when there is nothing to write.
TEST_F(Sequencing, NobodyWritesWithoutNeed) {
  open();
  storage_->calls.clear();
  pass(10s);
  EXPECT_EQ(storage_->calls, Strings());
  event({kInvoice});
  pass(10s);
  EXPECT_EQ(storage_->calls, (Strings{"read_numbers", "write"}));
}

// SEQ-3, SEQ-U7: one write at a time.
TEST_F(Sequencing, ActualizingWaitsForAFlushThatIsUnderWay) {
  open();
  event({kInvoice});
  storage_->held = "write";
  pass(200ms);
  ASSERT_EQ(storage_->waiting.size(), 1u);
  start();
  storage_->calls.clear();
  sequencer_->actualize();
  pass(1s);
  EXPECT_EQ(storage_->calls, Strings()) << "nothing is read before it has ended";
  EXPECT_TRUE(sequencer_->status().actualizing);
  storage_->let_go();
  pass(1ms);
  EXPECT_EQ(storage_->calls, (Strings{"read_offset", "scan 2"}));
  EXPECT_EQ(start(), 2u);
  EXPECT_EQ(next(kInvoice), 2u);
}

// SEQ-3, SEQ-6: the flusher is stopped, and begins anew when the log was read.
TEST_F(Sequencing, ActualizingStopsTheFlusherAndStartsItAgain) {
  open();
  event({kInvoice});
  start();
  storage_->held = "read_offset";
  storage_->calls.clear();
  sequencer_->actualize();
  pass(1s);
  EXPECT_EQ(storage_->calls, Strings{"read_offset"});
  storage_->let_go();
  pass(1ms);
  EXPECT_EQ(event({kInvoice}), 2u);
  pass(500ms);
  EXPECT_EQ(storage_->offset, 2u);
  EXPECT_EQ((storage_->numbers[{kHere, kInvoice}]), 2u);
}

// SEQ-U7: what is not stored is dropped, and comes back from the log.
TEST_F(Sequencing, ActualizingReadsWhatWasFlushedFromTheLog) {
  SequencerParams given = params();
  given.flush_timeout = 1h;
  open(given);
  event({kInvoice, kInvoice});
  start();
  EXPECT_EQ(next(kInvoice), 3u);
  sequencer_->actualize();
  ASSERT_TRUE(sim_.run_until([&] { return !sequencer_->status().actualizing; }, 1s));
  EXPECT_EQ(sequencer_->status().unflushed, 0u);
  EXPECT_EQ(storage_->offset, 1u) << "written by the actualizer";
  EXPECT_EQ(start(), 2u);
  EXPECT_EQ(next(kInvoice), 3u);
}

// SEQ-B1, SEQ-B11, C-2: the stored offset bounds what is read.
TEST_F(Sequencing, OnlyTheTailIsRead) {
  for (LogOffset offset = 1; offset <= 1000; ++offset) storage_->log[offset] = {{{kHere, kInvoice}, offset}};
  storage_->offset = 990;
  storage_->numbers[{kHere, kInvoice}] = 990;
  open();
  EXPECT_EQ(storage_->scanned, 10u);
  EXPECT_EQ(sequencer_->status().scanned, 10u);
  EXPECT_EQ(start(), 1001u);
  EXPECT_EQ(next(kInvoice), 1001u);
}

// C-5: the offset is written although there are no numbers, so that nothing is read twice.
TEST_F(Sequencing, EntriesWithoutNumbersMoveTheOffset) {
  storage_->log = {{1, {}}, {2, {}}};
  open();
  EXPECT_EQ(storage_->offset, 2u);
  EXPECT_EQ(storage_->calls, (Strings{"read_offset", "scan 1", "write"}));
}

// SEQ-U1, C-6: a log with more numbers than fit is read in parts, and each part is stored before the next, with a pause
// between them.
TEST_F(Sequencing, ALongLogIsReadInParts) {
  for (LogOffset offset = 1; offset <= 25'000; ++offset)
    storage_->log[offset] = {{{WorkspaceId{offset}, kInvoice}, offset}};
  SequencerParams given = params();
  given.cached_max = 1;
  SteadyTime before = sim_.node(0)->now();
  open(given);
  EXPECT_GE(sim_.node(0)->now() - before, 2 * given.batch_pause);
  EXPECT_EQ(std::ranges::count(storage_->calls, "write"), 3);
  EXPECT_EQ(storage_->scanned, 25'000u);
  EXPECT_EQ(storage_->offset, 25'000u);
  start(kShop, WorkspaceId{1});
  EXPECT_EQ(next(kInvoice), 2u);
}

// SEQ-B2: a number in the log that is below the stored one takes nothing back.
TEST_F(Sequencing, RecoveryNeverLowersANumber) {
  storage_->numbers[{kHere, kInvoice}] = 50;
  storage_->log[1] = {{{kHere, kInvoice}, 20}};
  open();
  start();
  EXPECT_EQ(next(kInvoice), 51u);
}

}  // namespace
}  // namespace perdure::sequence
