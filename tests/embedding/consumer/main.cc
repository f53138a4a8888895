// An application as somebody else would write it: it sees nothing of perdure but what is installed.
#include <cstdio>

#include "perdure/fatal.h"
#include "perdure/manual_executor.h"
#include "perdure/store.h"
#include "perdure/tuple.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto store = perdure::Store::open(argv[1]);
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;
  perdure::Bytes key = perdure::tuple::pack("answer", 1);
  auto kept = store->transact([&](perdure::Transaction& txn) {
    txn.set(key, perdure::encode_counter(40));
    txn.add(key, 2);
    return perdure::decode_counter(txn.get(key));
  });
  auto closed = store->close();
  if (!kept || !closed || *perdure::abort_message()) return 1;

  auto executor = std::make_shared<perdure::ManualExecutor>();
  perdure::StoreOptions options;
  options.executor = executor;
  store = perdure::Store::open(argv[1], options);
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;
  std::int64_t read = 0;
  store->transact_async([&](perdure::Transaction& txn) { return perdure::decode_counter(txn.get(key)); },
                        [&](perdure::Result<std::int64_t> answer) { read = answer.value_or(-1); });
  while (read == 0) executor->poll();
  std::printf("kept %lld and %lld\n", static_cast<long long>(*kept), static_cast<long long>(read));
}
