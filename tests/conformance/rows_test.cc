// Single rows.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

using namespace std::string_literals;

TEST_P(Conformance, AbsentKeyReadsAsNothing) {
  EXPECT_EQ(get("a"), std::nullopt);
}

TEST_P(Conformance, WhatWasSetIsReadByLaterTransactions) {
  set("a", "1");
  set("b", "2");
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "2");
}

TEST_P(Conformance, SettingAgainReplacesTheValue) {
  set("a", "a long first value");
  set("a", "x");
  EXPECT_EQ(get("a"), "x");
  EXPECT_EQ(contents(), "a=x");
}

TEST_P(Conformance, ClearedKeyReadsAsNothing) {
  set("a", "1");
  set("b", "2");
  clear("a");
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_EQ(get("b"), "2");
}

TEST_P(Conformance, ClearingAnAbsentKeyChangesNothing) {
  set("b", "2");
  clear("a");
  EXPECT_EQ(contents(), "b=2");
}

TEST_P(Conformance, EmptyValueIsNotAbsence) {
  set("a", "");
  EXPECT_EQ(get("a"), "");
  EXPECT_EQ(contents(), "a=");
}

TEST_P(Conformance, KeysAndValuesAreAnyBytesInByteOrder) {
  const std::vector<Bytes> keys = {"\0"s,      "\0\0"s,  "\0a"s,  "\x01"s,        "a\0"s,
                                   "a\0\xff"s, "a\xff"s, "\x80"s, "\xfe\xff\xff"s};
  must(store().transact([&](Transaction& txn) {
    for (std::size_t i = keys.size(); i-- > 0;) txn.set(keys[i], keys[i] + "\0value\xff"s);
  }));
  auto rows = range({});
  EXPECT_EQ(keys_of(rows), keys);
  for (const Row& row : rows) EXPECT_EQ(row.value, row.key + "\0value\xff"s);
}

TEST_P(Conformance, AllWritesOfATransactionTakeEffectTogether) {
  set("c", "old");
  must(store().transact([](Transaction& txn) {
    txn.set("a", "1");
    txn.set("b", "2");
    txn.clear("c");
  }));
  EXPECT_EQ(contents(), "a=1 b=2");
}

TEST_P(Conformance, GetManyAnswersInTheOrderOfItsKeys) {
  set("a", "1");
  set("c", "3");
  const std::vector<Bytes> keys = {"c", "b", "a", "c"};
  auto values = must(store().read([&](Reader& reader) { return reader.get_many(keys); }));
  EXPECT_EQ(values, (std::vector<std::optional<Bytes>>{"3", std::nullopt, "1", "3"}));
  EXPECT_TRUE(must(store().read([](Reader& reader) { return reader.get_many({}); })).empty());
}

TEST_P(Conformance, ValuesOfEverySizeComeBackWhole) {
  for (std::size_t size : {1u, 7u, 8u, 100u, 1000u, 2000u, 4080u, 4096u, 5000u, 70'000u, 1u << 20}) {
    Bytes value(size, 'x');
    value.back() = 'y';
    set("a", value);
    ASSERT_EQ(get("a"), value) << size;
  }
}

TEST_P(Conformance, VersionsGrowWithEachCommit) {
  Version last;
  for (int i = 0; i < 20; ++i) {
    Receipt receipt;
    must(store().transact([&](Transaction& txn) { txn.set("a", std::to_string(i)); }, {}, &receipt));
    EXPECT_GT(receipt.version, last);
    last = receipt.version;
  }
}

TEST_P(Conformance, TransactionThatOnlyClearsHasAVersionOfItsOwn) {
  auto commit = [&](const BodyFn& body) {
    Receipt receipt;
    must(store().transact([&](Transaction& txn) { body(txn); }, {}, &receipt));
    return receipt.version;
  };
  Version set = commit([](Transaction& txn) { txn.set("a", "1"); });
  Version cleared = commit([](Transaction& txn) { txn.clear("a"); });
  Version range_cleared = commit([](Transaction& txn) { txn.clear_range({}); });
  Version set_again = commit([](Transaction& txn) { txn.set("a", "2"); });
  EXPECT_LT(set, cleared);
  EXPECT_LT(cleared, range_cleared);
  EXPECT_LT(range_cleared, set_again);
}

TEST_P(Conformance, RowsCarryTheVersionOfTheCommitThatWroteThem) {
  Receipt first, second;
  must(store().transact(
      [](Transaction& txn) {
        txn.set("a", "1");
        txn.set("b", "1");
      },
      {}, &first));
  must(store().transact([](Transaction& txn) { txn.set("b", "2"); }, {}, &second));
  auto rows = range({});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].version, first.version);
  EXPECT_EQ(rows[1].version, second.version);
}

TEST_P(Conformance, TransactionThatWroteNothingHasNoVersion) {
  set("a", "1");
  Receipt receipt{Version{99}};
  must(store().transact([](Transaction& txn) { return txn.get("a"); }, {}, &receipt));
  EXPECT_EQ(receipt.version, Version{});
}

TEST_P(Conformance, VerifyFindsAWholeStoreWhole) {
  for (int i = 0; i < 50; ++i) set(numbered("k", i), "value");
  auto report = must(store().verify());
  EXPECT_TRUE(report.ok());
  EXPECT_GE(report.rows, 50u);
}

}  // namespace
}  // namespace perdure::conformance
