// Debouncers as a program uses them: blocking calls on real threads, and what is refused.
#include <gtest/gtest.h>

#include <atomic>

#include "debounce/debounce_test_check.h"
#include "perdure/debounce.h"
#include "queue/queue_fixture.h"

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
  store = *Store::open("memory:");
}

}  // namespace
}  // namespace perdure::debounce
