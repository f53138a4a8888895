// A process that appends to partitions and draws numbers in both modes, as fast as it can, until it is killed. It tells
// of each event that was acknowledged, one a line: "!told PARTITION OFFSET WORKSPACE NAME=NUMBER ...", and of each time
// that it took a partition for itself: "!owned TOKEN", "!recovered ENTRIES-READ ENTRIES-BEHIND".
//
//     sequence_worker URL SEED TTL-MS
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <mutex>
#include <random>
#include <sstream>

#include "perdure/sequence.h"
#include "seed_bug_by_name.h"
#include "sequence_check.h"

namespace perdure::e2e {
namespace {

using namespace std::chrono_literals;
using namespace sim::sequencing;

constexpr int kUnderWay = 8;
constexpr int kWorkspaces = 5;
const std::string kAtomic = "atomic";

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::cout << "error " << to_string(result.error()) << std::endl;
    _exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Worker {
 public:
  Worker(const std::string& url, unsigned seed, std::chrono::milliseconds ttl)
      : random_(seed), ttl_(ttl), store_(must(Store::open(url))), sequences_(must(Sequences::open(store_))) {}

  [[noreturn]] void run() {
    for (int i = 0; i < kUnderWay; ++i) append();
    Session session = must(Session::open(store_, {.ttl = ttl_, .renew = ttl_ / 4}));
    {
      // Appends tell of themselves already.
      std::lock_guard lock(mutex_);
      std::cout << "ok working" << std::endl;
    }
    for (;;) {
      hand_out(session, 1 + static_cast<int>(random_() % 60));
      for (auto i = random_() % 20; i > 0; --i) {
        Append event = draw_event(random_);
        tell(kPartition, event, must(sequences_.append(kPartition, event)));
      }
    }
  }

 private:
  static Append draw_event(std::mt19937& random) {
    Append event{.type = kType, .workspace = random() % kWorkspaces};
    for (auto i = random() % 4; i > 0; --i)
      event.next.push_back(std::next(kFloors.begin(), static_cast<long>(random() % kFloors.size()))->first);
    return event;
  }

  void tell(const std::string& partition, const Append& event, const Appended& appended) {
    std::ostringstream line;
    line << "!told " << partition << " " << appended.offset << " " << event.workspace;
    for (std::size_t i = 0; i < event.next.size(); ++i) line << " " << event.next[i] << "=" << appended.numbers[i];
    line << "\n";
    std::lock_guard lock(mutex_);
    std::cout << line.str() << std::flush;
  }

  /// Event and numbers in one transaction, on threads of the store.
  void append() {
    Append event;
    {
      std::lock_guard lock(mutex_);
      event = draw_event(others_);
    }
    sequences_.append_async(kAtomic, event, [this, event](Result<Appended> appended) {
      tell(kAtomic, event, must(std::move(appended)));
      append();
    });
  }

  /// Numbers from memory, written behind.
  void hand_out(Session& session, int events) {
    OwnedPartition owner = must(sequences_.own(session, kPartition, 20s));
    PartitionInfo before = must(sequences_.get(kPartition));
    SequencerParams params = owner.params();
    params.cached_max = random_() % 20;
    params.unflushed_max = random_() % 10;
    params.flush_timeout = std::chrono::milliseconds(random_() % 20);
    Sequencer sequencer = must(Sequencer::open(store_, params, owner.storage()));
    if (!sequencer.wait_ready(20s)) must<void>(fail(ErrorCode::kDeadline, "the sequencer is not ready"));
    {
      std::lock_guard lock(mutex_);
      std::cout << "!owned " << owner.lease().token().to_string() << "\n!recovered " << sequencer.status().scanned
                << " " << before.offset - before.flushed_offset << std::endl;
    }
    for (int i = 0; i < events; ++i) one_event(owner, sequencer);
    must(sequencer.close());
    must(owner.release());
  }

  void one_event(const OwnedPartition& owner, Sequencer& sequencer) {
    Append event = draw_event(random_);
    WorkspaceKind kind = must(owner.kind(kType));
    auto offset = sequencer.start(kind, WorkspaceId{event.workspace});
    for (; !offset; offset = sequencer.start(kind, WorkspaceId{event.workspace}))
      if (!sequencer.wait_ready(20s)) must(std::move(offset));
    LogWrite entry{kind, WorkspaceId{event.workspace}, {}, {}, payload_of(owner.lease().token())};
    Appended appended{*offset, {}};
    for (const std::string& name : event.next) {
      appended.numbers.push_back(must(sequencer.next(must(owner.seq(name)))));
      entry.numbers.emplace_back(must(owner.seq(name)), appended.numbers.back());
    }
    if (random_() % 10 == 0) return sequencer.actualize();
    must(store_.transact([&](Transaction& txn) { owner.write(txn, *offset, entry); }));
    tell(kPartition, event, appended);
    sequencer.flush();
  }

  std::mt19937 random_;
  const Duration ttl_;
  Store store_;
  Sequences sequences_;
  std::mutex mutex_;
  std::mt19937 others_{random_()};
};

}  // namespace
}  // namespace perdure::e2e

int main(int argc, char** argv) {
  // Whoever started this process may be killed as well.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  perdure::e2e::seed_bug_by_name();
  if (argc != 4) return 2;
  perdure::e2e::Worker(argv[1], static_cast<unsigned>(std::stoul(argv[2])),
                       std::chrono::milliseconds(std::stol(argv[3])))
      .run();
}
