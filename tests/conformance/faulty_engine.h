// An engine that fails by script: what a database behind a network does to its clients.
//
// A commit may be answered with kCommitUnknown though it was applied, though it was not, or though it is still on its
// way. The last is what a slow packet does: the batch is made from what the engine showed at first, and arrives later,
// where the engine compares the versions of all that the batch had read and refuses it if one has changed. Snapshots
// may be taken back at any read.
#pragma once

#include <deque>
#include <map>

#include "conformance/fault_script.h"
#include "store/engine.h"

namespace perdure::conformance {

/// Passes everything on, and takes down what a batch read (with the versions it saw) and what it wrote.
class RecordingView final : public CommitView {
 public:
  struct Put {
    Bytes value;
    Version version;
  };
  struct Batch {
    std::map<Bytes, Version> reads;
    std::vector<std::pair<KeyRange, Fingerprint>> range_reads;
    std::map<Bytes, std::optional<Put>> writes;  ///< The last write of each key; none erases.
    Version version;
    int commits_to_wait = 0;
  };

  explicit RecordingView(CommitView& view) : view_(view) {}
  Batch& batch() { return batch_; }

  Result<std::optional<Versioned>> get(BytesView key) override {
    auto row = view_.get(key);
    if (row) note(key, *row ? (*row)->version : Version{});
    return row;
  }
  Result<Version> version_of(BytesView key) override {
    auto version = view_.version_of(key);
    if (version) note(key, *version);
    return version;
  }
  Result<std::vector<Row>> get_range(const RangeRead& read) override {
    if (auto noted = fingerprint(read.range, UINT64_MAX); !noted) return std::unexpected(noted.error());
    return view_.get_range(read);
  }
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
    // Whole ranges are compared, also where the batch looked at a part; a range that the batch has written to before is
    // compared with what it then looked like, which nothing stored can equal: such a batch never arrives.
    auto whole = view_.fingerprint(range, UINT64_MAX);
    if (whole) batch_.range_reads.emplace_back(range, *whole);
    return view_.fingerprint(range, rows_max);
  }
  std::uint64_t base_epoch() const override { return view_.base_epoch(); }
  Version last_version() const override { return view_.last_version(); }
  void raise_version(Version version) override {
    batch_.version = version;
    view_.raise_version(version);
  }
  Result<void> put(BytesView key, BytesView value, Version version) override {
    batch_.writes.insert_or_assign(Bytes(key), Put{Bytes(value), version});
    return view_.put(key, value, version);
  }
  Result<void> erase(BytesView key) override {
    batch_.writes.insert_or_assign(Bytes(key), std::nullopt);
    return view_.erase(key);
  }
  Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) override {
    return view_.erase_range(range, [&](BytesView key) {
      batch_.writes.insert_or_assign(Bytes(key), std::nullopt);
      erased(key);
    });
  }
  bool has_room() const override { return view_.has_room(); }

 private:
  void note(BytesView key, Version version) {
    if (!batch_.writes.contains(Bytes(key))) batch_.reads.emplace(Bytes(key), version);
  }

  CommitView& view_;
  Batch batch_;
};

class FaultyEngine final : public Engine {
 public:
  /// The script must outlive the engine.
  FaultyEngine(std::unique_ptr<Engine> inner, FaultScript& script) : inner_(std::move(inner)), script_(script) {
    capabilities_ = inner_->capabilities();
    capabilities_.unknown_commits = true;
    script_.opened();
  }
  /// As a database across a network: bodies never run inside of its commits.
  static std::unique_ptr<FaultyEngine> remote(std::unique_ptr<Engine> inner, FaultScript& script) {
    auto engine = std::make_unique<FaultyEngine>(std::move(inner), script);
    engine->capabilities_.remote = true;
    return engine;
  }
  ~FaultyEngine() override {
    script_.closing();
    if (before_end_) before_end_();
    inner_.reset();
  }
  /// Called when the engine is about to end: nobody may commit any more.
  void before_end(std::function<void()> hook) { before_end_ = std::move(hook); }

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override {
    auto taken = inner_->snapshot();
    if (!taken) return taken;
    return std::make_unique<FaultySnapshot>(std::move(*taken), script_);
  }
  bool is_durable(std::uint64_t epoch) override { return inner_->is_durable(epoch); }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override {
    inner_->when_durable(epoch, std::move(then));
  }
  void commit(CommitJob& job) override {
    script_.check_open();
    job_ = &job;
    arrive_or_attempt();
  }
  void listen(ChangeListener* listener) override { inner_->listen(listener); }
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override { return inner_->verify(progress); }
  Result<void> backup(const std::string& path) override { return inner_->backup(path); }

