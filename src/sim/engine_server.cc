#include "sim/engine_server.h"

#include <algorithm>

#include "base/endian.h"
#include "store/ranges.h"

namespace perdure::sim {
namespace {

using remote::Fold;
using remote::LogEnd;
using remote::LogEntry;
using remote::Moment;

const Bytes kEnd = "m/end", kFolded = "m/folded", kTrimmed = "m/trimmed", kTurn = "m/turn", kLog = "l/", kRows = "r/";

Bytes number(Version version) {
  Bytes bytes(sizeof version.number, '\0');
  store_big(bytes.data(), version.number);
  return bytes;
}

Version version_in(BytesView bytes) {
  return Version{load_big<std::uint64_t>(bytes.data())};
}

Result<Version> read_version(ReadView& view, BytesView key) {
  auto row = view.get(key);
  if (!row) return std::unexpected(std::move(row.error()));
  return *row ? version_in((*row)->value) : Version{};
}

Bytes end_bytes(const LogEnd& end) {
  Bytes bytes = number(end.version);
  bytes.resize(2 * sizeof(std::uint64_t));
  store_big(bytes.data() + sizeof(std::uint64_t), end.link);
  return bytes;
}

Result<LogEnd> read_end(ReadView& view) {
  auto row = view.get(kEnd);
  if (!row) return std::unexpected(std::move(row.error()));
  if (!*row) return LogEnd{};
  const Bytes& bytes = (*row)->value;
  return LogEnd{version_in(bytes), load_big<remote::Link>(bytes.data() + sizeof(std::uint64_t))};
}

Row row_in(const Row& stored) {
  return {stored.key.substr(kRows.size()), stored.value.substr(8), version_in(stored.value)};
}

RangeRead within_rows(const RangeRead& read) {
  KeyRange all = prefix_range(kRows);
  return {{kRows + read.range.begin, read.range.end.empty() ? all.end : kRows + read.range.end}, read.options};
}

Result<void> read_log(Snapshot& view, Version since, Moment& moment) {
  Version after = since >= moment.trimmed ? since : moment.folded;
  KeyRange rest{next_key(kLog + number(after)), prefix_range(kLog).end};
  auto rows = view.get_range({rest, {}});
  if (!rows) return std::unexpected(std::move(rows.error()));
  for (Row& row : *rows)
    moment.log.push_back({version_in(BytesView(row.key).substr(kLog.size())), std::move(row.value)});
  return {};
}

Result<void> read_rows(Snapshot& view, std::span<const Bytes> keys, std::span<const RangeRead> ranges, Moment& moment) {
  for (const Bytes& key : keys) {
    auto row = view.get(kRows + key);
    if (!row) return std::unexpected(std::move(row.error()));
    moment.values.emplace_back();
    if (*row) moment.values.back() = Versioned{(*row)->value.substr(8), version_in((*row)->value)};
  }
  for (const RangeRead& range : ranges) {
    auto rows = view.get_range(within_rows(range));
    if (!rows) return std::unexpected(std::move(rows.error()));
    moment.ranges.emplace_back();
    for (const Row& row : *rows) moment.ranges.back().push_back(row_in(row));
  }
  return {};
}

Result<Moment> read_moment(Snapshot& view, Version since, std::span<const Bytes> keys,
                           std::span<const RangeRead> ranges) {
  Moment moment;
  auto end = read_end(view);
  if (!end) return std::unexpected(std::move(end.error()));
  moment.end = *end;
  for (auto [key, version] : {std::pair(&kFolded, &moment.folded), {&kTrimmed, &moment.trimmed}}) {
    auto read = read_version(view, *key);
    if (!read) return std::unexpected(std::move(read.error()));
    *version = *read;
  }
  if (auto read = read_log(view, since, moment); !read) return std::unexpected(std::move(read.error()));
  if (auto read = read_rows(view, keys, ranges, moment); !read) return std::unexpected(std::move(read.error()));
  return moment;
}

}  // namespace

/// What has a condition, and happens wholly or not at all.
class EngineServer::Write : public CommitJob {
 public:
  explicit Write(EngineServer& server, const Bytes& rings = kEnd) : server_(server), changed_{watch_hash(rings)} {}

  Result<Applied> apply(CommitView& view) override {
    auto holds = condition(view);
    if (!holds) return std::unexpected(std::move(holds.error()));
    done_ = *holds;
    if (!done_) return Applied::kNothing;
    version_ = Version{view.last_version().number + 1};
    if (auto written = write(view); !written) return std::unexpected(std::move(written.error()));
    return Applied::kSomething;
  }
  void done(Result<void> outcome) override {
    auto self = std::move(server_.writes_.front());
    server_.writes_.pop_front();
    // First, for the answer may ask for more.
    server_.next();
    answer(std::move(outcome));
  }
  std::span<const std::uint64_t> changed_keys() const override { return changed_; }

