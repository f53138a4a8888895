// The daemon over HTTP: what its clients get, beside the disk.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "http/serve.h"
#include "http_load.h"
#include "perdure/actor.h"
#include "perdure/value.h"

namespace perdure::bench {
namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "bench_http: %s\n", what.c_str());
  std::exit(1);
}

/// A kind in C++, served by the daemon.
struct Add {
  using Reply = std::int64_t;
  std::int64_t by = 1;
  PERDURE_DESCRIBE(Add, by)
};
struct Counter {
  static constexpr std::string_view kKind = "counter";
  struct State {
    std::int64_t count = 0;
    PERDURE_DESCRIBE(State, count)
  };
  using Messages = MessageList<Add>;
  Answer<std::int64_t> handle_call(const Add& add, State& state, Turn&) { return state.count += add.by; }
};

/// A daemon in a process of its own, on a new store.
class Daemon {
 public:
  enum class Store { kNew, kKeep };
  explicit Daemon(const Settings& settings, Store store = Store::kNew) {
    std::string directory = settings.directory + "/store";
    if (store == Store::kNew) std::filesystem::remove_all(directory);
    int out[2];
    if (::pipe(out) != 0) give_up("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]);
      ServeOptions options{.store = "lmdb:" + directory, .listen = "127.0.0.1:0", .log_level = "warning"};
      options.prepare = [](Node& node) { return node.actors().serve<Counter>(); };
      std::_Exit(serve(options));
    }
    ::close(out[1]);
    std::FILE* lines = ::fdopen(out[0], "r");
    for (char line[512]; port_ == 0 && std::fgets(line, sizeof line, lines);)
      (void)std::sscanf(line, "listening on http://127.0.0.1:%hu", &port_);
    if (port_ == 0) give_up("the daemon did not start");
  }
  ~Daemon() {
    ::kill(pid_, SIGTERM);
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_ || status != 0) give_up("the daemon did not end well");
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::uint16_t port() const { return port_; }
  std::uint64_t memory_kb() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string word; status >> word;)
      if (std::uint64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes;
    return 0;
  }
  /// Computed so far, in hundredths of a second.
  std::uint64_t cpu_ticks() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    std::uint64_t user = 0, kernel = 0;
    for (int i = 1; i <= 13; ++i) stat >> word;
    stat >> user >> kernel;
    return user + kernel;
  }

 private:
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

void expect(int status, int wanted, const std::string& body) {
  if (status != wanted) give_up("status " + std::to_string(status) + ": " + body);
}

std::string batch_body(int count) {
  std::string body = "[";
  for (int i = 0; i < count; ++i) body += (i ? "," : "") + std::string(R"({"worker":"mail","value":{"n":1}})");
  return body + "]";
}

/// The same request, again and again.
void bench_same(const Settings& settings, const std::string& name, int connections, std::uint64_t at_once, int wanted,
                const std::string& request) {
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Daemon daemon(settings);
    HttpLoad load(daemon.port(), connections);
    Sample sample =
        load.run(settings.duration, {[&](int) { return request; },
                                     [&](int, int status, const std::string& body) { expect(status, wanted, body); }});
    sample.operations *= at_once;
    sample.in_syncs = true;
    return sample;
  });
}

/// Emits from more connections than the daemon takes on at once, of clients that ask again the moment they are refused.
/// What counts is what was taken.
void bench_overload(const Settings& settings, int connections) {
  const std::string name = "overload/" + std::to_string(connections);
  if (!settings.wants(name)) return;
  const std::string request = HttpLoad::post("/v1/default/events", R"({"worker":"mail","value":{"n":1}})");
  report(settings, name, [&] {
    Daemon daemon(settings);
    HttpLoad load(daemon.port(), connections);
    std::uint64_t taken = 0, refused = 0;
    auto answered = [&](int, int status, const std::string& body) {
      if (status != 429) expect(status, 201, body);
      ++(status == 429 ? refused : taken);
    };
    Sample sample = load.run(settings.duration, {[&](int) { return request; }, answered});
    sample.operations = taken;
    sample.extra = ",\"refused\":" + std::to_string(refused);
    return sample;
  });
}

void bench_call(const Settings& settings, const std::string& name, int connections) {
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Daemon daemon(settings);
    HttpLoad load(daemon.port(), connections);
    Sample sample = load.run(settings.duration,
                             {[&](int i) {
                                return HttpLoad::post("/v1/default/actors/counter/c" + std::to_string(i) + "/call",
                                                      R"({"Add":{"by":1}})");
                              },
                              [&](int, int status, const std::string& body) { expect(status, 200, body); }});
    sample.in_syncs = true;
    return sample;
  });
}

