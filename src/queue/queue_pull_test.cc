// Claims by hand that wait: who has gone away is not waited for, and what is written with a claim.
#include "queue/queue_fixture.h"
#include "runtime/latch.h"
#include "session/cancel_source.h"

namespace perdure::queue {
namespace {

class QueuePull : public QueueFixture {
 protected:
  using Answer = Result<std::vector<Claimed>>;
  static std::shared_ptr<Promise<Answer>> claim(Queue& queue, const ClaimOptions& options) {
    auto answer = std::make_shared<Promise<Answer>>();
    queue.claim_async("hand", options, [answer](Answer claimed) { answer->set(std::move(claimed)); });
    return answer;
  }
};

TEST_F(QueuePull, AClaimWhoseClientIsGoneIsAnsweredAtOnceAndClaimsNothingAnyMore) {
  Queue queue = open();
  CancelSource gone;
  // It waits: the claim of the same kind behind it has been answered.
  auto answer = claim(queue, {.wait = Duration::max(), .cancel = gone.signal()});
  EXPECT_EQ(queue.claim("hand")->size(), 0U);
  gone.cancel();
  EXPECT_EQ(answer->take().value_or(std::vector<Claimed>(7)).size(), 0U);
  auto id = queue.emit("hand", 1)->id;
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
  EXPECT_EQ(claim_one(queue, "hand").id, id);
}

TEST_F(QueuePull, AClaimWhoseClientWasGoneBeforeItCameClaimsNothing) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  CancelSource gone;
  gone.cancel();
  EXPECT_EQ(queue.claim("hand", {.wait = 20s, .cancel = gone.signal()})->size(), 0U);
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
}

TEST_F(QueuePull, AThousandClaimsWaitAndAreCancelledWhileEventsCome) {
  Queue queue = open();
  std::vector<CancelSource> gone(1'000);
  std::vector<std::shared_ptr<Promise<Answer>>> answers;
  for (CancelSource& source : gone)
    answers.push_back(claim(queue, {.max = 1, .wait = Duration::max(), .cancel = source.signal()}));
  std::thread emitting([&] {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(queue.emit("hand", i));
  });
  for (CancelSource& source : gone) source.cancel();
  emitting.join();
  std::size_t claimed = 0;
  for (auto& answer : answers) claimed += answer->take().value().size();
  auto workers = info(queue, "hand");
  EXPECT_EQ(workers.running, claimed) << "what is claimed was answered";
  EXPECT_EQ(workers.ready, 50 - claimed);
}

/// What an idempotent claim keeps: the ids, and each token as it was answered.
struct Kept {
  static Bytes order_of(const Claimed& event) { return encode_counter(event.token->stamp.order); }
  static void write(Transaction& txn, const std::vector<Claimed>& events) {
    Bytes rest;
    for (const Claimed& event : events) rest += encode_id(event.id) + order_of(event);
    txn.set_stamped("answer", Stamped{"", rest, 0});
  }
  static std::vector<std::pair<Uuid, Stamp>> read(Reader& reader) {
    Bytes row = reader.get("answer").value_or("");
    Version version = Stamp::decode(BytesView(row).substr(0, Stamp::kSize))->version;
    std::vector<std::pair<Uuid, Stamp>> events;
    for (std::size_t at = Stamp::kSize; at < row.size(); at += 24) {
      auto order = decode_counter(row.substr(at + 16, 8));
      events.emplace_back(*decode_id(BytesView(row).substr(at, 16)), Stamp{version, static_cast<std::uint32_t>(order)});
    }
    return events;
  }
};

TEST_F(QueuePull, WhatIsWrittenWithAClaimTellsItsTokensAlsoAfterTheEventsHaveEnded) {
  Queue queue = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.emit("hand", i));
  auto claimed = queue.claim("hand", {.max = 3, .also = Kept::write});
  ASSERT_EQ(claimed.value().size(), 3U);
  ASSERT_TRUE(queue.complete((*claimed)[0].id, *(*claimed)[0].token));
  auto kept = store.read([](Reader& reader) { return Kept::read(reader); }).value();
  ASSERT_EQ(kept.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(kept[i].first, (*claimed)[i].id);
    EXPECT_EQ(kept[i].second, (*claimed)[i].token->stamp);
  }
  // A token that was made of what was kept is as good as the one that was answered.
  EXPECT_TRUE(queue.complete(kept[2].first, {kept[2].second, (*claimed)[2].token->store}));
}

TEST_F(QueuePull, WhatIsWrittenWithAClaimIsWrittenOnlyIfSomethingIsClaimedAndWithIt) {
  Queue queue = open();
  auto write = [](Transaction& txn, const std::vector<Claimed>&) { txn.add("claims", 1); };
  auto claims = [&] { return store.read([](Reader& reader) { return decode_counter(reader.get("claims")); }).value(); };
  EXPECT_EQ(queue.claim("hand", {.also = write})->size(), 0U);
  EXPECT_EQ(claims(), 0);
  auto id = queue.emit("hand", 1)->id;
  auto refused = queue.claim("hand", {.also = [](Transaction& txn, const std::vector<Claimed>&) {
                               txn.add("claims", 1);
                               throw std::runtime_error("not this time");
                             }});
  EXPECT_EQ(code_of(refused), ErrorCode::kHandlerFailed);
  EXPECT_EQ(claims(), 0);
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
  EXPECT_EQ(queue.claim("hand", {.also = write})->size(), 1U);
  EXPECT_EQ(claims(), 1);
}

TEST_F(QueuePull, AThousandAreClaimedInAsManyPartsAsTheEngineNeeds) {
  Queue queue = open();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(200, {"hand", Value(std::string(950, 'x')), {}})));
  std::size_t claimed = 0;
  while (claimed < 1'000) {
    auto part = queue.claim("hand", {.max = 1'000});
    ASSERT_TRUE(part) << to_string(part.error());
    ASSERT_FALSE(part->empty()) << claimed;
    claimed += part->size();
  }
}

}  // namespace
}  // namespace perdure::queue
