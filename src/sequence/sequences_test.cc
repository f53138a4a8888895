// The log and its numbers in one transaction.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "perdure/actor.h"
#include "perdure/sequence.h"
#include "sequence/rows.h"
#include "session/rows.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure::sequence {
namespace {

using namespace std::chrono_literals;
using Numbers = std::map<std::string, Number>;
using Named = std::vector<std::pair<std::string, Number>>;

constexpr Number kLargest = UINT64_MAX;

class SequencesTest : public ::testing::Test {
 protected:
  SequencesTest() { EXPECT_TRUE(sequences.set("p", kSpec)); }

  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  Appended append(std::vector<std::string> next, std::uint64_t workspace = 7, Value payload = {}) {
    auto appended = sequences.append("p", {"shop", workspace, std::move(next), std::move(payload)});
    EXPECT_TRUE(appended) << to_string(appended.error());
    return appended.value_or(Appended());
  }
  /// What an owner of a partition does: its first life up to now.
  OwnedPartition own() { return sequences.own(session, "p").value(); }
  void write(const OwnedPartition& owner, LogOffset offset, const LogWrite& entry) {
    auto written = store.transact([&](Transaction& txn) { owner.write(txn, offset, entry); });
    EXPECT_TRUE(written) << to_string(written.error());
  }
  void set_number(const SeqKey& key, Number number) {
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      txn.set(Place("default", "p").number_key(key), encode_number(number));
    }));
  }

  const PartitionSpec kSpec{.types = {{"shop", {{"invoice", 1}, {"order", 1000}}}, {"cafe", {{"invoice", 1}}}}};
  Store store = fresh_store();
  Sequences sequences = *Sequences::open(store);
  Session session = *Session::open(store);
};

/// Draws a number with each sale.
struct Sell {
  using Reply = std::int64_t;
  std::string sequence;
  PERDURE_DESCRIBE(Sell, sequence)
};
struct Shop {
  static constexpr std::string_view kKind = "shop";
  struct State {
    std::int64_t sold = 0;
    PERDURE_DESCRIBE(State, sold)
  };
  using Messages = MessageList<Sell>;
  Sequences sequences;
  Answer<std::int64_t> handle_call(const Sell& sell, State& state, Turn& turn) {
    turn.add(sequences.append_effect("p", {"shop", 7, {sell.sequence}}));
    return ++state.sold;
  }
};

// SEQ-B8, SEQ-14, SEQ-20.
TEST_F(SequencesTest, AnEventAndItsNumbers) {
  EXPECT_EQ(append({"invoice", "invoice", "order"}), (Appended{1, {1, 2, 1000}}));
  EXPECT_EQ(append({}), (Appended{2, {}}));
  EXPECT_EQ(append({"order", "invoice"}, 8), (Appended{3, {1000, 1}}));
  EXPECT_EQ(append({"invoice"}), (Appended{4, {3}}));
  EXPECT_EQ(sequences.numbers("p", 7).value(), (Numbers{{"invoice", 3}, {"order", 1000}}));
  EXPECT_EQ(sequences.numbers("p", 8).value(), (Numbers{{"invoice", 1}, {"order", 1000}}));
  EXPECT_EQ(sequences.numbers("p", 9).value(), Numbers()) << "absent before the first";
}

