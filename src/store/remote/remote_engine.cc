#include "store/remote/remote_engine.h"

#include <set>
#include <utility>

#include "store/ranges.h"
#include "store/report.h"

namespace perdure::remote {
namespace {

Capabilities capabilities_of(const ServerLink& server) {
  const ServerLimits& limits = server.limits();
  Capabilities capabilities;
  capabilities.name = limits.name;
  capabilities.limits.transaction_bytes_max = limits.transaction_bytes_max;
  capabilities.limits.clear_range_rows_max = limits.clear_range_rows_max;
  capabilities.batch_bytes_max = std::min(capabilities.batch_bytes_max, limits.entry_bytes_max / 2);
  capabilities.unknown_commits = server.unknown_appends();
  capabilities.what_is_read_lasts = limits.what_is_read_lasts;
  capabilities.blocking_calls = server.blocking_calls();
  capabilities.reads_may_rerun = true;
  capabilities.far_reads = true;
  return capabilities;
}

/// A question that has failed is asked again after so long, until it is answered: nobody rings twice. Each time that it
/// fails the pause is doubled, up to 4 s.
constexpr Duration kAskAgain = std::chrono::milliseconds(250);
constexpr int kAskAgainDoublings = 4;
/// A fold that others were about is tried again after so long. One that fails waits twice as long each time, up to
/// 800 ms.
constexpr Duration kFoldAgain = std::chrono::milliseconds(50);
constexpr int kFoldAgainDoublings = 4;

Error closing() {
  return {ErrorCode::kClosed, "the store is being closed"};
}

Error newer() {
  return {ErrorCode::kConflict, "the store has moved on since this was read"};
}

}  // namespace

Result<std::unique_ptr<Engine>> RemoteEngine::open(std::unique_ptr<RowServer> server, Scheduler& scheduler,
                                                   const StoreOptions& store_options, const RemoteOptions& options) {
  auto engine = std::make_unique<RemoteEngine>(std::make_unique<DirectLink>(std::move(server)), scheduler,
                                               store_options, options);
  auto there = engine->replica_.follow();
  if (!there) return std::unexpected(std::move(there.error()));
  engine->was_new_ = *there == Version{};
  engine->fold_if_due();
  return engine;
}

RemoteEngine::RemoteEngine(std::unique_ptr<ServerLink> server, Scheduler& scheduler, const StoreOptions& store_options,
                           const RemoteOptions& options)
    : store_options_(store_options),
      options_(options),
      scheduler_(scheduler),
      replica_(std::move(server), store_options.cache_bytes),
      capabilities_(capabilities_of(replica_.server())),
      turns_(options.courtesy),
      commit_lane_(scheduler.lane("perdure-commit")),
      news_lane_(scheduler.lane("perdure-news")),
      fold_lane_(scheduler.lane("perdure-fold")) {
  replica_.server().listen([this](Ring ring) { heard(ring); });
}

RemoteEngine::~RemoteEngine() {
  replica_.server().listen({});
  {
    // A batch whose callers have all been answered may still be on its way.
    MutexLock lock(mutex_);
    closing_ = true;
  }
  commit_lane_.reset();
  if (job_) finish(std::unexpected(closing()));
  news_lane_.reset();
  fold_lane_.reset();
}

void RemoteEngine::commit(CommitJob& job) {
  commit_lane_->post([this, &job] {
    job_ = &job;
    confirmed_ = {};
    make_batch();
  });
}

void RemoteEngine::make_batch() {
  batch_ = std::make_unique<BatchView>(replica_, confirmed_);
  auto applied = job_->apply(*batch_);
  if (applied && *applied == Applied::kNothingToTell) return finish({});
  if (batch_->beaten()) return begin_anew();
  if (!applied) return finish(std::unexpected(std::move(applied.error())));
  if (*applied == Applied::kNothing && batch_->confirmed()) return finish({});
  then(*applied == Applied::kNothing ? &RemoteEngine::confirm_nothing : &RemoteEngine::append_batch);
}

void RemoteEngine::then(void (RemoteEngine::*step)()) {
  {
    MutexLock lock(mutex_);
    if (!closing_) return commit_lane_->post([this, step] { (this->*step)(); });
  }
  finish(std::unexpected(closing()));
}

/// Nothing is written, but somebody is told what was read.
void RemoteEngine::confirm_nothing() {
  auto now = replica_.follow();
  if (!now) return finish(std::unexpected(std::move(now.error())));
  if (*now == batch_->base()) return finish({});
  // What is told then is of after the question, whoever commits meanwhile.
  confirmed_ = *now;
  begin_anew();
}

bool RemoteEngine::park() {
  std::size_t unfolded = replica_.unfolded_bytes();
  MutexLock lock(mutex_);
  auto until = turns_.wait_until(scheduler_.now());
  parked_ = until || (folding_ && unfolded > options_.unfolded_bytes_max);
  // Queued tasks are run while the lane goes, which has no timers any more then.
  if (until && !closing_) {
    commit_lane_->at(*until, [this] {
      MutexLock timer_lock(mutex_);
      unpark();
    });
  }
  return parked_;
}

void RemoteEngine::unpark() {
  if (std::exchange(parked_, false) && !closing_) commit_lane_->post([this] { append_batch(); });
}

void RemoteEngine::append_batch() {
  auto asked = replica_.about_to_ask();
  if (!asked) return finish(std::unexpected(std::move(asked.error())));
  if (asked->since.version != batch_->base()) return begin_anew();
  if (park()) return;
  asked_ = *asked;
  if (replica_.unfolded_bytes() > 4 * options_.unfolded_bytes_max) return refuse_unfolded();
  Version version = batch_->last_version();
  entry_ = {version, encode_batch(batch_->writes(), version, asked_.since.link)};
  std::size_t most = replica_.server().limits().entry_bytes_max;
  if (entry_.batch.size() > most)
    return finish(fail(ErrorCode::kTooLarge, "a transaction of " + std::to_string(entry_.batch.size()) +
                                                 " bytes does not fit into the store on " + capabilities_.name +
                                                 ", which takes " + std::to_string(most)));
  sent_ = scheduler_.now();
  appending_ = version.number;
  replica_.about_to_append(entry_);
  replica_.server().append(asked_.since, entry_, [this](Result<Appended> answer) { appended(std::move(answer)); });
}

void RemoteEngine::appended(Result<Appended> answer) {
  if (!answer || !answer->done) {
    appending_ = 0;
    replica_.not_appended();
  }
  if (!answer) {
    // The bell may have rung for an append of others that has the number which ours was to have.
    news_of({});
    return finish(std::unexpected(std::move(answer.error())));
  }
  if (!answer->done) {
    {
      MutexLock lock(mutex_);
      turns_.taken();
    }
    Result<void> known = answer->instead ? replica_.take_in(asked_, *answer->instead) : catch_up_now();
    if (known) return begin_anew();
    // The bell may have rung for the append of others already, and was not listened to.
    news_of({});
    return finish(std::move(known));
  }
  observe(store_options_, Metric::kSyncDuration, seconds(scheduler_.now() - sent_));
  Writes writes = batch_->take_writes();
  // Before the replica moves on, which would keep what this view shows.
  batch_.reset();
  replica_.appended(std::move(writes), entry_);
  finish({});
  fold_if_due();
}

Result<void> RemoteEngine::catch_up_now() {
  auto now = replica_.follow();
  if (!now) return std::unexpected(std::move(now.error()));
  return {};
}

/// Others were first.
void RemoteEngine::begin_anew() {
  count(store_options_, Metric::kBatchesRemade, 1);
  bool patient = true;
  {
    MutexLock lock(mutex_);
    patient = !turns_.lost(scheduler_.now());
  }
  if (!patient) replica_.server().ask_for_turn();
  then(&RemoteEngine::make_batch);
}

void RemoteEngine::refuse_unfolded() {
  std::string problem;
  {
    MutexLock lock(mutex_);
    problem = fold_problem_;
  }
  finish(fail(ErrorCode::kUnavailable, "the log of the store on " + capabilities_.name +
                                           " has grown too long and could not be folded into rows: " +
                                           (problem.empty() ? "another process is at it" : problem)));
  fold_if_due();
}

void RemoteEngine::finish(Result<void> outcome) {
  batch_.reset();
  {
    MutexLock lock(mutex_);
    turns_.over();
  }
  std::exchange(job_, nullptr)->done(std::move(outcome));
}

void RemoteEngine::when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) {
  MutexLock lock(mutex_);
  waiters_.push_back({epoch, std::move(then)});
  if (std::exchange(asking_, true)) return;
  news_lane_->post([this] { ask_for_news(); });
}

