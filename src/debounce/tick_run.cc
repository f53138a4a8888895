// The run of a follower: its token, its handler, and its one fenced end.
#include <algorithm>

#include "base/seeded_bug.h"
#include "debounce/tick_impl.h"
#include "debounce/tick_rows.h"
#include "session/rows.h"

namespace perdure::debounce {
namespace {

constexpr unsigned kCommitAttempts = 20, kCommitDoublings = 4;
constexpr Duration kCommitPause = std::chrono::milliseconds(50);
constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

Error key_lost(const std::string& key) {
  return {ErrorCode::kStaleToken, "the key '" + key + "' was lost during the run: nothing was committed"};
}

}  // namespace

void TickFollower::take_token() {
  // One that was cancelled meanwhile gives the key back, and needs none.
  auto leadership = home_.leadership();
  if (!leadership) return;
  if (leaving_) return handle(TickEvent::kRunningSet);
  using Taken = Result<std::uint64_t>;
  home_.transact(
      [leadership, key = key_, row = run_key(home_.options().name, key_)](Transaction& txn) {
        leadership->fence(txn, key);
        SystemAccess access(txn);
        begin_run(txn, row, leadership->instance_id());
        return session::read_store_number(txn);
      },
      back<Taken, Receipt>([this, step = step_](const Taken& store, Receipt receipt) {
        if (step != step_) return;
        if (store) {
          token_ = {receipt.stamp(), *store};
          return handle(TickEvent::kRunningSet);
        }
        warn("a run was not begun: it has no token", store.error());
        handle(store.error().code == ErrorCode::kStaleToken ? TickEvent::kLost : TickEvent::kNoToken);
      }),
      kOptions);
}

void TickFollower::run() {
  run_ = std::make_shared<TickRunState>(key_, token_, run_key(home_.options().name, key_));
  if (Duration limit = home_.options().run_timeout; limit < Duration::max())
    run_timer_ = after(limit, [this, run = run_] {
      if (run == run_) overrun();
    });
  home_.work().run(run_, back<Result<void>>([this, run = run_](const Result<void>& result) {
                     // One that was given up may return whenever it likes.
                     if (run == run_) returned(result);
                   }));
}

void TickFollower::returned(const Result<void>& result) {
  drop(run_timer_);
  RunPtr run = std::exchange(run_, nullptr);
  run->cancel.drop();
  if (state_ == TickState::kDraining) return end(run, std::unexpected(key_lost(key_)));
  if (!result) return fail_run(run, result.error());
  commit(run, 0);
}

void TickFollower::overrun() {
  RunPtr run = std::exchange(run_, nullptr);
  run_timer_ = 0;
  run->cancel.cancel();
  if (state_ == TickState::kDraining) return end(run, std::unexpected(key_lost(key_)));
  auto seconds = std::chrono::duration<double>(home_.options().run_timeout).count();
  fail_run(run, {ErrorCode::kDeadline,
                 "the run of '" + key_ + "' took longer than its run_timeout of " + std::to_string(seconds) + " s"});
}

void TickFollower::commit(const RunPtr& run, unsigned attempt) {
  auto leadership = home_.leadership();
  if (!leadership) return;
  home_.transact(
      [leadership, run](Transaction& txn) -> Result<void> {
        const bool fenced = !seeded(SeededBug::kEndWithoutFence);
        {
          SystemAccess access(txn);
          auto row = read_run(txn, run->row);
          // An earlier attempt of unknown outcome, which did take effect.
          if (row && row->stamp == run->token.stamp && row->state == RunRowState::kEnded) return {};
          if (fenced) fence_run(txn, run->row, run->key, run->token.stamp);
          end_run(txn, run->row, run->token.stamp);
        }
        if (fenced) leadership->fence(txn, run->key);
        for (const auto& body : run->bodies)
          if (auto done = body(txn); !done) return done;
        return {};
      },
      back<Result<void>, Receipt>(
          [this, run, attempt](const Result<void>& result, Receipt) { committed(run, attempt, result); }),
      {});
}

void TickFollower::committed(const RunPtr& run, unsigned attempt, const Result<void>& result) {
  if (result) {
    if (state_ == TickState::kRunning) ended_ = run;
    return end(run, {});
  }
  const Error& why = result.error();
  if (why.outcome() == Outcome::kUnknown) run->unknown = why;
  if (why.code == ErrorCode::kStaleToken) {
    handle(TickEvent::kLost);
    return end(run, std::unexpected(why));
  }
  bool again = (why.retryable() || why.outcome() == Outcome::kUnknown) && attempt + 1 < kCommitAttempts;
  if (!again || state_ != TickState::kRunning) return fail_run(run, why);
  after(kCommitPause * (1 << std::min(attempt, kCommitDoublings)), [this, run, attempt] {
    if (state_ != TickState::kRunning) return end(run, std::unexpected(key_lost(key_)));
    commit(run, attempt + 1);
  });
}

void TickFollower::fail_run(const RunPtr& run, const Error& why) {
  // Whoever lost the key writes nothing more.
  if (state_ != TickState::kRunning) return end(run, std::unexpected(why));
  home_.transact(
      [run](Transaction& txn) {
        SystemAccess access(txn);
        forget_run(txn, run->row, run->token.stamp);
      },
      back<Result<void>, Receipt>([this, run, why](const Result<void>&, Receipt) { end(run, std::unexpected(why)); }),
      kOptions);
}

void TickFollower::end(const RunPtr& run, Result<void> result) {
  if (!result && run->unknown) result = std::unexpected(*run->unknown);
  if (result) {
    ++runs_;
  } else {
    ++failed_runs_;
    warn("a run failed, and what was pending stays so", result.error());
  }
  TickEvent event = result ? TickEvent::kRunEnded : TickEvent::kRunFailed;
  home_.work().ended({run->key, run->token, std::move(result)});
  handle(event);
}

}  // namespace perdure::debounce