TEST_F(SequencesTest, OneThatWasRemovedLeavesNothingAndBeginsAnew) {
  for (int i = 0; i < 2'100; ++i) append({"invoice"});
  ASSERT_TRUE(sequences.remove("p"));
  EXPECT_EQ(code_of(sequences.get("p")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(sequences.remove("p")), ErrorCode::kNotFound);
  auto left = store.read([](Reader& reader) {
    SystemAccess access(reader);
    return reader.get_range(tuple::extensions(rows_prefix("default", "p"))).size();
  });
  EXPECT_EQ(left.value(), 0u);
  ASSERT_TRUE(sequences.set("p", kSpec));
  EXPECT_EQ(append({"invoice"}), (Appended{1, {1}}));
}

TEST_F(SequencesTest, OneThatSomebodyOwnsIsNotRemoved) {
  append({"invoice"});
  auto owner = own();
  EXPECT_EQ(code_of(sequences.remove("p")), ErrorCode::kWrongState);
  ASSERT_TRUE(owner.release());
  EXPECT_TRUE(sequences.remove("p"));
}

TEST_F(SequencesTest, TheLogSaysWhatWasDrawn) {
  append({"order", "invoice"}, 7, "first");
  append({}, 8, "second");
  append({"invoice"}, 7, "third");
  auto log = sequences.log("p").value();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0].offset, 1u);
  EXPECT_EQ(log[0].type, "shop");
  EXPECT_EQ(log[0].workspace, 7u);
  EXPECT_EQ(log[0].numbers, (Named{{"order", 1000}, {"invoice", 1}}));
  EXPECT_EQ(log[0].payload, Value("first"));
  EXPECT_GT(log[0].at.time_since_epoch(), 0ns);
  EXPECT_EQ(log[1].numbers, Named());
  auto second = sequences.log("p", {.after = 1, .limit = 1}).value();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].payload, Value("second"));
  EXPECT_TRUE(sequences.log("p", {.after = 3}).value().empty());
  EXPECT_TRUE(sequences.log("p", {.after = kLargest}).value().empty());
}

TEST_F(SequencesTest, SeveralAreOneTransaction) {
  auto appended =
      sequences.append_many("p", {{"shop", 7, {"invoice"}}, {"shop", 8, {"invoice"}}, {"cafe", 7, {"invoice"}}});
  EXPECT_EQ(appended.value(), (std::vector<Appended>{{1, {1}}, {2, {1}}, {3, {2}}}))
      << "types of a workspace share what they name alike";
  auto refused = sequences.append_many("p", {{"shop", 7, {"invoice"}}, {"shop", 7, {"nothing"}}});
  EXPECT_EQ(code_of(refused), ErrorCode::kInvalidArgument);
  EXPECT_EQ(append({"invoice"}), (Appended{4, {3}})) << "nothing was drawn";
  EXPECT_EQ(sequences.append_many("p", {}).value(), std::vector<Appended>());
}

TEST_F(SequencesTest, InATransactionOfYours) {
  auto refused = store.transact([&](Transaction& txn) -> Result<void> {
    sequences.append(txn, "p", {"shop", 7, {"invoice"}});
    return fail(ErrorCode::kNotFound, "changed my mind");
  });
  EXPECT_EQ(code_of(refused), ErrorCode::kNotFound);
  auto both = store.transact([&](Transaction& txn) {
    auto first = sequences.append(txn, "p", {"shop", 7, {"invoice"}});
    auto second = sequences.append(txn, "p", {"shop", 7, {"invoice", "order"}});
    txn.set("invoice", std::to_string(first.numbers[0]));
    return std::vector<Appended>{first, second};
  });
  EXPECT_EQ(both.value(), (std::vector<Appended>{{1, {1}}, {2, {2, 1000}}}));
}

TEST_F(SequencesTest, AppendedByAnActorWithItsState) {
  Actors actors = *Actors::open(store);
  ASSERT_TRUE(actors.serve(Shop{sequences}));
  auto shop = actors.of<Shop>("a");
  EXPECT_TRUE(shop.call(Sell{"invoice"}));
  EXPECT_FALSE(shop.call(Sell{"nothing"}));
  EXPECT_EQ(shop.call(Sell{"invoice"}).value(), 2) << "what was refused is not in the state either";
  auto log = sequences.log("p").value();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[1].numbers, (Named{{"invoice", 2}}));
  ASSERT_TRUE(actors.close());
}

// Many at once: neither gaps nor doubles.
TEST_F(SequencesTest, FromManyThreads) {
  constexpr int kThreads = 8, kEach = 50;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) append({"invoice"}, k % 2);
    });
  threads.clear();
  auto log = sequences.log("p", {.limit = 1'000}).value();
  ASSERT_EQ(log.size(), static_cast<std::size_t>(kThreads * kEach));
  std::map<std::uint64_t, Number> last;
  for (std::size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].offset, i + 1);
    EXPECT_EQ(log[i].numbers[0].second, ++last[log[i].workspace]);
  }
}

