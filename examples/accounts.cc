// Two accounts, a transfer that happens wholly or not at all, and a watch that sees it.
#include <cstdio>

#include "perdure/store.h"

using namespace perdure;

int main(int argc, char** argv) {
  auto store = Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data");
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;

  auto opened = store->transact([](Transaction& txn) {
    txn.set("account/ada", encode_counter(100));
    txn.set("account/bob", encode_counter(0));
    return txn.watch("account/bob");
  });
  if (!opened) return std::fprintf(stderr, "%s\n", to_string(opened.error()).c_str()), 1;

  auto left = store->transact([](Transaction& txn) -> Result<std::int64_t> {
    auto balance = decode_counter(txn.get("account/ada"));
    if (balance < 30) return fail(ErrorCode::kInvalidArgument, "ada has not enough money");
    txn.set("account/ada", encode_counter(balance - 30));
    txn.add("account/bob", 30);
    return balance - 30;
  });
  if (left && opened->wait())
    std::printf("bob's account has changed; ada has %lld left\n", static_cast<long long>(*left));
}
