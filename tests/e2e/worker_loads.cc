#include "worker_loads.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "log_check.h"

namespace perdure::e2e {

void put_line(int fd, const std::string& line) {
  std::string text = line + "\n";
  // Whoever listens may be gone, or the disk; then it is the listener who finds out.
  (void)!write(fd, text.data(), text.size());
}

Chains::Chains(int count, Step step) : step_(std::move(step)), running_(count) {
  for (int chain = 0; chain < count; ++chain) next(chain);
}

void Chains::next(int chain) {
  if (!stopping_) return step_(chain, [this, chain] { next(chain); });
  if (--running_ == 0) running_.notify_all();
}

void Chains::stop() {
  stopping_ = true;
  for (int left; (left = running_) > 0;) running_.wait(left);
}

namespace {

struct LogState {
  explicit LogState(const LogLoad& wanted) : load(wanted), next(static_cast<std::size_t>(wanted.chains)) {}
  LogLoad load;
  std::vector<std::int64_t> next;  // By chain: the n of its next transaction. Used by one transaction at a time.
};

void write_next(LogState& state, int chain, std::function<void()> ended) {
  auto index = static_cast<std::size_t>(chain);
  LogEntry entry{state.load.process, chain, state.next[index]};
  auto body = [entry](Transaction& txn) {
    std::int64_t place = decode_counter(txn.get(kLogEnd)) + 1;
    txn.set(kLogEnd, encode_counter(place));
    txn.set(log_key(place), entry.encode());
    for (int copy = 0; copy < kCopies; ++copy) txn.set(entry.chain_key(copy), encode_counter(entry.n));
    txn.add(kLogTotal, 1);
    return place;
  };
  auto done = [&state, entry, index, ended = std::move(ended)](Result<std::int64_t> place) {
    if (place) {
      put_line(STDOUT_FILENO, "!ack " + std::to_string(*place) + " " + entry.encode());
      ++state.next[index];
    } else if (place.error().outcome() == Outcome::kUnknown || place.error().code == ErrorCode::kStoreFailed) {
      return;  // The power is gone: this chain has come to its end.
    }
    ended();
  };
  // Every other chain goes through the commit thread, the others through a snapshot and its validation.
  TransactOptions options;
  if (chain % 2 == 0) options.body = Body::kShort;
  state.load.store.transact_async(body, std::move(done), options);
}

}  // namespace

std::function<void()> start_log_load(const LogLoad& load) {
  auto state = std::make_shared<LogState>(load);
  for (int chain = 0; chain < load.chains; ++chain) {
    auto found = state->load.store.read(
        [&](Reader& reader) { return decode_counter(reader.get(LogEntry{load.process, chain, 0}.chain_key(0))); });
    state->next[static_cast<std::size_t>(chain)] = found.value_or(0) + 1;
  }
  auto chains = std::make_shared<Chains>(
      load.chains, [state](int chain, std::function<void()> ended) { write_next(*state, chain, std::move(ended)); });
  return [chains] { chains->stop(); };
}

}  // namespace perdure::e2e