void RemoteEngine::heard(Ring ring) {
  if (!ring.turn_wanted) return news_of(ring.reached);
  MutexLock lock(mutex_);
  turns_.give(scheduler_.now());
}

void RemoteEngine::news_of(Version reached) {
  if (reached != Version{} && (reached.number == appending_ || reached <= replica_.version())) return;
  MutexLock lock(mutex_);
  if (std::exchange(asking_, true)) return;
  news_lane_->post([this] { ask_for_news(); });
}

void RemoteEngine::ask_for_news() {
  std::vector<Waiter> waiters;
  {
    // Whoever comes from here on is not served by this question.
    MutexLock lock(mutex_);
    asking_ = false;
    waiters.swap(waiters_);
  }
  Version before = replica_.version();
  auto now = replica_.follow();
  if (now && *now > before && now->number != appending_) {
    MutexLock lock(mutex_);
    turns_.taken();
    unpark();
  }
  if (now) asked_in_vain_ = 0;
  if (!now && now.error().code != ErrorCode::kStoreFailed) ask_again();
  for (Waiter& waiter : waiters) {
    if (!now)
      waiter.then(std::unexpected(now.error()));
    else
      waiter.then(waiter.epoch == now->number ? Result<void>() : std::unexpected(newer()));
  }
  if (now) fold_if_due();
}

