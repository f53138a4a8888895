#include "sim/sim_engine.h"

#include <utility>

#include "base/assert.h"
#include "base/endian.h"

namespace perdure::sim {
namespace {

/// How often a commit is started over: then it is applied and installed in one go, so that it cannot starve.
constexpr int kAttemptsMax = 3;
/// How many reads in a thousand see another node's commit arrive just before them.
constexpr std::uint64_t kArrivesBetweenReads = 150;

}  // namespace

/// A snapshot that fails when its node is dead or cut off, and that may be taken back.
class SimEngine::SimSnapshot final : public Snapshot {
 public:
  SimSnapshot(SimEngine& engine, std::unique_ptr<Snapshot> rows) : engine_(engine), rows_(std::move(rows)) {}

  std::uint64_t epoch() const override { return rows_->epoch(); }
  bool retired() const override { return retired_; }
  Result<std::optional<Versioned>> get(BytesView key) override {
    return reading([&] { return rows_->get(key); });
  }
  Result<Version> version_of(BytesView key) override {
    return reading([&] { return rows_->version_of(key); });
  }
  Result<std::vector<Row>> get_range(const RangeRead& read) override {
    return reading([&] { return rows_->get_range(read); });
  }
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
    return reading([&] { return rows_->fingerprint(range, rows_max); });
  }

 private:
  template <class F>
  auto reading(F read) -> decltype(read()) {
    if (engine_.severed_) return fail(ErrorCode::kStoreFailed, "this node has died");
    if (engine_.capabilities_.remote && !engine_.reachable())
      return fail(ErrorCode::kUnavailable, "the store cannot be reached");
    if (engine_.capabilities_.remote && chance(engine_.random_, kArrivesBetweenReads))
      engine_.store_.let_one_arrive(engine_.id_);
    if (!retired_) retired_ = engine_.store_.faults().strikes(FaultClass::kRetired, engine_.index_);
    if (retired_) return fail(ErrorCode::kUnavailable, "the snapshot was taken back");
    return read();
  }

  SimEngine& engine_;
  std::unique_ptr<Snapshot> rows_;
  bool retired_ = false;
};

SimEngine::SimEngine(SimStore& store, NodeScheduler& node, int index, std::uint64_t seed, std::function<void()> crash)
    : store_(store),
      node_(node),
      index_(index),
      random_(stream(seed, "engine/" + node.name())),
      crash_(std::move(crash)),
      capabilities_{.name = "sim",
                    .limits = {},
                    .durable = true,
                    .remote = store.traits().remote,
                    .unknown_commits = store.traits().unknown_commits,
                    .blocking_calls = false},
      id_(store.join(*this)),
      lane_(node.lane("perdure-commit")) {}

SimEngine::~SimEngine() {
  store_.sever(id_);
}

Result<std::unique_ptr<Snapshot>> SimEngine::snapshot() {
  if (severed_) return fail(ErrorCode::kStoreFailed, "this node has died");
  if (!reachable()) return fail(ErrorCode::kUnavailable, "the store cannot be reached");
  return std::make_unique<SimSnapshot>(*this, store_.rows()->snapshot());
}

void SimEngine::when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) {
  if (!severed_) return store_.when_durable(epoch, id_, std::move(then));
  lane_->post([then = std::move(then)]() mutable { then(fail(ErrorCode::kStoreFailed, "this node has died")); });
}

void SimEngine::commit(CommitJob& job) {
  check(!job_, "one commit at a time");
  job_ = &job;
  attempts_ = 0;
  if (severed_) return answer(fail(ErrorCode::kStoreFailed, "this node has died"));
  after(delay(store_.traits().request_max), &SimEngine::attempt);
}

void SimEngine::after(Duration delay, void (SimEngine::*step)()) {
  lane_->at(node_.now() + delay, [this, step] { (this->*step)(); });
}

Duration SimEngine::delay(Duration most) {
  return draw_delay(random_, most) * store_.faults().degree(FaultClass::kSlowDisk, index_).value_or(1);
}

/// The commit reaches the store.
void SimEngine::attempt() {
  if (severed_ || crashes(FaultEvent::Moment::kBeforeApply)) return finish();
  if (!reachable()) return answer(fail(ErrorCode::kUnavailable, "the store cannot be reached"));
  auto full = store_.faults().degree(FaultClass::kFullDisk, index_);
  commit_ = store_.rows()->begin();
  base_version_ = store_.rows()->last_version();
  if (full) commit_->leave_no_room();
  auto done = job_->apply(*commit_);
  if (!done) return answer(std::unexpected(std::move(done.error())));
  if (*done != Applied::kSomething) return answer_when_durable(commit_->base_epoch());
  if (full == 1) return answer(fail(ErrorCode::kStoreFull, "the disk is full"));
  if (attempts_ < kAttemptsMax && store_.faults().strikes(FaultClass::kConflict, index_)) {
    ++attempts_;
    note("commit started over");
    return after(delay(store_.traits().request_max), &SimEngine::attempt);
  }
  if (auto unknown = lose_track()) return answer(std::unexpected(std::move(*unknown)));
  if (!capabilities_.remote || attempts_ == kAttemptsMax) return arrive();
  // Made from what was seen on this side of the network; whether that is still so shows when it arrives.
  NodeScheduler& world = store_.world();
  travels_ = true;
  world.at(world.now() + delay(store_.traits().request_max), [&store = store_, id = id_, journey = ++journey_] {
    SimEngine* engine = store.find(id);
    if (engine && engine->travels_ && engine->journey_ == journey) engine->arrive();
  });
}

