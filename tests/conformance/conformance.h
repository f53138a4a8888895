// The conformance suite: what perdure promises of its store, checked on every engine.
//
// Each TEST_P here runs once for each engine that engines.cc lists, on a fresh store. What an engine cannot do (outlive
// its process, say) is asked of its capabilities, never found out by a failure. Tests that need two transactions to
// meet put them in order by hand: the second runs on another thread while the body of the first waits for it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/store.h"
#include "runtime/latch.h"
#include "runtime/thread_pool.h"
#include "store/engine.h"

namespace perdure::conformance {

struct EngineUnderTest {
  std::string name;
  /// Opens what is kept in the directory, which the test makes and removes.
  std::function<Result<std::unique_ptr<Engine>>(const std::filesystem::path&, Scheduler&, const StoreOptions&)> make;
};
/// Of an engine on a server: so little that all of it happens in every test, folding, forgetting, asking again.
inline constexpr std::size_t kFoldBytes = 2'000, kCacheBytes = 20'000;
inline StoreOptions forgetful(StoreOptions options) {
  options.cache_bytes = kCacheBytes;
  return options;
}
/// Every engine that this build has.
extern const std::vector<EngineUnderTest> kEngines;
void PrintTo(const EngineUnderTest& engine, std::ostream* out);

/// How long to wait for what must happen, before it counts as not happening.
inline constexpr Duration kSoon = std::chrono::seconds(60);
/// How long to wait for what must not happen: it is looked at after other work has gone through, so a moment will do.
inline constexpr Duration kNotYet = std::chrono::milliseconds(1);

/// The value of a result that must be there.
template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result) << to_string(result.error());
  if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T{};
}

/// The code of an error that must be there, with its message for those who look at both.
template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result) << "it should have failed";
  return result ? Error{ErrorCode::kNotFound, "no error"} : result.error();
}

/// Runs `work` on another thread and waits for it: what others do while a body is running.
template <class F>
void meanwhile(F&& work) {
  std::thread(std::forward<F>(work)).join();
}

/// Runs `work(i)` for each i below n, each on its own thread, and waits for all.
template <class F>
void on_threads(int n, F work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([i, &work] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

/// Something that is done once it was hit n times.
class Countdown {
 public:
  explicit Countdown(int n) : left_(n) {}
  void hit() {
    if (--left_ == 0) done_.set();
  }
  [[nodiscard]] bool wait() { return done_.wait_for(kSoon); }

 private:
  std::atomic<int> left_;
  Latch done_;
};

/// "key000007": sorts like the number.
Bytes numbered(const std::string& prefix, int number);
std::vector<Bytes> keys_of(const std::vector<Row>& rows);
/// "a=1 b=2"
std::string show(const std::vector<Row>& rows);

class Conformance : public testing::TestWithParam<EngineUnderTest> {
 protected:
  using BodyFn = std::function<void(Transaction&)>;
  static constexpr unsigned kPoolThreads = 4;

  Conformance();
  ~Conformance() override;

  /// Closes the store and opens it anew with these options.
  void reopen(StoreOptions options = {});
  void close();
  /// An engine on the directory of this test, for those that put something around it.
  std::unique_ptr<Engine> make_engine(const StoreOptions& options = {});
  /// The store on an engine of the test's own making.
  void open_on(std::unique_ptr<Engine> engine, StoreOptions options = {});

  Store& store() { return *store_; }
  Scheduler& scheduler() { return pool_; }
  const std::filesystem::path& directory() const { return directory_; }
  const Capabilities& capabilities() const { return capabilities_; }

  // Transactions of one step.
  void set(BytesView key, BytesView value);
  void clear(BytesView key);
  std::optional<Bytes> get(BytesView key);
  std::int64_t counter(BytesView key) { return decode_counter(get(key)); }
  std::vector<Row> range(const KeyRange& range, const RangeOptions& options = {});
  /// "a=1 b=2": all rows there are.
  std::string contents() { return show(range({})); }
  /// A watch made by a transaction that does nothing else.
  Watch watch(BytesView key);

  /// How often a body runs that does `body` and writes the key "mine", if after its first run, before its commit,
  /// others do and commit `other`: 1 if the two do not conflict, 2 if they do.
  int runs_against(const BodyFn& body, const BodyFn& other);
  /// Returns when everything that was posted to the scheduler so far has run.
  void settle();
  /// Starts transactions by `start` while a commit is held up, so that they gather and go into one batch. Only where
  /// bodies run inside of commits: one that breaks its promise to be short holds it up.
  void in_one_batch(const std::function<void()>& start);

 private:
  const std::filesystem::path directory_;
  ThreadPool pool_;
  Capabilities capabilities_;
  std::optional<Store> store_;
};

}  // namespace perdure::conformance
