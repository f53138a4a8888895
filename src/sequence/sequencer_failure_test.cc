// A storage that fails, that never answers, and that belongs to somebody else; and the end of a sequencer.
#include "sequence/sequencer_fixture.h"

namespace perdure::sequence {
namespace {

const Error kDown{ErrorCode::kUnavailable, "the storage is down"};
const Error kTaken{ErrorCode::kStaleToken, "somebody else has it"};

using SequencerFailure = SequencerFixture;

// SEQ-U1, SEQ-B9: every half second, without end.
TEST_F(SequencerFailure, ReadingTheLogIsTriedAgainAsLongAsItTakes) {
  storage_->failing = kDown;
  open_only();
  pass(60s + 1ms);
  SequencerStatus status = sequencer_->status();
  EXPECT_TRUE(status.actualizing);
  EXPECT_EQ(status.failures, 121u);
  ASSERT_TRUE(status.problem);
  EXPECT_EQ(status.problem->message, kDown.message);
  storage_->failing.reset();
  pass(500ms);
  EXPECT_FALSE(sequencer_->status().actualizing);
  EXPECT_FALSE(sequencer_->status().problem);
  EXPECT_EQ(start(), 1u);
}

TEST_F(SequencerFailure, EachStepOfTheActualizerIsTriedAgain) {
  for (std::string_view step : {"scan", "read_numbers", "write"}) {
    storage_->numbers.clear();
    storage_->offset = 0;
    storage_->log[1] = {{{kHere, kInvoice}, 13}};
    storage_->held = step;
    open_only();
    pass(1ms);
    ASSERT_EQ(storage_->waiting.size(), 1u) << step;
    storage_->failing = kDown;
    storage_->let_go();
    pass(700ms);
    EXPECT_TRUE(sequencer_->status().actualizing) << step;
    storage_->failing.reset();
    pass(1s);
    EXPECT_EQ(start(), 2u) << step;
    EXPECT_EQ(next(kInvoice), 14u) << step;
  }
}

TEST_F(SequencerFailure, WritingBehindIsTriedAgainAndGoesOnWithTheRest) {
  SequencerParams given = params();
  given.unflushed_max = 1;
  open(given);
  storage_->failing = kDown;
  storage_->numbers[{kHere, kOrder}] = 0;
  start();
  std::optional<Result<Number>> answer;
  sequencer_->next_async(kInvoice, [&](Result<Number> number) { answer = std::move(number); });
  pass(5s);
  EXPECT_FALSE(answer) << "a number that has to be read waits for the storage";
  storage_->failing.reset();
  pass(1s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->value(), 1u);
  EXPECT_EQ(next(kOrder), 100u);
  storage_->log[1] = {{{kHere, kInvoice}, 1}, {{kHere, kOrder}, 100}};
  storage_->failing = kDown;
  std::uint64_t failures = sequencer_->status().failures;
  sequencer_->flush();
  pass(10s);
  // Once right away, as there is too much; asking again and again does not hurry it more.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(code_of(sequencer_->start(kShop, kHere)), ErrorCode::kLimitExceeded);
  pass(1ms);
  EXPECT_LE(sequencer_->status().failures - failures, 22u);
  EXPECT_EQ(sequencer_->status().unflushed, 2u);
  storage_->failing.reset();
  pass(500ms);
  EXPECT_EQ(storage_->offset, 1u);
  EXPECT_EQ(start(), 2u);
}

// SEQ-B7: what says that the partition is lost is final.
TEST_F(SequencerFailure, ALostPartitionIsNotTriedAgain) {
  open();
  event({kInvoice});
  start();
  storage_->failing = kTaken;
  bool told = false;
  pass(200ms);
  SequencerStatus status = sequencer_->status();
  EXPECT_TRUE(status.fenced);
  EXPECT_EQ(status.failures, 1u);
  sequencer_->flush();
  EXPECT_EQ(code_of(sequencer_->start(kShop, kHere)), ErrorCode::kStaleToken);
  sequencer_->when_ready([&] { told = true; });
  EXPECT_TRUE(told) << "nobody waits for what will not come";
  storage_->failing.reset();
  pass(10s);
  EXPECT_EQ(storage_->offset, 0u);
  EXPECT_EQ(sequencer_->status().failures, 1u);
}

TEST_F(SequencerFailure, ALostPartitionShowsInAnEventThatIsUnderWay) {
  open();
  start();
  storage_->failing = kTaken;
  EXPECT_EQ(code_of(try_next(kInvoice)), ErrorCode::kStaleToken);
  EXPECT_EQ(code_of(try_next(kInvoice)), ErrorCode::kStaleToken);
  sequencer_->actualize();
  EXPECT_EQ(code_of(sequencer_->start(kShop, kHere)), ErrorCode::kStaleToken);
  EXPECT_FALSE(sequencer_->status().actualizing);
}

// SEQ-4, SEQ-B3: it ends at once, whatever the storage does.
TEST_F(SequencerFailure, CloseDoesNotWaitForAStorageThatNeverAnswers) {
  for (std::string_view step : {"read_offset", "scan", "write"}) {
    storage_->log[1] = {{{kHere, kInvoice}, 13}};
    storage_->offset = 0;
    storage_->held = step;
    open_only();
    pass(1s);
    ASSERT_EQ(storage_->waiting.size(), 1u) << step;
    SteadyTime before = sim_.node(0)->now();
    EXPECT_TRUE(sequencer_->close()) << step;
    EXPECT_TRUE(sequencer_->close()) << "again";
    EXPECT_EQ(sim_.node(0)->now(), before);
    storage_->calls.clear();
    storage_->let_go();
    pass(10s);
    EXPECT_EQ(storage_->calls, std::vector<std::string>()) << step << ": a late answer does nothing";
  }
}

TEST_F(SequencerFailure, CloseDoesNotWaitForAStorageThatFails) {
  open();
  event({kInvoice});
  storage_->failing = kDown;
  pass(2s);
  EXPECT_TRUE(sequencer_->close());
  storage_->calls.clear();
  pass(10s);
  EXPECT_EQ(storage_->calls, std::vector<std::string>());
}

// SEQ-U9.
TEST_F(SequencerFailure, ANumberThatIsBeingReadIsRefusedByClose) {
  open();
  start();
  storage_->failing = kDown;
  std::optional<Result<Number>> answer;
  sequencer_->next_async(kInvoice, [&](Result<Number> number) { answer = std::move(number); });
  pass(2s);
  ASSERT_FALSE(answer);
  EXPECT_TRUE(sequencer_->close());
  ASSERT_TRUE(answer);
  EXPECT_EQ(code_of(*answer), ErrorCode::kClosed);
}

// The partition is known to be lost, and the storage cannot be reached: nobody waits for a number any more.
TEST_F(SequencerFailure, ANumberOfALostPartitionIsNotReadForEver) {
  open();
  event({kInvoice});
  start(kShop, kThere);
  storage_->held = "read_numbers";
  std::optional<Result<Number>> answer;
  sequencer_->next_async(kOrder, [&](Result<Number> number) { answer = std::move(number); });
  storage_->failing = kTaken;
  pass(1s);
  ASSERT_TRUE(sequencer_->status().fenced);
  storage_->failing = kDown;
  storage_->let_go();
  pass(1ms);
  ASSERT_TRUE(answer);
  EXPECT_EQ(code_of(*answer), ErrorCode::kStaleToken);
}

// A call may end what it comes from.
TEST_F(SequencerFailure, ItMayBeDroppedInItsOwnCallbacks) {
  open();
  start();
  bool answered = false;
  sequencer_->next_async(kInvoice, [&](Result<Number>) {
    answered = true;
    sequencer_.reset();
  });
  pass(1ms);
  EXPECT_TRUE(answered);
  storage_->held = "scan";
  open_only();
  sequencer_->when_ready([&] { sequencer_.reset(); });
  pass(1ms);
  storage_->let_go();
  pass(1ms);
  EXPECT_FALSE(sequencer_);
}

// SEQ-4: a process that is told to stop while it reads its log.
TEST_F(SequencerFailure, DroppingItWhileItActualizesIsFine) {
  storage_->held = "scan";
  open_only();
  pass(1ms);
  sequencer_.reset();
  storage_->let_go();
  pass(1s);
  EXPECT_EQ(storage_->offset, 0u);
}

// SEQ-B10: one that was misused, or lost, says nothing about others.
TEST_F(SequencerFailure, OtherPartitionsGoOn) {
  open();
  auto other = std::make_shared<MemoryStorage>();
  Sequencer beside = Sequencer::open(sim_.node(0)->store(), params(), other).value();
  ASSERT_TRUE(sim_.run_until([&] { return !beside.status().actualizing; }, 1s));
  event({kInvoice});
  storage_->failing = kTaken;
  pass(1s);
  EXPECT_TRUE(sequencer_->status().fenced);
  EXPECT_EQ(beside.start(kShop, kHere).value_or(0), 1u);
  beside.flush();
  pass(1s);
  EXPECT_EQ(other->offset, 1u);
}

}  // namespace
}  // namespace perdure::sequence