// Bad input: nothing drawn, nothing lost.
TEST_F(SequencesTest, WhatIsWrongIsRefusedAndDrawsNothing) {
  EXPECT_EQ(code_of(sequences.append("p", {"bank", 7, {"invoice"}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.append("p", {"cafe", 7, {"invoice", "order"}})), ErrorCode::kInvalidArgument)
      << "a sequence of another type";
  EXPECT_EQ(code_of(sequences.append("q", {"shop", 7, {}})), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(sequences.append("no/name", {"shop", 7, {}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {}, Value(std::string(kLogPayloadBytesMax, 'x'))})),
            ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, std::vector<std::string>(70'000, "invoice")})),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.log("q")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(sequences.numbers("q", 7)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(Sequences::open(store, {.space = "no space"})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(append({"invoice"}), (Appended{1, {1}}));
}

// SEQ-U2.
TEST_F(SequencesTest, APartitionIsChecked) {
  EXPECT_EQ(code_of(sequences.set("q", {.types = {{"shop", {{"invoice", 0}}}}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.set("q", {.types = {{"shop!", {{"invoice", 1}}}}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.set("q", {.types = {{"shop", {{"", 1}}}}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(sequences.get("q")), ErrorCode::kNotFound) << "nothing of it was made";
}

TEST_F(SequencesTest, APartitionGrowsAndKeepsItsNumbers) {
  append({"invoice", "order"});
  EXPECT_TRUE(sequences.set("p", {.types = {{"shop", {{"invoice", 50}, {"refund", 5}}}, {"bank", {{"order", 1}}}}}));
  EXPECT_EQ(append({"invoice", "order", "refund"}), (Appended{2, {50, 1001, 5}})) << "what is not named stays";
  EXPECT_TRUE(sequences.set("p", {.types = {{"shop", {{"invoice", 1}}}}}));
  EXPECT_EQ(append({"invoice"}), (Appended{3, {51}})) << "no number is lowered";
  auto log = sequences.log("p").value();
  EXPECT_EQ(log[0].numbers, (Named{{"invoice", 1}, {"order", 1000}}));
}

TEST_F(SequencesTest, PartitionsAreListedAndShown) {
  ASSERT_TRUE(sequences.set("q", {.types = {}, .trust = Trust::kGuardLog}));
  ASSERT_TRUE(sequences.in("other").set("r", kSpec));
  append({"invoice"});
  auto listed = sequences.list().value();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].name, "p");
  EXPECT_EQ(listed[0].spec, kSpec);
  EXPECT_EQ(listed[0].offset, 1u);
  EXPECT_EQ(listed[0].flushed_offset, 1u);
  EXPECT_FALSE(listed[0].owner);
  EXPECT_EQ(listed[1].spec.trust, Trust::kGuardLog);
  EXPECT_EQ(sequences.list({.limit = 1, .after = "p"}).value()[0].name, "q");
}

// SEQ-U10.
TEST_F(SequencesTest, SpacesAndPartitionsHaveLogsAndNumbersOfTheirOwn) {
  ASSERT_TRUE(sequences.set("q", kSpec));
  ASSERT_TRUE(sequences.in("other").set("p", kSpec));
  EXPECT_EQ(append({"invoice"}), (Appended{1, {1}}));
  EXPECT_EQ(append({"invoice"}), (Appended{2, {2}}));
  EXPECT_EQ(sequences.append("q", {"shop", 7, {"invoice"}}).value(), (Appended{1, {1}}));
  EXPECT_EQ(sequences.in("other").append("p", {"shop", 7, {"invoice"}}).value(), (Appended{1, {1}}));
}

// SEQ-B6.
TEST_F(SequencesTest, TheLastNumberIsNotFollowedByZero) {
  append({"invoice"});
  set_number({WorkspaceId{7}, SeqId{0}}, kLargest - 1);
  EXPECT_EQ(append({"invoice"}).numbers, std::vector<Number>{kLargest});
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {"order", "invoice"}})), ErrorCode::kTooLarge);
  EXPECT_EQ(append({"order"}), (Appended{3, {1000}})) << "nothing was drawn by the refused one";
}

// SEQ-U15: an occupied offset.
TEST_F(SequencesTest, AnOccupiedOffsetIsAViolation) {
  auto attempt = [&](Trust trust) {
    ASSERT_TRUE(sequences.set("p", {.types = {}, .trust = trust}));
    auto owner = own();
    LogWrite entry{owner.kind("shop").value(), WorkspaceId{7}, {}, {}, "again"};
    auto written = store.transact([&](Transaction& txn) { owner.write(txn, 1, entry); });
    EXPECT_EQ(code_of(written), trust == Trust::kNobody ? std::nullopt : std::optional(ErrorCode::kWrongState));
    if (!written) {
      EXPECT_NE(written.error().message.find("sequences violation"), std::string::npos);
    }
    ASSERT_TRUE(owner.release());
  };
  append({"invoice"}, 7, "first");
  attempt(Trust::kGuardAll);
  attempt(Trust::kGuardLog);
  EXPECT_EQ(sequences.log("p").value()[0].payload, Value("first"));
  attempt(Trust::kNobody);
  EXPECT_EQ(sequences.log("p").value()[0].payload, Value("again"));
}

// SEQ-U15: an occupied id.
TEST_F(SequencesTest, AnOccupiedRecordIsAViolation) {
  RecordId id{7, "invoice", 1};
  auto put = [&](const Value& value, RecordWrite write) {
    return store.transact([&](Transaction& txn) { sequences.write_record(txn, "p", id, value, write); });
  };
  auto look = [&] { return store.read([&](Reader& reader) { return sequences.record(reader, "p", id); }); };
  EXPECT_EQ(code_of(look()), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(put("zero", RecordWrite::kUpdate)), ErrorCode::kNotFound);
  EXPECT_TRUE(put("one", RecordWrite::kNew));
  EXPECT_EQ(code_of(put("two", RecordWrite::kNew)), ErrorCode::kWrongState);
  EXPECT_EQ(look().value(), Value("one"));
  EXPECT_TRUE(put("three", RecordWrite::kUpdate));
  EXPECT_EQ(look().value(), Value("three"));
  for (Trust trust : {Trust::kGuardLog, Trust::kNobody}) {
    ASSERT_TRUE(sequences.set("p", {.types = {}, .trust = trust}));
    EXPECT_TRUE(put(name_of(trust), RecordWrite::kNew));
    EXPECT_EQ(look().value(), Value(name_of(trust)));
  }
  id.sequence = "nothing";
  EXPECT_EQ(code_of(put("four", RecordWrite::kNew)), ErrorCode::kInvalidArgument);
}

// SEQ-B7: two owners.
TEST_F(SequencesTest, APartitionHasOneOwner) {
  auto owner = own();
  Session other = *Session::open(store);
  EXPECT_EQ(code_of(sequences.own(other, "p")), ErrorCode::kDeadline);
  EXPECT_EQ(sequences.get("p").value().owner->session, session.id());
  EXPECT_EQ(code_of(sequences.own(session, "q")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {"invoice"}})), ErrorCode::kWrongState)
      << "nobody appends beside it";
  ASSERT_TRUE(session.stop());
  auto late =
      store.transact([&](Transaction& txn) { owner.write(txn, 1, {owner.kind("shop").value(), WorkspaceId{7}}); });
  EXPECT_EQ(code_of(late), ErrorCode::kStaleToken);
  EXPECT_TRUE(sequences.own(other, "p", 1s));
  EXPECT_TRUE(sequences.log("p").value().empty());
}

TEST_F(SequencesTest, AnOwnerWritesOnlyWhatThereIs) {
  auto owner = own();
  EXPECT_EQ(code_of(owner.kind("bank")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(owner.seq("nothing")), ErrorCode::kInvalidArgument);
  auto refused = [&](LogOffset offset, const LogWrite& entry) {
    return code_of(store.transact([&](Transaction& txn) { owner.write(txn, offset, entry); }));
  };
  WorkspaceKind shop = owner.kind("shop").value();
  EXPECT_EQ(refused(0, {shop, WorkspaceId{7}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(1, {WorkspaceKind{9}, WorkspaceId{7}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(1, {shop, WorkspaceId{7}, {{SeqId{9}, 1}}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(1, {shop, WorkspaceId{7}, {}, {{SeqId{9}, 1}}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(1, {shop, WorkspaceId{7}, Drawn(70'000, {SeqId{0}, 1})}), ErrorCode::kInvalidArgument);
  std::promise<std::optional<ErrorCode>> code;
  owner.storage()->write({{{WorkspaceId{7}, SeqId{9}}, 1}}, 1,
                         [&](Result<void> written) { code.set_value(code_of(written)); });
  EXPECT_EQ(code.get_future().get(), ErrorCode::kInvalidArgument);
}

// SEQ-B7: an older owner stores nothing either.
TEST_F(SequencesTest, AnOlderSequencerIsFenced) {
  auto owner = own();
  SequencerParams params = owner.params();
  params.flush_timeout = 1h;
  params.unflushed_max = 0;
  Sequencer sequencer = Sequencer::open(store, params, owner.storage()).value();
  ASSERT_TRUE(sequencer.wait_ready(10s));
  WorkspaceKind shop = owner.kind("shop").value();
  ASSERT_EQ(sequencer.start(shop, WorkspaceId{7}).value(), 1u);
  ASSERT_TRUE(sequencer.next(owner.seq("invoice").value()));
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(append({"order"}), (Appended{1, {1000}}));
  sequencer.flush();
  auto undecided = [](const SequencerStatus& status) { return !status.fenced && status.flushed_offset == 0; };
  while (undecided(sequencer.status())) std::this_thread::yield();
  ASSERT_TRUE(sequencer.status().fenced) << "it has stored what it had";
  EXPECT_EQ(code_of(sequencer.start(shop, WorkspaceId{7})), ErrorCode::kStaleToken);
  EXPECT_EQ(sequences.numbers("p", 7).value(), (Numbers{{"order", 1000}}));
  EXPECT_EQ(sequences.get("p").value().flushed_offset, 1u);
}

// An owner that died without a word, where nobody has a session that could notice.
TEST_F(SequencesTest, ADeadOwnerDoesNotKeepItsPartition) {
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    SessionId dead{{Version{1}, 77}};
    txn.set(session::open_key(dead), session::OpenRow{.ttl = 50ms, .presence = {}, .name = "dead"}.encode());
    txn.set(session::lease_key(Place("default", "p").lease), session::LeaseRow{dead, {Version{1}, 78}}.encode());
  }));
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {}})), ErrorCode::kWrongState);
  while (!sequences.append("p", {"shop", 7, {"invoice"}})) std::this_thread::yield();
  EXPECT_EQ(sequences.numbers("p", 7).value(), (Numbers{{"invoice", 1}}));
}

// SEQ-B2: an entry may bring a number from elsewhere that is below the last one.
TEST_F(SequencesTest, CatchingUpNeverLowersANumber) {
  for (int i = 0; i < 5; ++i) append({"invoice"});
  auto owner = own();
  write(owner, 6, {owner.kind("shop").value(), WorkspaceId{7}, {{owner.seq("invoice").value(), 2}}});
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(append({"invoice"}), (Appended{7, {6}}));
  owner = own();
  write(owner, 8, {owner.kind("shop").value(), WorkspaceId{7}, {{owner.seq("invoice").value(), 20}}});
  write(owner, 9, {owner.kind("shop").value(), WorkspaceId{7}, {{owner.seq("invoice").value(), 10}}});
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(append({"invoice"}), (Appended{10, {21}})) << "the one before it in the log was larger";
}

TEST_F(SequencesTest, ATailWithManyNumbersIsCaughtUpInParts) {
  SequenceFloors many;
  for (int i = 0; i < 250; ++i) many["s" + std::to_string(i)] = 1;
  ASSERT_TRUE(sequences.set("p", {.types = {{"many", many}}}));
  auto owner = own();
  LogWrite entry{owner.kind("many").value(), WorkspaceId{0}};
  for (auto& [name, initial] : many) entry.numbers.emplace_back(owner.seq(name).value(), 1);
  // A server has fewer: 300,000 numbers are a load of their own.
  const LogOffset entries = on_test_server() ? 120 : 1'200;
  for (LogOffset first = 1; first < entries; first += 60)
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      for (LogOffset offset = first; offset < first + 60; ++offset) {
        entry.workspace = WorkspaceId{offset};
        owner.write(txn, offset, entry);
      }
    }));
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(sequences.append("p", {"many", entries, {"s5"}}).value(), (Appended{entries + 1, {2}}));
}

TEST_F(SequencesTest, TheEndOfALogIsTheEnd) {
  append({"invoice"});
  auto owner = own();
  write(owner, kLargest, {owner.kind("shop").value(), WorkspaceId{7}});
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {"invoice"}})), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {"invoice"}})), ErrorCode::kTooLarge);
  EXPECT_EQ(sequences.get("p").value().offset, kLargest);
}

