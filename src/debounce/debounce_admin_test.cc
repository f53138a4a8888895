// Debouncers as a program uses them: blocking calls on real threads, and what is refused.
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

#include "debounce/debounce_test_check.h"
#include "debounce/turn.h"
#include "perdure/debounce.h"
#include "queue/emit.h"
#include "queue/queue_fixture.h"
#include "runtime/latch.h"
#include "store/store_test_util.h"

namespace perdure::debounce {
namespace {

using namespace std::chrono_literals;

class DebounceAdmin : public queue::QueueFixture {
 protected:
  void TearDown() override {
    auto wrong = store.read([](Reader& reader) { return RowCheck::run(reader); });
    EXPECT_EQ(wrong.value_or(std::vector<std::string>()), std::vector<std::string>());
    QueueFixture::TearDown();
  }
  /// Takes a turn as the nodes do, at a time when all windows are due.
  void fire_all(std::move_only_function<void(Result<void>)> done) {
    auto turn = [](Transaction& txn) {
      SystemAccess access(txn);
      take_turn(txn, {.fresh_id = [] { return queue::uuid_v7(1, 2, 3); }}, WallTime::max() - 24h);
    };
    store.transact_async(turn, std::move(done));
  }
  /// Touches in a transaction that `other` commits ahead of; answers how often its body ran.
  template <class F>
  int touch_overtaken_by(F other) {
    int runs = 0;
    auto touched = store.transact([&](Transaction& txn) {
      debouncers.touch(txn, "save", "a", "overtaken");
      if (++runs > 1) return;
      Latch committed;
      other([&](const auto& result) {
        EXPECT_TRUE(result);
        committed.set();
      });
      ASSERT_TRUE(committed.wait_for(20s));
    });
    EXPECT_TRUE(touched);
    return runs;
  }

  Debouncers debouncers = *Debouncers::open(store);
};

TEST_F(DebounceAdmin, ADocumentIsSavedOnceForManyKeystrokes) {
  Queue queue = open();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 20ms}));
  std::atomic<int> saved = 0;
  std::atomic<std::uint64_t> strokes = 0;
  ASSERT_TRUE(debouncers.handle(queue, "save", [&](DebounceRun& run) {
    strokes += run.count();
    ++saved;
  }));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(debouncers.touch("save", "document", i));
  EXPECT_TRUE(eventually([&] { return strokes == 100; }));
  EXPECT_LT(saved, 100);
  EXPECT_TRUE(eventually([&] { return debouncers.key("save", "document")->status == KeyStatus::kIdle; }));
  EXPECT_TRUE(queue.close());
}

