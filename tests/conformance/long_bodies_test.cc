// Bodies that take their time: they hold no snapshot that costs the engine space, and still read one consistent state.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

std::uintmax_t bytes_on_disk(const std::filesystem::path& directory) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

/// What would keep thousands of old pages alive if a snapshot were held: commits that each rewrite several rows.
void commit_often(Store& store, int commits) {
  const Bytes value(3000, 'x');
  for (int i = 0; i < commits; ++i)
    must(store.transact([&](Transaction& txn) {
      for (int row = 0; row < 3; ++row) txn.set(numbered("churn", (i * 3 + row) % 30), value);
    }));
}

TEST_P(Conformance, BodyThatWaitsHoldsNoSpaceAndGoesOnIfWhatItReadIsUnchanged) {
  set("a", "1");
  set("b", "1");
  commit_often(store(), 100);  // The file reaches the size that this takes in any case.
  std::uintmax_t before = bytes_on_disk(directory());
  int runs = 0;
  must(store().transact(
      [&](Transaction& txn) {
        ++runs;
        EXPECT_EQ(txn.get("a"), "1");
        EXPECT_EQ(txn.get_range({"a", "c"}).size(), 2u);
        meanwhile([&] { commit_often(store(), 1500); });
        EXPECT_EQ(txn.get("b"), "1");
        EXPECT_EQ(show(txn.get_range({"a", "c"})), "a=1 b=1");
        txn.set("done", "1");
      },
      {.timeout = kSoon}));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(get("done"), "1");
  EXPECT_LT(bytes_on_disk(directory()), before + (4u << 20));
}

TEST_P(Conformance, BodyThatWaitsIsRerunIfWhatItReadHasChanged) {
  set("a", "1");
  set("b", "1");
  int runs = 0;
  Bytes seen;
  must(store().transact(
      [&](Transaction& txn) {
        Bytes a = *txn.get("a");
        if (++runs == 1)
          meanwhile([&] {
            must(store().transact([](Transaction& theirs) {
              theirs.set("a", "2");
              theirs.set("b", "2");
            }));
            commit_often(store(), 100);
          });
        Bytes b = *txn.get("b");
        EXPECT_EQ(a, b) << "never two moments in one body";
        seen = a + b;
        txn.set("done", seen);
      },
      {.timeout = kSoon}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(get("done"), "22");
}

TEST_P(Conformance, LongReadOnlyBodyReadsOneMoment) {
  for (int i = 0; i < 20; ++i) set(numbered("k", i), "0");
  std::atomic<bool> stop = false;
  std::atomic<int> commits = 0;
  std::thread writer([&] {
    for (int i = 1; !stop; ++i) {
      must(store().transact([&](Transaction& txn) {
        for (int k = 0; k < 20; ++k) txn.set(numbered("k", k), std::to_string(i));
      }));
      ++commits;
    }
  });
  for (int round = 0; round < 20; ++round) {
    auto values = must(store().read(
        [&](Reader& reader) {
          std::vector<Bytes> all;
          for (int k = 0; k < 20; ++k) {
            all.push_back(reader.get(numbered("k", k)).value_or("absent"));
            if (k == 0)  // Half of the time others get ahead.
              for (int until = commits + round % 2; commits < until;) std::this_thread::yield();
          }
          return all;
        },
        {.timeout = kSoon}));
    for (const Bytes& value : values) EXPECT_EQ(value, values[0]);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace perdure::conformance