void RemoteEngine::ask_again() {
  const Duration pause = kAskAgain * (1 << std::min(asked_in_vain_++, kAskAgainDoublings));
  MutexLock lock(mutex_);
  if (closing_ || std::exchange(asks_again_, true)) return;
  news_lane_->at(scheduler_.now() + pause, [this] {
    MutexLock timer_lock(mutex_);
    asks_again_ = false;
    if (closing_ || std::exchange(asking_, true)) return;
    news_lane_->post([this] { ask_for_news(); });
  });
}

void RemoteEngine::fold_if_due() {
  if (replica_.unfolded_bytes() < options_.fold_bytes) return;
  MutexLock lock(mutex_);
  if (scheduler_.now() < no_fold_before_ || std::exchange(folding_, true)) return;
  fold_lane_->post([this] { fold(); });
}

void RemoteEngine::fold() {
  // Rows of commits that the server has lost must not get there after all.
  if (auto asked = replica_.about_to_ask(); !asked) return folded({}, std::unexpected(std::move(asked.error())));
  Fold next = replica_.next_fold();
  Version to = next.to.version;
  replica_.server().fold(next, [this, to](Result<bool> done) { folded(to, std::move(done)); });
}

void RemoteEngine::folded(Version to, Result<bool> done) {
  const std::string problem = done ? std::string() : to_string(done.error());
  if (done && *done)
    replica_.folded(to);
  else if (done)
    (void)replica_.follow();  // Somebody else does it.
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    folding_ = false;
    is_new = !problem.empty() && problem != fold_problem_;
    fold_problem_ = problem;
    if (done) folded_in_vain_ = 0;
    if (!done || !*done)
      no_fold_before_ = scheduler_.now() + kFoldAgain * (1 << std::min(folded_in_vain_, kFoldAgainDoublings));
    if (!done) ++folded_in_vain_;
    unpark();
  }
  if (is_new)
    log(store_options_, LogLevel::kWarning, "store", "the log could not be folded into rows; that is tried again",
        {{"error", problem}});
}

Result<VerifyReport> RemoteEngine::verify(const std::function<void(double)>& progress) {
  constexpr std::size_t kPage = 1000;
  VerifyReport report;
  auto problem = [&](const Error& error) {
    if (++report.problem_count <= 100) report.problems.push_back(error.message);
  };
  // Everything that is in the log only is known here once it was asked for, and was checked on its way in.
  if (auto there = replica_.follow(); !there) return std::unexpected(std::move(there.error()));
  std::set<Bytes> in_log;
  for (const FoldedRow& row : replica_.next_fold().rows) {
    in_log.insert(row.key);
    if (!row.row) continue;
    ++report.rows;
    report.bytes += row.key.size() + row.row->value.size();
  }
  RangeRead page{KeyRange{}, {.limit = kPage}};
  for (bool more = true; more;) {
    auto moment = replica_.server().read(replica_.version(), {}, {&page, 1});
    if (!moment) return std::unexpected(std::move(moment.error()));
    std::vector<Row>& rows = moment->ranges.front();
    more = rows.size() == kPage;
    if (more) page.range.begin = next_key(rows.back().key);
    for (Row& row : rows) {
      if (in_log.contains(row.key)) continue;
      ++report.rows;
      report.bytes += row.key.size() + row.value.size();
      if (auto value = open_value(row.key, {std::move(row.value), row.version}); !value) problem(value.error());
    }
    if (progress && !rows.empty())
      progress(static_cast<double>(static_cast<unsigned char>(rows.back().key.front())) / 256);
  }
  if (progress) progress(1);
  return report;
}

Result<void> RemoteEngine::backup(const std::string&) {
  return fail(ErrorCode::kInvalidArgument, "a store on " + capabilities_.name +
                                               " is backed up with the means of that server; see docs/operating.md");
}

}  // namespace perdure::remote