TEST_F(DebounceAdmin, LargeWindowsThatAreDueTogetherAreRunInPartsThatFit) {
  Queue queue = open();
  ASSERT_TRUE(debouncers.set("save", {.window = 300ms}));
  ASSERT_TRUE(debouncers.handle(queue, "save", [](DebounceRun&) {}));
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(debouncers.touch("save", std::to_string(i), Value(std::string(400'000, 'x'))));
  EXPECT_TRUE(eventually([&] { return info(queue, "save").completed == 8; })) << info(queue, "save").completed;
}

TEST_F(DebounceAdmin, HandlersMayReturnWhatTheyLike) {
  Queue queue = open();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 0ms, .back_off = {.delay = 0ms, .max = 0}}));
  ASSERT_TRUE(debouncers.handle(queue, "save", [](DebounceRun& run) -> Result<void> {
    if (run.key() == "bad") return fail(ErrorCode::kHandlerFailed, "no");
    return {};
  }));
  ASSERT_TRUE(debouncers.touch("save", "bad"));
  EXPECT_TRUE(eventually([&] { return info(queue, "save").dead == 1; }));
  ASSERT_TRUE(debouncers.handle(queue, "save", [](DebounceRun&) -> Result<Value> { return 7; }));
  ASSERT_TRUE(debouncers.touch("save", "good"));
  EXPECT_TRUE(eventually([&] { return info(queue, "save").completed == 1; }));
  EXPECT_EQ(queue.redrive("save").value(), 1U) << "touches the key";
  EXPECT_TRUE(eventually([&] { return info(queue, "save").completed == 2; }));
  EXPECT_TRUE(queue.close());
}

// WORK-13: sessions run in parallel. DVU-B8, WORK-10, WORK-26: whose each of them is, and since when.
TEST_F(DebounceAdmin, KeysRunInParallelAndShowTheirOwner) {
  Queue queue = open();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 0ms}));
  std::counting_semaphore<> begun(0), may_end(0);
  ASSERT_TRUE(debouncers.handle(queue, "save", [&](DebounceRun&) {
    begun.release();
    EXPECT_TRUE(may_end.try_acquire_for(20s));
  }));
  std::vector<DebounceKey> keys;
  for (const char* name : {"a", "b"}) {
    auto window = debouncers.touch("save", name);
    ASSERT_TRUE(window);
    ASSERT_TRUE(begun.try_acquire_for(10s));
    keys.push_back(*debouncers.key("save", name));
    EXPECT_EQ(keys.back().status, KeyStatus::kRunning);
    EXPECT_GE(keys.back().since.value(), window->first);
    EXPECT_TRUE(keys.back().token);
  }
  auto sessions = store.transact([](Transaction& txn) { return Session::list(txn); });
  ASSERT_TRUE(sessions && sessions->size() == 1);
  EXPECT_EQ(keys[0].owner, sessions->front().id);
  EXPECT_EQ(keys[1].owner, sessions->front().id);
  may_end.release(2);
  EXPECT_TRUE(eventually([&] { return info(queue, "save").completed == 2; }));
  EXPECT_TRUE(queue.close());
}

// DVU-B5, WORK-11: a run that is over its timeout is told, has no effect, and is made again.
TEST_F(DebounceAdmin, ARunPastItsTimeoutIsGivenUpAndMadeAgain) {
  Queue queue = open();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 0ms, .back_off = at_once()}));
  std::atomic<int> tries = 0;
  auto save = [&](DebounceRun& run) {
    run.complete([](Transaction& txn) -> Result<void> {
      txn.add("saved", 1);
      return {};
    });
    if (++tries == 1) {
      EXPECT_TRUE(run.cancel_signal().wait(20s));
    }
  };
  ASSERT_TRUE(debouncers.handle(queue, "save", save, {.timeout = 50ms}));
  ASSERT_TRUE(debouncers.touch("save", "a"));
  EXPECT_TRUE(eventually([&] { return info(queue, "save").completed == 1; }));
  EXPECT_EQ(tries, 2);
  EXPECT_TRUE(queue.close());
  EXPECT_EQ(store.read([](Reader& reader) { return decode_counter(reader.get("saved")); }), 1);
}

// WORK-B3: a touch whose window fires before it commits is in the next one, and not lost with the first.
TEST_F(DebounceAdmin, ATouchThatTheFiringOvertakesOpensTheNextWindow) {
  Queue queue = open();
  debouncers.hold();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  ASSERT_TRUE(debouncers.touch("save", "a", "fired"));
  EXPECT_EQ(touch_overtaken_by([this](auto done) { fire_all(std::move(done)); }), 2);
  EXPECT_EQ(*claim_one(queue, "save").value.find("payload"), Value("fired"));
  auto next = debouncers.key("save", "a")->window;
  EXPECT_TRUE(next && next->count == 1);
  EXPECT_TRUE(queue.close());
}

// WORK-B4: of touches that overtake each other none is lost, nor made twice.
TEST_F(DebounceAdmin, TouchesThatOvertakeEachOtherAllCount) {
  debouncers.hold();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  ASSERT_TRUE(debouncers.touch("save", "a"));
  int runs = touch_overtaken_by([this](auto done) { debouncers.touch_async("save", "a", 2, std::move(done)); });
  EXPECT_EQ(runs, 1) << "they do not meet";
  EXPECT_EQ(debouncers.key("save", "a")->window->count, 3U);
}