// SEQ-U16: with nobody looking, what is written behind the stored offset counts all the same, but for what was only
// changed.
TEST_F(SequencesTest, ALogThatIsWrittenAgainBringsItsNumbers) {
  append({"invoice"});
  append({"invoice"});
  ASSERT_TRUE(sequences.set("p", {.types = {}, .trust = Trust::kNobody}));
  auto owner = own();
  SeqId invoice = owner.seq("invoice").value();
  write(owner, 1, {owner.kind("shop").value(), WorkspaceId{7}, {{invoice, 30}, {invoice, 29}}, {{invoice, 5'000}}});
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(append({"invoice"}), (Appended{3, {31}}));
}

TEST_F(SequencesTest, ADamagedNumberIsNotTakenForNone) {
  append({"invoice"});
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    txn.set(Place("default", "p").number_key({WorkspaceId{7}, SeqId{0}}), "?");
  }));
  EXPECT_EQ(code_of(sequences.append("p", {"shop", 7, {"invoice"}})), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(sequences.numbers("p", 7)), ErrorCode::kCorrupt);
}

// SEQ-U16: what was only changed does not count; and what an owner left behind is brought up by the next append.
TEST_F(SequencesTest, AppendingGoesOnWhereAnOwnerStopped) {
  auto owner = own();
  WorkspaceKind shop = owner.kind("shop").value();
  SeqId invoice = owner.seq("invoice").value();
  for (LogOffset offset = 1; offset <= 300; ++offset)
    write(owner, offset, {shop, WorkspaceId{offset % 3}, {{invoice, (offset + 2) / 3}}, {{invoice, 5'000}}});
  EXPECT_EQ(sequences.numbers("p", 0).value(), Numbers()) << "not stored yet";
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(append({"invoice"}, 0), (Appended{301, {101}}));
  EXPECT_EQ(append({"invoice"}, 1), (Appended{302, {101}}));
  EXPECT_EQ(sequences.numbers("p", 2).value(), (Numbers{{"invoice", 100}}));
  EXPECT_EQ(sequences.log("p", {.after = 299, .limit = 1}).value()[0].updated, (Named{{"invoice", 5'000}}));
}

TEST_F(SequencesTest, InATransactionOfYoursALongTailIsRefused) {
  auto owner = own();
  WorkspaceKind shop = owner.kind("shop").value();
  SeqId invoice = owner.seq("invoice").value();
  for (LogOffset first = 1; first <= 1'001; first += 500)
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      for (LogOffset offset = first; offset < first + 500 && offset <= 1'001; ++offset)
        owner.write(txn, offset, {shop, WorkspaceId{7}, {{invoice, offset}}});
    }));
  ASSERT_TRUE(owner.release());
  auto mine = [&] {
    return store.transact([&](Transaction& txn) { return sequences.append(txn, "p", {"shop", 7, {"invoice"}}); });
  };
  EXPECT_EQ(code_of(mine()), ErrorCode::kUnavailable);
  EXPECT_EQ(append({"invoice"}), (Appended{1'002, {1'002}}));
  EXPECT_EQ(mine().value(), (Appended{1'003, {1'003}}));
}

// SEQ-U16: the offset of an event in its workspace is a sequence like any other.
TEST_F(SequencesTest, TheOffsetInAWorkspaceIsASequence) {
  ASSERT_TRUE(sequences.set("p", {.types = {{"shop", {{"log", 1}}}}}));
  for (std::uint64_t workspace : {7, 8, 7, 7, 8}) append({"log"}, workspace);
  std::map<std::uint64_t, std::vector<Number>> seen;
  auto log = sequences.log("p").value();
  for (const LogEntry& entry : log) seen[entry.workspace].push_back(entry.numbers[0].second);
  EXPECT_EQ(seen, (std::map<std::uint64_t, std::vector<Number>>{{7, {1, 2, 3}}, {8, {1, 2}}}));
}

// SEQ-25, SEQ-U14 on the store.
TEST_F(SequencesTest, ASequencerOnTheStore) {
  for (int i = 0; i < 42; ++i) append(i < 13 ? std::vector<std::string>{"invoice"} : std::vector<std::string>{});
  auto owner = own();
  WorkspaceKind shop = owner.kind("shop").value();
  SeqId invoice = owner.seq("invoice").value();
  Sequencer sequencer = Sequencer::open(store, owner.params(), owner.storage()).value();
  ASSERT_TRUE(sequencer.wait_ready(10s));
  EXPECT_EQ(sequencer.status().scanned, 0u) << "SEQ-B11: all of it was stored";
  EXPECT_EQ(sequencer.start(shop, WorkspaceId{7}).value(), 43u);
  EXPECT_EQ(sequencer.next(invoice).value(), 14u);
  write(owner, 43, {shop, WorkspaceId{7}, {{invoice, 14}}});
  sequencer.flush();
  while (sequencer.status().flushed_offset != 43) std::this_thread::yield();
  EXPECT_EQ(sequences.get("p").value().flushed_offset, 43u);
  EXPECT_EQ(sequences.numbers("p", 7).value(), (Numbers{{"invoice", 14}}));
  ASSERT_TRUE(sequencer.close());
  ASSERT_TRUE(owner.release());
  EXPECT_EQ(append({"invoice"}), (Appended{44, {15}}));
}

// SEQ-5: more of a log than is read at once.
TEST_F(SequencesTest, ASequencerReadsAllThatAnOwnerLeftBehind) {
  auto owner = own();
  WorkspaceKind shop = owner.kind("shop").value();
  SeqId invoice = owner.seq("invoice").value();
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    for (LogOffset offset = 1; offset <= 300; ++offset)
      owner.write(txn, offset, {shop, WorkspaceId{7}, {{invoice, offset}}});
  }));
  Sequencer sequencer = Sequencer::open(store, owner.params(), owner.storage()).value();
  ASSERT_TRUE(sequencer.wait_ready(10s));
  EXPECT_EQ(sequencer.status().scanned, 300u);
  EXPECT_EQ(sequencer.start(shop, WorkspaceId{7}).value(), 301u);
  EXPECT_EQ(sequencer.next(invoice).value(), 301u);
}

// SEQ-U14.
TEST_F(SequencesTest, TheStorageAnswersInOrderAndReplacesWhatItHas) {
  auto owner = own();
  auto storage = owner.storage();
  SeqKey one{WorkspaceId{1}, SeqId{0}}, two{WorkspaceId{2}, SeqId{1}};
  auto write_all = [&](std::vector<SeqValue> values, LogOffset offset) {
    std::promise<Result<void>> written;
    storage->write(std::move(values), offset, [&](Result<void> result) { written.set_value(std::move(result)); });
    return written.get_future().get();
  };
  auto read_all = [&](std::vector<SeqKey> keys) {
    std::promise<Result<std::vector<Number>>> read;
    storage->read_numbers(std::move(keys),
                          [&](Result<std::vector<Number>> result) { read.set_value(std::move(result)); });
    return read.get_future().get().value();
  };
  EXPECT_TRUE(write_all({{one, 5}, {two, 6}}, 3));
  EXPECT_EQ(read_all({two, {WorkspaceId{3}, SeqId{0}}, one}), (std::vector<Number>{6, 0, 5}));
  EXPECT_TRUE(write_all({{one, 2}}, 4));
  EXPECT_EQ(read_all({one, two}), (std::vector<Number>{2, 6}));
  EXPECT_TRUE(write_all({{one, 9}}, 3)) << "one that comes late takes nothing back";
  EXPECT_EQ(read_all({one}), std::vector<Number>{2});
}

TEST_F(SequencesTest, BlockingCallsAreRefusedInCallbacks) {
  std::promise<std::optional<ErrorCode>> code;
  store.transact_async([](Transaction&) {},
                       [&](const Result<void>&) { code.set_value(code_of(sequences.append("p", {"shop", 7, {}}))); });
  EXPECT_EQ(code.get_future().get(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::sequence
