// What the tests of a node have in common.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/rfc3339.h"
#include "node/node.h"
#include "store/store_test_util.h"

namespace perdure {

using namespace std::chrono_literals;

/// What happened, and when, from several threads.
class Diary {
 public:
  void note(std::string what) {
    std::scoped_lock lock(mutex_);
    entries_.push_back(std::move(what));
  }
  std::vector<std::string> entries() {
    std::scoped_lock lock(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> entries_;
};

class NodeFixture : public ::testing::Test {
 protected:
  /// 2026-03-01T00:00:00Z
  static constexpr WallTime kStart = WallTime(std::chrono::seconds(1'772'323'200));

  static std::unique_ptr<Node> open(NodeOptions options) {
    auto node = Node::open(std::move(options));
    if (!node) ADD_FAILURE() << to_string(node.error());
    return node ? std::move(*node) : nullptr;
  }
  /// One whose time stands still at kStart.
  static std::unique_ptr<Node> open_still(Dispatch dispatch = Dispatch::kOn) {
    return open({.store = fresh_store_url(),
                 .store_options = {.clock = std::make_shared<TestClock>(kStart)},
                 .dispatch = dispatch});
  }
  /// The time of day, in store time: "00:05:00.000".
  static std::string clock_of(Node& node) { return format_rfc3339(node.now()).substr(11, 12); }
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
};

}  // namespace perdure