TEST_F(DebounceAdmin, BadInputIsRefusedAndChangesNothing) {
  ASSERT_TRUE(debouncers.set("save"));
  EXPECT_EQ(code_of(debouncers.touch("nobody", "a")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.touch("", "a")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.touch("save", "")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.touch("save", std::string(201, 'k'))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.touch("save", "a\nb")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.touch("save", "a", "\xff")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.touch("save", "a", std::string(kPayloadBytesMax, 'x'))), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(debouncers.set("no/name")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.set("other", {.quiet = -1s})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.get("other")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.key("other", "a")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.keys("other")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.pause("other")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.pause("save", {.reason = std::string(1'001, 'x')})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(debouncers.unpause("other")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.remove("other")), ErrorCode::kNotFound);
  Queue queue = open();
  EXPECT_EQ(code_of(debouncers.handle(queue, "other", [](DebounceRun&) {})), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(debouncers.handle(queue, "save", [](DebounceRun&) {}, {.concurrency = 0})),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(Debouncers::open(store, {.space = "no space"})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(debouncers.keys("save")->size(), 0U);
}

TEST_F(DebounceAdmin, AreListedAndRemovedWithTheirWindows) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(debouncers.set(name, {.quiet = 1h}));
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(debouncers.touch("b", "k" + std::to_string(i)));
  auto names = [&](const PageOptions& page) {
    std::string all;
    auto list = debouncers.list(page);
    for (const DebouncerInfo& info : *list) all += info.name;
    return all;
  };
  EXPECT_EQ(names({}), "abc");
  EXPECT_EQ(names({.limit = 2}), "ab");
  EXPECT_EQ(names({.after = "a"}), "bc");
  ASSERT_TRUE(debouncers.remove("b"));
  EXPECT_EQ(names({}), "ac");
  ASSERT_TRUE(debouncers.set("b", {.quiet = 1h}));
  EXPECT_EQ(debouncers.keys("b")->size(), 0U);
  EXPECT_EQ(debouncers.touch("b", "k1")->count, 1U);
  ASSERT_TRUE(debouncers.cancel("b", "k1"));
}

TEST_F(DebounceAdmin, SpacesAreApart) {
  Debouncers other = debouncers.in("other");
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  EXPECT_EQ(code_of(other.touch("save", "a")), ErrorCode::kNotFound);
  ASSERT_TRUE(other.set("save", {.quiet = 1h}));
  EXPECT_EQ(debouncers.touch("save", "a")->count, 1U);
  EXPECT_EQ(other.touch("save", "a")->count, 1U);
  EXPECT_EQ(other.space(), "other");
}

TEST_F(DebounceAdmin, ANodeThatIsHeldFiresNothingUntilItIsReleased) {
  Queue queue = open();
  debouncers.hold();
  ASSERT_TRUE(debouncers.set("save", {.quiet = 0ms}));
  ASSERT_TRUE(debouncers.touch("save", "a"));
  EXPECT_EQ(info(queue, "save").ready, 0U);
  debouncers.release();
  EXPECT_TRUE(eventually([&] { return info(queue, "save").ready == 1; }));
}

TEST_F(DebounceAdmin, CallsThatWouldWaitForThemselvesAreRefused) {
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  std::binary_semaphore asked{0};
  std::optional<ErrorCode> code;
  debouncers.touch_async("save", "a", {}, [&](Result<Window> window) {
    EXPECT_TRUE(window);
    code = code_of(debouncers.touch("save", "a"));
    asked.release();
  });
  asked.acquire();
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
}

TEST_F(DebounceAdmin, TouchesAreAnsweredWhenTheStoreIsClosed) {
  ASSERT_TRUE(debouncers.set("save", {.quiet = 1h}));
  ASSERT_TRUE(store.close());
  EXPECT_EQ(code_of(debouncers.touch("save", "a")), ErrorCode::kClosed);
  EXPECT_EQ(code_of(Debouncers::open(store)), ErrorCode::kClosed);
  store = fresh_store();
}

}  // namespace
}  // namespace perdure::debounce