 private:
  class FaultySnapshot final : public Snapshot {
   public:
    FaultySnapshot(std::unique_ptr<Snapshot> inner, FaultScript& script) : inner_(std::move(inner)), script_(script) {}
    std::uint64_t epoch() const override { return inner_->epoch(); }
    bool retired() const override { return retired_ || inner_->retired(); }
    Result<std::optional<Versioned>> get(BytesView key) override {
      return reading([&] { return inner_->get(key); });
    }
    Result<Version> version_of(BytesView key) override {
      return reading([&] { return inner_->version_of(key); });
    }
    Result<std::vector<Row>> get_range(const RangeRead& read) override {
      return reading([&] { return inner_->get_range(read); });
    }
    Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
      return reading([&] { return inner_->fingerprint(range, rows_max); });
    }

   private:
    template <class F>
    auto reading(F read) -> decltype(read()) {
      if (!retired_) retired_ = script_.retires();
      if (retired_) return fail(ErrorCode::kUnavailable, "the snapshot was taken back");
      return read();
    }

    std::unique_ptr<Snapshot> inner_;
    FaultScript& script_;
    bool retired_ = false;
  };

  /// A commit of the store, with its fault.
  class Attempt final : public CommitJob {
   public:
    explicit Attempt(FaultyEngine& engine) : engine_(engine) {}
    void begin() {
      fault_ = engine_.script_.next();
      unknown_ = false;
    }
    Result<Applied> apply(CommitView& view) override {
      if (fault_ == Fault::kRefused) return fail(ErrorCode::kUnavailable, "the engine is away");
      if (fault_ == Fault::kNone) return engine_.job_->apply(view);
      if (fault_ == Fault::kFails) {
        (void)engine_.job_->apply(view);
        return fail(ErrorCode::kStoreFailed, "the disk is broken");
      }
      if (fault_ == Fault::kUnknownApplied) {
        auto applied = engine_.job_->apply(view);
        unknown_ = applied.has_value();
        return applied;
      }
      RecordingView recording(view);
      auto applied = engine_.job_->apply(recording);
      if (!applied) return applied;
      unknown_ = true;
      if (fault_ != Fault::kUnknownLost && *applied == Applied::kSomething) {
        recording.batch().commits_to_wait =
            fault_ == Fault::kUnknownLateBefore ? 0 : (fault_ == Fault::kUnknownLateAfter ? 1 : 2);
        engine_.on_their_way_.push_back(std::move(recording.batch()));
      }
      return Applied::kNothing;
    }
    std::span<const std::uint64_t> changed_keys() const override { return engine_.job_->changed_keys(); }
    void done(Result<void> outcome) override {
      if (outcome && unknown_) outcome = fail(ErrorCode::kCommitUnknown, "the connection broke during the commit");
      engine_.job_->done(std::move(outcome));
    }

   private:
    FaultyEngine& engine_;
    Fault fault_ = Fault::kNone;
    bool unknown_ = false;
  };

  /// The arrival of a batch that was on its way.
  class Arrival final : public CommitJob {
   public:
    explicit Arrival(FaultyEngine& engine) : engine_(engine) {}
    RecordingView::Batch batch;

    Result<Applied> apply(CommitView& view) override {
      auto valid = still_valid(view);
      if (!valid) return std::unexpected(valid.error());
      engine_.script_.arrived(*valid);
      if (!*valid) return Applied::kNothing;
      for (const auto& [key, put] : batch.writes) {
        auto written = put ? view.put(key, put->value, put->version) : view.erase(key);
        if (!written) return std::unexpected(written.error());
      }
      view.raise_version(batch.version);
      return Applied::kSomething;
    }
    std::span<const std::uint64_t> changed_keys() const override { return {}; }
    void done(Result<void>) override { engine_.arrive_or_attempt(); }

   private:
    Result<bool> still_valid(CommitView& view) {
      for (const auto& [key, version] : batch.reads) {
        auto now = view.version_of(key);
        if (!now) return std::unexpected(now.error());
        if (*now != version) return false;
      }
      for (const auto& [range, fingerprint] : batch.range_reads) {
        auto now = view.fingerprint(range, UINT64_MAX);
        if (!now) return std::unexpected(now.error());
        if (*now != fingerprint) return false;
      }
      return true;
    }

    FaultyEngine& engine_;
  };

  /// First what is due of that on its way, then the commit that was asked for. One step at a time.
  void arrive_or_attempt() {
    for (auto at = on_their_way_.begin(); at != on_their_way_.end(); ++at) {
      if (at->commits_to_wait > 0) continue;
      arrival_.batch = std::move(*at);
      on_their_way_.erase(at);
      return inner_->commit(arrival_);
    }
    for (auto& batch : on_their_way_) --batch.commits_to_wait;
    attempt_.begin();
    inner_->commit(attempt_);
  }

  std::unique_ptr<Engine> inner_;
  FaultScript& script_;
  Capabilities capabilities_;
  std::function<void()> before_end_;
  // One commit at a time: touched by whoever the engine calls.
  CommitJob* job_ = nullptr;
  std::deque<RecordingView::Batch> on_their_way_;
  Attempt attempt_{*this};
  Arrival arrival_{*this};
};

}  // namespace perdure::conformance
