// Five processes and one key, over NATS: one of them leads. It is killed while there is something to do, another takes
// over, and the work is done once. Starts a nats-server of its own; see docs/guides/leadership.md.
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "perdure/nats.h"
#include "perdure/tick.h"

using namespace perdure;
using namespace std::chrono_literals;

namespace {

const std::string kKey = "shop.monthly";

template <class T>
T must(Result<T> result) {
  if (!result) std::fprintf(stderr, "%s\n", to_string(result.error()).c_str()), std::exit(1);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A process that ends with this one.
template <class F>
pid_t start(F main) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  main();
  _exit(1);
}

int free_port() {
  sockaddr_in any = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof any;
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  (void)bind(socket, reinterpret_cast<sockaddr*>(&any), size);
  (void)getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size);
  return close(socket), ntohs(any.sin_port);
}

std::shared_ptr<Leadership> join(Store& store, const std::string& url, const std::string& name) {
  for (;;)  // The server may still be starting.
    if (auto joined = nats_leadership(store, {.url = url, .max_age = 1s, .instance_id = name})) return *joined;
}

/// Follows the key for as long as it lives.
void follow(const std::string& store_url, const std::string& nats_url, const std::string& name) {
  Store store = must(Store::open(store_url));
  // [handlers]
  TickHandlers handlers;
  handlers.pending = [&](const std::string&) -> Result<Pending> {  // Only ever asked by the leader.
    auto orders = store.read([](Reader& reader) { return decode_counter(reader.get("orders")); });
    return *orders > 0 ? Pending::kWork : Pending::kNothing;
  };
  handlers.run = [&](TickRun& run) -> Result<void> {
    run.complete([](Transaction& txn) -> Result<void> {  // Commits once, and only if no later run has begun.
      txn.clear("orders");
      txn.add("invoices", 1);
      return {};
    });
    return {};
  };
  Tick tick = must(Tick::open(store, join(store, nats_url, name), {.window = 300ms}, handlers));
  must(tick.follow(kKey));
  // [handlers]
  pause();
}

/// Who owns the key, once somebody does that is not `before`.
std::string leader(Leadership& leadership, const std::string& before = "") {
  for (;; std::this_thread::sleep_for(20ms)) {
    auto promise = std::make_shared<std::promise<Result<std::optional<LeadershipView>>>>();
    leadership.look(kKey, [promise](auto seen) { promise->set_value(std::move(seen)); });
    auto seen = promise->get_future().get();
    if (seen && *seen && (*seen)->owner != before) return (*seen)->owner;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string store_url = argc > 1 ? argv[1] : "lmdb:./perdure-data", port = std::to_string(free_port());
  std::string nats_url = "nats://127.0.0.1:" + port;
  char files[] = "/tmp/perdure-nats-XXXXXX";
  const char* directory = mkdtemp(files);
  pid_t server = start([&] {
    setenv("PATH", (std::string(getenv("PATH")) + ":/usr/sbin").c_str(), 1);
    execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", port.c_str(), "-js", "-sd", directory, "-l",
           "/dev/null", nullptr);
  });
  std::vector<pid_t> processes;
  for (int i = 0; i < 5; ++i) processes.push_back(start([&] { follow(store_url, nats_url, std::to_string(i)); }));

  {
    Store store = must(Store::open(store_url));
    must(store.transact([](Transaction& txn) { txn.clear("orders"), txn.clear("invoices"); }));
    auto leadership = join(store, nats_url, "onlooker");
    std::string first = leader(*leadership);
    std::printf("5 processes follow %s, and one of them leads\n", kKey.c_str());

    must(store.transact([](Transaction& txn) { txn.add("orders", 3); }));
    kill(processes[std::stoul(first)], SIGKILL);
    std::printf("it is killed, with 3 orders pending\n");
    leader(*leadership, first);
    std::printf("another leads\n");
    auto count = [&](const char* what) {
      return must(store.read([&](Reader& reader) { return decode_counter(reader.get(what)); }));
    };
    while (count("orders") > 0) std::this_thread::sleep_for(20ms);
    std::printf("they were served by %lld run\n", static_cast<long long>(count("invoices")));
  }
  processes.push_back(server);
  for (pid_t process : processes) kill(process, SIGKILL), waitpid(process, nullptr, 0);
  return std::system(("rm -r " + std::string(directory)).c_str());
}
