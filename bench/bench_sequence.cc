// Sequences: numbers from memory, events with their numbers in one transaction, and how fast a log is read again.
#include <filesystem>

#include "callers.h"
#include "perdure/sequence.h"
#include "perdure/session.h"
#include "perdure/store.h"

namespace perdure::bench {
namespace {

using namespace std::chrono_literals;

const std::string kPartition = "bench";
constexpr std::uint64_t kWorkspaces = 100;
constexpr std::size_t kPayloadBytes = 100;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

struct SequenceNode {
  explicit SequenceNode(const std::string& url)
      : store(must(Store::open(url))), sequences(must(Sequences::open(store))) {
    must(sequences.set(kPartition, {.types = {{"shop", {{"invoice", 1}}}}}));
  }
  Store store;
  Sequences sequences;
};

/// A partition with its owner and its sequencer.
struct OwnerNode : SequenceNode {
  explicit OwnerNode(const std::string& url)
      : SequenceNode(url),
        session(must(Session::open(store))),
        owner(must(sequences.own(session, kPartition, 10s))),
        sequencer(must(Sequencer::open(store, owner.params(), owner.storage()))),
        shop(must(owner.kind("shop"))),
        invoice(must(owner.seq("invoice"))) {
    if (!sequencer.wait_ready(60s)) give_up("the sequencer does not become ready");
  }
  Session session;
  OwnedPartition owner;
  Sequencer sequencer;
  WorkspaceKind shop;
  SeqId invoice;
};

/// Counts whole rounds of `round`, for as long as the settings say.
template <class F>
Sample repeat(const Settings& settings, std::uint64_t per_round, F round) {
  Sample sample;
  auto cpu = cpu_time();
  auto start = Clock::now();
  for (; Clock::now() - start < settings.duration; sample.operations += per_round)
    for (std::uint64_t i = 0; i < per_round; ++i) round();
  sample.elapsed = Clock::now() - start;
  sample.cpu = cpu_time() - cpu;
  return sample;
}

/// One event that draws on and on.
void bench_next(const Settings& settings) {
  if (!settings.wants("next/1")) return;
  OwnerNode node(fresh_url(settings));
  (void)must(node.sequencer.start(node.shop, WorkspaceId{1}));
  report(settings, "next/1", [&] {
    return repeat(settings, 1'000, [&] {
      if (!node.sequencer.next(node.invoice)) give_up("no number");
    });
  });
  node.sequencer.actualize();
}

/// start, next, flush, stored behind; without the log, which is the application's.
void bench_cycles(const Settings& settings) {
  if (!settings.wants("cycle/1")) return;
  OwnerNode node(fresh_url(settings));
  report(settings, "cycle/1", [&] {
    std::uint64_t workspace = 0;
    return repeat(settings, 100, [&] {
      WorkspaceId id{++workspace % kWorkspaces};
      auto offset = node.sequencer.start(node.shop, id);
      while (!offset) {
        if (!node.sequencer.wait_ready(10s)) give_up(to_string(offset.error()));
        offset = node.sequencer.start(node.shop, id);
      }
      if (!node.sequencer.next(node.invoice)) give_up("no number");
      node.sequencer.flush();
    });
  });
}

/// From the sequence of one workspace, or of a hundred.
enum class Draw { kNumber, kSpread, kNothing };

void bench_append(const Settings& settings, const std::string& name, int callers, std::size_t batch, Draw draw) {
  if (!settings.wants(name)) return;
  SequenceNode node(fresh_url(settings));
  report(settings, name, [&] {
    LogOffset before = must(node.sequences.get(kPartition)).offset;
    auto cpu = cpu_time();
    Sample sample =
        Callers([&](int caller, std::function<void()> done) {
          std::vector<Append> events(batch);
          for (std::size_t i = 0; i < batch; ++i) {
            events[i] = {
                .type = "shop",
                .workspace = (static_cast<std::uint64_t>(caller) + (draw == Draw::kSpread ? i : 0)) % kWorkspaces,
                .next = {},
                .payload = std::string(kPayloadBytes, 'p')};
            if (draw != Draw::kNothing) events[i].next = {"invoice"};
          }
          node.sequences.append_many_async(kPartition, std::move(events),
                                           [done = std::move(done)](Result<std::vector<Appended>> appended) {
                                             must(std::move(appended));
                                             done();
                                           });
        }).run(callers, settings.duration);
    sample.cpu = cpu_time() - cpu;
    sample.operations *= batch;
    if (must(node.sequences.get(kPartition)).offset != before + sample.operations) give_up("events are missing");
    return sample;
  });
}

/// A log that its last owner has left without storing a number, read by the next.
void bench_recovery(const Settings& settings) {
  if (!settings.wants("recovery")) return;
  constexpr LogOffset kAtOnce = 5'000;
  const LogOffset entries = settings.events;
  std::string url = fresh_url(settings);
  {
    OwnerNode node(url);
    for (LogOffset first = 1; first <= entries; first += kAtOnce)
      must(node.store.transact([&](Transaction& txn) {
        for (LogOffset offset = first; offset < std::min(first + kAtOnce, entries + 1); ++offset)
          node.owner.write(txn, offset,
                           {node.shop,
                            WorkspaceId{offset % kWorkspaces},
                            {{node.invoice, (offset - 1) / kWorkspaces + 1}},
                            {},
                            std::string(kPayloadBytes, 'p')});
      }));
    must(node.sequencer.close());
    must(node.owner.release());
  }
  report(settings, "recovery/" + std::to_string(entries), [&] {
    auto start = Clock::now();
    OwnerNode node(url);
    Sample sample{.operations = node.sequencer.status().scanned, .elapsed = Clock::now() - start, .extra = ""};
    if (sample.operations != entries) give_up("another number of entries was read");
    return sample;
  });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  bench_next(settings);
  bench_cycles(settings);
  bench_append(settings, "append/64", 64, 1, Draw::kNumber);
  bench_append(settings, "append/100x16", 16, 100, Draw::kNumber);
  bench_append(settings, "append/100x16/spread", 16, 100, Draw::kSpread);
  bench_append(settings, "plain/100x16", 16, 100, Draw::kNothing);
  bench_recovery(settings);
  std::filesystem::remove_all(settings.directory + "/store");
}