 protected:
  virtual Result<bool> condition(CommitView& view) = 0;
  virtual Result<void> write(CommitView& view) = 0;
  virtual void answer(Result<void> outcome) = 0;
  Result<void> put(CommitView& view, const Bytes& key, BytesView value) { return view.put(key, value, version_); }
  bool was_done() const { return done_; }

 private:
  EngineServer& server_;
  bool done_ = false;
  Version version_;
  const std::vector<std::uint64_t> changed_;
};

class EngineServer::Append final : public Write {
 public:
  Append(EngineServer& server, const LogEnd& expected, LogEntry entry, AppendDone done)
      : Write(server), expected_(expected), entry_(std::move(entry)), done_(std::move(done)) {}

 private:
  Result<bool> condition(CommitView& view) override {
    auto end = read_end(view);
    if (!end) return std::unexpected(std::move(end.error()));
    return *end == expected_;
  }
  Result<void> write(CommitView& view) override {
    const Bytes end = end_bytes({entry_.version, remote::link_of(entry_.batch)});
    if (auto written = put(view, kEnd, end); !written) return written;
    return put(view, kLog + number(entry_.version), entry_.batch);
  }
  void answer(Result<void> outcome) override {
    if (outcome)
      done_(remote::Appended{.done = was_done()});
    else
      done_(std::unexpected(std::move(outcome.error())));
  }

  const LogEnd expected_;
  const LogEntry entry_;
  AppendDone done_;
};

class EngineServer::FoldRows final : public Write {
 public:
  FoldRows(EngineServer& server, Fold fold, FoldDone done)
      : Write(server), fold_(std::move(fold)), done_(std::move(done)) {}

 private:
  Result<bool> condition(CommitView& view) override {
    auto folded = read_version(view, kFolded);
    if (!folded) return std::unexpected(std::move(folded.error()));
    auto last = view.get(kLog + number(fold_.to.version));
    if (!last) return std::unexpected(std::move(last.error()));
    const bool has_it = fold_.to.version == fold_.from || (*last && remote::link_of((*last)->value) == fold_.to.link);
    return *folded == fold_.from && has_it;
  }
  Result<void> write(CommitView& view) override {
    for (const remote::FoldedRow& row : fold_.rows) {
      Result<void> written =
          row.row ? put(view, kRows + row.key, number(row.row->version) + row.row->value) : view.erase(kRows + row.key);
      if (!written) return written;
    }
    KeyRange trimmed{kLog, next_key(kLog + number(fold_.trim))};
    if (auto erased = view.erase_range(trimmed, [](BytesView) {}); !erased) return erased;
    if (auto written = put(view, kTrimmed, number(fold_.trim)); !written) return written;
    return put(view, kFolded, number(fold_.to.version));
  }
  void answer(Result<void> outcome) override {
    if (outcome)
      done_(was_done());
    else
      done_(std::unexpected(std::move(outcome.error())));
  }

  const Fold fold_;
  FoldDone done_;
};

/// Whether it gets through does not matter.
class EngineServer::AskForTurn final : public Write {
 public:
  explicit AskForTurn(EngineServer& server) : Write(server, kTurn) {}

 private:
  Result<bool> condition(CommitView&) override { return true; }
  Result<void> write(CommitView& view) override { return put(view, kTurn, {}); }
  void answer(Result<void>) override {}
};

EngineServer::EngineServer(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), limits_{.name = engine_->capabilities().name} {
  engine_->listen(this);
}

EngineServer::~EngineServer() {
  engine_->listen(nullptr);
}

Result<Moment> EngineServer::read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) {
  for (int attempt = 0;; ++attempt) {
    auto view = engine_->snapshot();
    if (!view) return std::unexpected(std::move(view.error()));
    auto moment = read_moment(**view, since, keys, ranges);
    if (moment || !(*view)->retired() || attempt == 100) return moment;
  }
}

void EngineServer::append(const LogEnd& expected, const LogEntry& entry, AppendDone done) {
  commit(std::make_unique<Append>(*this, expected, entry, std::move(done)));
}

void EngineServer::fold(const Fold& fold, FoldDone done) {
  commit(std::make_unique<FoldRows>(*this, fold, std::move(done)));
}

void EngineServer::commit(std::unique_ptr<Write> write) {
  writes_.push_back(std::move(write));
  if (writes_.size() == 1) engine_->commit(*writes_.front());
}

void EngineServer::next() {
  if (!writes_.empty()) engine_->commit(*writes_.front());
}

void EngineServer::ask_for_turn() {
  commit(std::make_unique<AskForTurn>(*this));
}

void EngineServer::listen(remote::Bell bell) {
  bell_ = std::move(bell);
}

void EngineServer::keys_changed(std::span<const std::uint64_t> key_hashes) {
  static const std::uint64_t turn = watch_hash(kTurn);
  if (bell_) bell_({.turn_wanted = std::ranges::find(key_hashes, turn) != key_hashes.end()});
}

void EngineServer::anything_changed() {
  if (bell_) bell_({});
}

}  // namespace perdure::sim
