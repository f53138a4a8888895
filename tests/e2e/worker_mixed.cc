#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <random>

#include "child.h"
#include "kill_records.h"
#include "sim/history.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

constexpr int kChains = 12;
/// Lists in use at one time. Each second has its own, so that they stay short.
constexpr sim::Key kLists = 8;

int open_records(const MixedLoad& load, const std::string& kind) {
  std::string path = records_file(load.directory, load.process, load.life, kind);
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

struct MixedState {
  explicit MixedState(const MixedLoad& wanted)
      : load(wanted),
        counters_fd(open_records(wanted, "counters")),
        history_fd(open_records(wanted, "history")),
        writer([this](std::string_view line) { (void)!write(history_fd, line.data(), line.size()); }),
        chance(static_cast<std::uint64_t>(wanted.process * 1000 + wanted.life)) {}
  ~MixedState() {
    close(counters_fd);
    close(history_fd);
  }
  MixedState(const MixedState&) = delete;
  MixedState& operator=(const MixedState&) = delete;

  MixedLoad load;
  int counters_fd;
  int history_fd;
  std::mutex mutex;  // Guards what follows.
  sim::HistoryWriter writer;
  std::mt19937_64 chance;
  std::uint64_t appended = 0;
};

template <class T>
sim::Ending ending_of(const Result<T>& result) {
  if (result) return sim::Ending::kOk;
  return result.error().outcome() == Outcome::kUnknown ? sim::Ending::kUnknown : sim::Ending::kFail;
}

void increment(MixedState& state, BytesView counter, std::function<void()> ended) {
  std::string name(counter);
  put_line(state.counters_fd, "begun " + name);
  auto body = [name](Transaction& txn) {
    if (name == kAddCounter)
      txn.add(name, 1);
    else
      txn.set(name, encode_counter(decode_counter(txn.get(name)) + 1));
  };
  state.load.store.transact_async(body, [&state, name, ended = std::move(ended)](Result<void> result) {
    sim::Ending ending = ending_of(result);
    std::string word = ending == sim::Ending::kOk ? "ok " : ending == sim::Ending::kFail ? "failed " : "unknown ";
    put_line(state.counters_fd, word + name + " " + std::to_string(steady_ns()));
    ended();
  });
}

sim::Operation random_operation(MixedState& state, int chain) {
  sim::Operation operation;
  operation.process = static_cast<std::uint64_t>((state.load.process * 1000 + state.load.life) * 100 + chain);
  operation.invoked_ns = steady_ns();
  sim::Key first = static_cast<sim::Key>(operation.invoked_ns / 1'000'000'000) * kLists;
  for (auto count = 1 + state.chance() % 4; count > 0; --count) {
    sim::Key key = first + state.chance() % kLists;
    sim::Value value = (operation.process << 32) + ++state.appended;
    operation.micro_ops.push_back(state.chance() % 2 ? sim::append(key, value) : sim::read(key));
  }
  return operation;
}

void run(Transaction& txn, sim::Operation& operation) {
  for (sim::MicroOp& op : operation.micro_ops) {
    auto stored = txn.get(list_key(op.key));
    if (op.kind == sim::MicroOp::Kind::kRead) {
      op.list = decode_list(stored);
    } else {
      Bytes longer = stored.value_or("");
      append_value(longer, op.value);
      txn.set(list_key(op.key), longer);
    }
  }
}

void append_to_lists(MixedState& state, int chain, std::function<void()> ended) {
  auto operation = std::make_shared<sim::Operation>();
  {
    std::lock_guard lock(state.mutex);
    *operation = random_operation(state, chain);
    state.writer.invoke(*operation);
  }
  TransactOptions options;
  if (chain % 4 == 2) options.body = Body::kShort;
  state.load.store.transact_async([operation](Transaction& txn) { run(txn, *operation); },
                                  [&state, operation, ended = std::move(ended)](Result<void> result) {
                                    operation->completed_ns = steady_ns();
                                    operation->ending = ending_of(result);
                                    if (operation->ending != sim::Ending::kOk)
                                      for (sim::MicroOp& op : operation->micro_ops) op.list.reset();
                                    {
                                      std::lock_guard lock(state.mutex);
                                      state.writer.complete(*operation);
                                    }
                                    ended();
                                  },
                                  options);
}

}  // namespace

std::function<void()> start_mixed_load(const MixedLoad& load) {
  auto state = std::make_shared<MixedState>(load);
  auto chains = std::make_shared<Chains>(kChains, [state](int chain, std::function<void()> ended) {
    if (chain % 6 == 0) return increment(*state, kAddCounter, std::move(ended));
    if (chain % 6 == 1) return increment(*state, kReadCounter, std::move(ended));
    append_to_lists(*state, chain, std::move(ended));
  });
  return [chains] { chains->stop(); };
}

}  // namespace perdure::e2e
