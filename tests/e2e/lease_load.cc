#include "lease_load.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>

#include "perdure/tuple.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

constexpr int kWritesPerHold = 3;
/// Longer than a hold, so that one who waits takes over; short enough that a chain tries another lease before long.
constexpr std::chrono::milliseconds kWait{200};

Bytes log_end(std::string_view lease) {
  return tuple::pack("lease-log", lease, "end");
}
Bytes log_entry(std::string_view lease, std::int64_t place) {
  return tuple::pack("lease-log", lease, "entry", place);
}

/// What a chain is at. Used by one callback at a time.
struct Chain {
  std::mt19937 random;
  std::optional<Lease> lease;
  int writes_left = 0;
  std::function<void()> ended;
};

class Load : public std::enable_shared_from_this<Load> {
 public:
  explicit Load(const LeaseLoad& wanted) : load_(wanted), chains_(static_cast<std::size_t>(wanted.chains)) {
    for (int i = 0; i < wanted.chains; ++i)
      chains_[static_cast<std::size_t>(i)].random.seed(static_cast<unsigned>(wanted.process * 1000 + i));
    load_.options.on_lost = nullptr;
  }

  void step(int index, std::function<void()> ended) {
    Chain& chain = chains_[static_cast<std::size_t>(index)];
    chain.ended = std::move(ended);
    auto session = current();
    if (!session || !session->alive()) return renew_session(chain, session);
    std::string name = load_.prefix + std::to_string(chain.random() % static_cast<unsigned>(load_.leases));
    session->acquire_async(name, kWait, [this, &chain, session](Result<Lease> lease) {
      if (!lease) return done(chain);
      chain.lease = std::move(*lease);
      chain.writes_left = kWritesPerHold;
      write(chain);
    });
  }

 private:
  std::shared_ptr<Session> current() {
    std::lock_guard lock(mutex_);
    return session_;
  }

  void renew_session(Chain& chain, const std::shared_ptr<Session>& old) {
    Session::open_async(load_.store, load_.options, [this, &chain, old](Result<Session> opened) {
      {
        std::lock_guard lock(mutex_);
        if (opened && session_ == old) session_ = std::make_shared<Session>(std::move(*opened));
      }
      done(chain);
    });
  }

  void write(Chain& chain) {
    auto body = [lease = *chain.lease](Transaction& txn) {
      lease.fence(txn);
      std::int64_t place = decode_counter(txn.get(log_end(lease.name()))) + 1;
      txn.set(log_end(lease.name()), encode_counter(place));
      txn.set(log_entry(lease.name(), place), lease.token().to_string());
    };
    load_.store.transact_async(body, [this, &chain](Result<void> written) {
      if (written && --chain.writes_left > 0) return write(chain);
      chain.lease->release_async([&chain](Result<void>) { done(chain); });
    });
  }

  static void done(Chain& chain) {
    chain.lease.reset();
    auto ended = std::move(chain.ended);
    ended();
  }

  LeaseLoad load_;
  std::vector<Chain> chains_;
  std::mutex mutex_;
  std::shared_ptr<Session> session_;
};

}  // namespace

std::function<void()> start_lease_load(const LeaseLoad& wanted) {
  auto load = std::make_shared<Load>(wanted);
  auto chains = std::make_shared<Chains>(
      wanted.chains, [load](int chain, std::function<void()> ended) { load->step(chain, std::move(ended)); });
  return [load, chains] { chains->stop(); };
}

LeaseLogs check_lease_logs(Store& store, const std::string& prefix, int leases) {
  LeaseLogs logs;
  for (int i = 0; i < leases; ++i) {
    std::string name = prefix + std::to_string(i), last;
    auto rows = store.read(
        [&](Reader& reader) { return reader.get_range(tuple::extensions(tuple::pack("lease-log", name, "entry"))); });
    if (!rows) {
      logs.problems.push_back(to_string(rows.error()));
      continue;
    }
    for (const Row& row : *rows) {
      ++logs.entries;
      if (row.value < last) logs.problems.push_back(name + ": " + row.value + " stands behind " + last);
      if (row.value != last) ++logs.tokens;
      last = row.value;
    }
    auto end = store.read([&](Reader& reader) { return decode_counter(reader.get(log_end(name))); });
    if (!end || *end != static_cast<std::int64_t>(rows->size()))
      logs.problems.push_back(name + ": the log has a hole or an end of its own");
  }
  return logs;
}

}  // namespace perdure::e2e