/// What was claimed, as the request that settles it.
std::string settle_request(const std::string& body, std::uint64_t& count) {
  auto claimed = Value::from_json(body);
  std::string items;
  for (const Value& each : *claimed->find("items")->as_list()) {
    items += (items.empty() ? "" : ",") + std::string(R"({"id":)") + each.find("id")->to_json() + R"(,"token":)" +
             each.find("token")->to_json() + "}";
    ++count;
  }
  return items.empty() ? "" : HttpLoad::post("/v1/default/workers/mail/settle", R"({"complete":[)" + items + "]}");
}

/// Claims of 100 and their completions, by 16 connections, until the backlog is gone.
void bench_drain(const Settings& settings) {
  const std::string name = "claim+complete/100x16";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Daemon daemon(settings);
    {
      HttpLoad fill(daemon.port(), 16);
      int left = 1'000;
      std::string request = HttpLoad::post("/v1/default/events", batch_body(100));
      fill.run(std::chrono::minutes(5), {[&](int) { return left-- > 0 ? request : std::string(); },
                                         [&](int, int status, const std::string& body) { expect(status, 201, body); }});
    }
    HttpLoad load(daemon.port(), 16);
    std::vector<std::string> settling(16);
    std::vector<bool> dry(16);
    std::uint64_t done = 0;
    auto next = [&](int i) {
      auto at = static_cast<std::size_t>(i);
      if (dry[at]) return std::string();
      if (!settling[at].empty()) return std::exchange(settling[at], {});
      return HttpLoad::post("/v1/default/workers/mail/claim", R"({"max":100,"lock":"5m"})");
    };
    auto answered = [&](int i, int status, const std::string& body) {
      expect(status, 200, body);
      if (body.find(R"("ok")") != std::string::npos) return;
      auto at = static_cast<std::size_t>(i);
      settling[at] = settle_request(body, done);
      dry[at] = settling[at].empty();
    };
    Sample sample = load.run(std::chrono::minutes(5), {next, answered});
    sample.operations = done;
    if (done != 100'000) give_up(std::to_string(done) + " events were completed, and not 100000");
    return sample;
  });
}

void bench_ready(const Settings& settings) {
  const std::string name = "ready";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    {
      Daemon first(settings);
    }
    Sample sample;
    auto start = Clock::now();
    while (Clock::now() - start < settings.duration) {
      auto begun = Clock::now();
      Daemon daemon(settings, Daemon::Store::kKeep);
      sample.latencies.push_back(Clock::now() - begun);
      ++sample.operations;
    }
    sample.elapsed = Clock::now() - start;
    return sample;
  });
}

void bench_idle_polls(const Settings& settings) {
  const std::string name = "idle_polls/1000";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Daemon daemon(settings);
    std::uint64_t before = daemon.memory_kb();
    Sample sample;
    std::vector<std::unique_ptr<HttpLoad>> polls;
    HttpLoad load(daemon.port(), 1'000);
    std::uint64_t during = 0, ticks = 0;
    auto start = Clock::now();
    std::vector<bool> asked(1'000);
    // Looked at from a second process while they wait; then the first of them come back.
    pid_t watcher = ::fork();
    if (watcher == 0) {
      ::sleep(2);
      ticks = daemon.cpu_ticks();
      ::sleep(5);
      during = daemon.memory_kb();
      std::fprintf(stderr, "  1000 idle polls: %lu KB more, %lu ms of CPU in 5 s\n",
                   static_cast<unsigned long>(during - before),
                   static_cast<unsigned long>((daemon.cpu_ticks() - ticks) * 10));
      std::_Exit(during - before < 50'000 ? 0 : 1);
    }
    sample =
        load.run(std::chrono::minutes(1),
                 {[&](int i) {
                    auto at = static_cast<std::size_t>(i);
                    if (asked[at]) return std::string();
                    asked[at] = true;
                    return HttpLoad::post("/v1/default/workers/w" + std::to_string(i) + "/claim", R"({"wait":"9s"})");
                  },
                  [&](int, int status, const std::string& body) { expect(status, 200, body); }});
    int status = 0;
    ::waitpid(watcher, &status, 0);
    if (status != 0) give_up("1000 idle polls cost more than 50 MB");
    sample.elapsed = Clock::now() - start;
    return sample;
  });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  const std::string one = HttpLoad::post("/v1/default/events", R"({"worker":"mail","value":{"n":1}})");
  bench_same(settings, "emit/1", 1, 1, 201, one);
  bench_same(settings, "emit/64", 64, 1, 201, one);
  bench_same(settings, "emit_many/100x16", 16, 100, 201, HttpLoad::post("/v1/default/events", batch_body(100)));
  bench_drain(settings);
  bench_call(settings, "call/64", 64);
  for (int connections : {64, 640, 6'400}) bench_overload(settings, connections);
  bench_ready(settings);
  bench_idle_polls(settings);
  std::filesystem::remove_all(settings.directory + "/store");
}