std::optional<Error> SimEngine::lose_track() {
  if (!capabilities_.unknown_commits) return std::nullopt;
  std::vector<std::uint64_t> keys(job_->changed_keys().begin(), job_->changed_keys().end());
  auto unknown = [this](std::string_view what) {
    note(std::string("commit unknown: ") + std::string(what));
    return Error{ErrorCode::kCommitUnknown, "the connection broke during the commit"};
  };
  if (store_.faults().strikes(FaultClass::kUnknownLost, index_)) return unknown("lost");
  if (store_.faults().strikes(FaultClass::kUnknownLate, index_)) {
    store_.send_late(std::move(commit_), id_, std::move(keys));
    return unknown("late");
  }
  if (!store_.faults().strikes(FaultClass::kUnknownApplied, index_)) return std::nullopt;
  store_.install(*commit_, id_, std::move(keys), SimStore::Bells::kRung);
  return unknown("applied");
}

void SimEngine::arrive() {
  travels_ = false;
  if (store_.rows()->last_version() != base_version_) {
    ++attempts_;
    lane_->post([this] { attempt(); });
    return;
  }
  bool dies = armed_ == FaultEvent::Moment::kBeforeAnswer;
  auto bells = dies && random_() % 2 == 0 ? SimStore::Bells::kForgotten : SimStore::Bells::kRung;
  std::vector<std::uint64_t> keys(job_->changed_keys().begin(), job_->changed_keys().end());
  std::uint64_t epoch = store_.install(*commit_, id_, std::move(keys), bells);
  commit_.reset();
  if (crashes(FaultEvent::Moment::kBeforeAnswer)) return answer({});
  answer_when_durable(epoch);
}

void SimEngine::answer_when_durable(std::uint64_t epoch) {
  store_.when_durable(epoch, id_, [this](Result<void> durable) { answer(std::move(durable)); });
}

void SimEngine::answer(Result<void> outcome) {
  outcome_ = std::move(outcome);
  after(delay(store_.traits().request_max), &SimEngine::finish);
}

void SimEngine::finish() {
  // Whoever does not get an answer does not know; after a refusal before the store was reached he does.
  bool cut_off = !reachable() && outcome_ && capabilities_.unknown_commits;
  if (cut_off) outcome_ = fail(ErrorCode::kCommitUnknown, "the connection broke before the answer came");
  bool was_told = !outcome_ && outcome_.error().code == ErrorCode::kStoreFailed;
  if (severed_ && !was_told) outcome_ = std::unexpected(severed_error());
  commit_.reset();
  if (!severed_) note(outcome_ ? "commit ok" : "commit: " + std::string(outcome_.error().name()));
  std::exchange(job_, nullptr)->done(std::exchange(outcome_, {}));
}

Error SimEngine::severed_error() const {
  return {capabilities_.unknown_commits ? ErrorCode::kCommitUnknown : ErrorCode::kStoreFailed,
          "this node died during the commit"};
}

bool SimEngine::crashes(FaultEvent::Moment moment) {
  if (armed_ != moment) return false;
  sever();
  crash_();
  return true;
}

void SimEngine::sever() {
  armed_.reset();
  if (severed_) return;
  severed_ = true;
  store_.sever(id_);
  if (std::exchange(travels_, false)) lane_->post([this] { finish(); });
}

Bytes SimEngine::presence() const {
  if (!store_.traits().knows_deaths) return {};
  Bytes name(sizeof id_, '\0');
  store_big(name.data(), id_);
  return name;
}

bool SimEngine::is_gone(BytesView presence) {
  return store_.traits().knows_deaths && presence.size() == sizeof id_ &&
         store_.is_gone(load_big<std::uint64_t>(presence.data()));
}

void SimEngine::hear(Version version, const std::vector<std::uint64_t>& keys) {
  if (severed_) return;
  untold_.erase(version);
  if (listener_ && !keys.empty()) listener_->keys_changed(keys);
}

void SimEngine::hear_of_death() {
  if (severed_) return;
  untold_.clear();
  if (listener_) listener_->anything_changed();
}

void SimEngine::catch_up(Version reached) {
  if (severed_ || untold_.empty() || *untold_.begin() > reached) return;
  untold_.erase(untold_.begin(), untold_.upper_bound(reached));
  lane_->post([this] {
    if (listener_ && !severed_) listener_->anything_changed();
  });
}

Result<VerifyReport> SimEngine::verify(const std::function<void(double)>& progress) {
  if (progress) progress(1);
  return store_.rows()->verify();
}

Result<void> SimEngine::backup(const std::string&) {
  return fail(ErrorCode::kInvalidArgument, "a simulated store has nothing to back up");
}

void SimEngine::note(std::string_view what) {
  store_.trace().note(node_.now(), node_.name(), what);
}

}  // namespace perdure::sim
