#include "transcript/path_looks.h"

#include <gtest/gtest.h>

#include <atomic>

#include "runtime/latch.h"
#include "runtime/thread_pool.h"

namespace perdure::transcript {
namespace {

using namespace std::chrono_literals;

class PathLooksTest : public testing::Test {
 protected:
  using Pending = std::shared_ptr<Promise<Result<void>>>;

  static Pending look(PathLooks& looks, const std::string& path) {
    auto pending = std::make_shared<Promise<Result<void>>>();
    looks.look(path, [pending](Result<void> found) { pending->set(std::move(found)); });
    return pending;
  }
  /// What it would take for the thread to hang.
  Result<void> hang() {
    ++hanging_;
    hangs_.set();
    end_.wait();
    --hanging_;
    return {};
  }

  Latch hangs_, end_;
  std::atomic<int> hanging_ = 0;
  ThreadPool pool_ = ThreadPool("test", 2);
};

TEST_F(PathLooksTest, AnswersWhatItFinds) {  // WORK-14
  PathLooks looks(pool_, [](const std::string& path) -> Result<void> {
    if (path == "/good") return {};
    return fail(ErrorCode::kNotFound, path);
  });
  EXPECT_TRUE(look(looks, "/good")->take());
  EXPECT_EQ(look(looks, "/bad")->take().error().message, "/bad");
}

TEST_F(PathLooksTest, AFileSystemThatDoesNotAnswerHoldsUpNobody) {  // WORK-13, WORK-14
  {
    PathLooks looks(pool_, [this](const std::string& path) -> Result<void> {
      if (path == "/hangs") return hang();
      return fail(ErrorCode::kNotFound, path);
    });
    auto first = look(looks, "/hangs");
    hangs_.wait();
    auto behind = look(looks, "/other");
    EXPECT_EQ(first->take().error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(behind->take().error().code, ErrorCode::kUnavailable);
    SteadyTime began = steady_now();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(look(looks, "/other")->take().error().code, ErrorCode::kUnavailable);
    EXPECT_LT(steady_now() - began, 100 * PathLooks::kTime) << "while one hangs, nobody waits for another";
    EXPECT_EQ(hanging_, 1) << "it goes without waiting for it";
  }
  end_.set();
  while (hanging_ > 0) Latch().wait_for(1ms);
}

TEST_F(PathLooksTest, LooksAgainOnceTheFileSystemAnswers) {  // WORK-14
  PathLooks looks(pool_, [this](const std::string& path) -> Result<void> {
    if (path == "/hangs") return hang();
    return {};
  });
  auto first = look(looks, "/hangs");
  EXPECT_FALSE(first->take());
  end_.set();
  while (!look(looks, "/good")->take()) Latch().wait_for(1ms);
}

}  // namespace
}  // namespace perdure::transcript
