// Snapshots that the engine takes back while a body is running, on each engine behind a FaultyEngine.
#include "conformance/faulty_conformance.h"

namespace perdure::conformance {

class RetiredSnapshots : public FaultyConformance {};
INSTANTIATE_TEST_SUITE_P(Engines, RetiredSnapshots, testing::ValuesIn(kEngines),
                         [](const auto& test) { return test.param.name; });

TEST_P(RetiredSnapshots, BodyGoesOnWithANewSnapshotOnlyIfWhatItReadIsUnchanged) {
  set("a", "1");
  set("b", "1");
  // Reads as a transaction and by snapshot(), each when what was read has changed and when something else has.
  for (bool by_snapshot : {false, true})
    for (const char* changed : {"a", "other"})
      for (int taken_back : {1, 4}) {
        int runs = 0;
        must(store().transact([&](Transaction& txn) {
          Reader snapshot = txn.snapshot();
          Reader& reader = by_snapshot ? snapshot : txn;
          auto a = reader.get("a");
          if (++runs == 1) {
            meanwhile([&] {
              must(store().transact([&](Transaction& theirs) {
                Bytes next = *theirs.get("b") + "+";
                theirs.set(changed, next);
                if (changed == Bytes("a")) theirs.set("b", next);
              }));
            });
            script_.retire_next_reads(taken_back);
          }
          EXPECT_EQ(reader.get("b"), a) << "never two moments in one body";
        }));
        EXPECT_EQ(runs, changed == Bytes("a") ? 2 : 1) << by_snapshot << taken_back;
      }
}

TEST_P(RetiredSnapshots, TransactionsGoOnWhenTheirSnapshotsAreTakenBack) {
  script_.retire_one_read_in(4);
  constexpr int kThreads = 4, kEach = 30;
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i)
      must(store().transact(
          [&](Transaction& txn) {
            // Two rows that every transaction keeps equal, read one after the other and as a range.
            std::int64_t a = decode_counter(txn.get("a")), b = decode_counter(txn.get("b"));
            EXPECT_EQ(a, b);
            for (const Row& row : txn.get_range({"a", "c"})) EXPECT_EQ(decode_counter(row.value), a);
            Bytes next = encode_counter(a + 1);
            txn.set("a", next);
            txn.set("b", next);
            txn.set(numbered("writer", thread), next);
            (void)txn.watch("a");
          },
          {.timeout = kSoon}));
  });
  script_.retire_one_read_in(0);
  EXPECT_EQ(counter("a"), kThreads * kEach);
  EXPECT_EQ(counter("b"), kThreads * kEach);
  EXPECT_GT(script_.retired(), 0);
}

TEST_P(RetiredSnapshots, ReadOnlyTransactionsReadOneMomentThoughSnapshotsAreTakenBack) {
  script_.retire_one_read_in(5);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i)
      must(store().transact([&](Transaction& txn) {
        for (int k = 0; k < 5; ++k) txn.set(numbered("k", k), std::to_string(i));
      }));
  });
  for (int round = 0; round < 100; ++round) {
    auto values = must(store().read(
        [](Reader& reader) {
          std::vector<Bytes> all;
          for (int k = 0; k < 5; ++k) all.push_back(reader.get(numbered("k", k)).value_or("absent"));
          for (const Row& row : reader.get_range(prefix_range("k"))) all.push_back(row.value);
          return all;
        },
        {.timeout = kSoon}));
    for (const Bytes& value : values) EXPECT_EQ(value, values[0]);
  }
  stop = true;
  writer.join();
  EXPECT_GT(script_.retired(), 0);
}

}  // namespace perdure::conformance
