#include "perdure/store.h"

#include "runtime/manual_scheduler.h"
#include "runtime/thread_pool.h"
#include "store/lmdb/lmdb_engine.h"
#include "store/memory/memory_engine.h"
#include "store/remote/remote_engine.h"
#include "store/remote/server_library.h"
#include "store/report.h"
#include "store/store_impl.h"
#include "store/store_url.h"

namespace perdure {
namespace {

Result<std::unique_ptr<Engine>> make_engine(std::string_view url, Scheduler& scheduler, const StoreOptions& options) {
  if (url == "memory:") return std::make_unique<memory::MemoryEngine>(scheduler);
  constexpr std::string_view kLmdb = "lmdb:";
  if (url.starts_with(kLmdb)) {
    std::string directory(url.substr(kLmdb.size()));
    if (directory.empty())
      return fail(ErrorCode::kInvalidArgument, "the store URL lmdb: names no directory; write lmdb:DIR");
    return lmdb::open_engine(directory, scheduler, options);
  }
  for (auto [scheme, kind] :
       {std::pair("postgres://", "postgres"), {"postgresql://", "postgres"}, {"etcd://", "etcd"}}) {
    if (!url.starts_with(scheme)) continue;
    auto server = remote::open_server(kind, {.url = std::string(url), .log = options.log});
    if (!server) return std::unexpected(std::move(server.error()));
    return remote::RemoteEngine::open(std::move(*server), scheduler, options);
  }
  return fail(ErrorCode::kInvalidArgument,
              "'" + printable(url.substr(0, url.find("://"))) +
                  "' is not a store that perdure knows; use lmdb:DIR, memory:, postgres://… or etcd://…");
}

}  // namespace

Result<Store> Store::open(std::string_view url, StoreOptions options) {
  std::unique_ptr<Scheduler> owned;
  if (!options.executor) {
    unsigned threads = options.threads > 0 ? options.threads : std::max(2u, ThreadPool::cores());
    owned = std::make_unique<ThreadPool>("perdure", threads);
  }
  Scheduler& scheduler = owned ? *owned : ManualExecutorAccess::scheduler(*options.executor);
  auto engine = make_engine(url, scheduler, options);
  if (!engine) return std::unexpected(std::move(engine.error()));
  log(options, LogLevel::kInfo, "store", "the store is open", {{"url", without_password(url)}});
  return Store(StoreImpl::shared(
      std::make_unique<StoreImpl>(std::move(*engine), scheduler, std::move(owned), std::move(options))));
}

Result<Store> Store::on_engine(std::unique_ptr<Engine> engine, Scheduler& scheduler, StoreOptions options) {
  return Store(
      StoreImpl::shared(std::make_unique<StoreImpl>(std::move(engine), scheduler, nullptr, std::move(options))));
}

Result<Receipt> Store::run(ErasedBody body, const TransactOptions& options) {
  return impl_->run(std::move(body), options);
}

void Store::run_async(ErasedBody body, std::move_only_function<void(Result<Receipt>)> done,
                      const TransactOptions& options) {
  impl_->run_async(std::move(body), std::move(done), options);
}

Result<std::uint64_t> Store::clear_in_batches(const KeyRange& range) {
  constexpr std::size_t kRows = 1000;
  std::uint64_t cleared = 0;
  for (;;) {
    auto rows = transact(
        [&](Transaction& txn) {
          auto found = txn.snapshot().get_range(range, {.limit = kRows});
          for (const Row& row : found) txn.clear(row.key);
          return found.size();
        },
        {.reserve = Reserve::kMayUse});
    if (!rows) return std::unexpected(std::move(rows.error()));
    cleared += *rows;
    if (*rows < kRows) return cleared;
  }
}

Result<VerifyReport> Store::verify(std::function<void(double)> progress) {
  auto use = impl_->use();
  if (!use) return std::unexpected(std::move(use.error()));
  return impl_->engine().verify(progress);
}

Result<void> Store::backup(const std::string& path) {
  auto use = impl_->use();
  if (!use) return std::unexpected(std::move(use.error()));
  return impl_->engine().backup(path);
}

const Limits& Store::limits() const {
  return impl_->limits();
}

Result<void> Store::close(Duration grace) {
  return impl_->close(grace);
}

}  // namespace perdure
