// The daemon: what it is made of, and the order in which that is opened and closed.
#include "http/serve.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "http/api.h"
#include "http/daemon.h"
#include "http/hook_spools.h"
#include "http/io.h"
#include "http/log.h"
#include "http/server.h"
#include "http/spool_taker.h"
#include "runtime/latch.h"
#include "store/store_access.h"
#include "store/store_url.h"

namespace perdure {
namespace {

using namespace http;

constexpr Duration kChangesKept = std::chrono::hours(1);
/// For requests and handlers that are under way when the daemon is told to stop.
constexpr Duration kGrace = std::chrono::seconds(20);
constexpr unsigned kIoThreads = 2;
/// Requests at once to one target: as many as the concurrency of a worker may be.
constexpr std::size_t kPushesMax = 1'000;

/// Signals that end the daemon, taken by the one thread that waits for them. Made before any other thread.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  int wait() const {
    int signal = 0;
    while (sigwait(&set_, &signal) != 0) {
    }
    return signal;
  }

 private:
  sigset_t set_;
};

void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Where the store is.
struct Place {
  std::string url;
  std::string directory;
};

Place find_place(const std::string& store) {
  constexpr std::string_view kLmdb = "lmdb:";
  if (!store.starts_with(kLmdb)) return {without_password(store), ""};
  std::string directory = store.substr(kLmdb.size());
  // The parts of the path that are there: what is to be made stays as it was written.
  if (char* whole = ::realpath(directory.c_str(), nullptr)) {
    directory = whole;
    std::free(whole);
  } else if (char here[PATH_MAX]; !directory.starts_with("/") && ::getcwd(here, sizeof here)) {
    directory = std::string(here) + "/" + (directory.starts_with("./") ? directory.substr(2) : directory);
  }
  return {std::string(kLmdb) + directory, directory};
}

/// The first daemon of a directory has the plain name, others their number behind it; clients try all of them.
std::string socket_path(const ServeOptions& options, const Place& place) {
  if (options.socket == "none") return "";
  if (!options.socket.empty()) return options.socket;
  return place.directory.empty() ? "" : place.directory + "/perdure.sock";
}

Result<std::unique_ptr<Server>> start_server(Io& io, const ServeOptions& options, const Place& place, Api& api) {
  ServerOptions server{
      .listen = options.listen == "none" ? "" : options.listen,
      .socket = socket_path(options, place),
      .too_large = [&api](auto method, auto target) { return api.too_large(method, target); },
  };
  auto handler = [&api](std::shared_ptr<Exchange> exchange) { api.handle(std::move(exchange)); };
  auto started = Server::start(io, server, handler);
  bool other_daemon = !started && options.socket.empty() && !server.socket.empty() &&
                      started.error().message.find(server.socket) != std::string::npos;
  if (!other_daemon) return started;
  server.socket = place.directory + "/perdure-" + std::to_string(::getpid()) + ".sock";
  return Server::start(io, server, handler);
}

/// Only this machine is served, as long as there is nothing by which to tell others apart.
Result<void> check_listen(const std::string& listen) {
  bool local = listen == "none" || listen.starts_with("127.") || listen.starts_with("localhost:") ||
               listen.starts_with("[::1]:");
  if (local) return {};
  return fail(ErrorCode::kInvalidArgument, "--listen " + listen +
                                               " is not an address of this machine alone, such as 127.0.0.1:7420; "
                                               "others are refused as long as there are no tokens and no TLS");
}

Result<AllowedTargets> allowed_targets(const ServeOptions& options) {
  AllowedTargets allowed;
  for (const std::string& url : options.allow_urls)
    if (auto good = allowed.allow(url); !good) return std::unexpected(std::move(good.error()));
  return allowed;
}

Result<transcript::TranscriptsOptions> transcript_options(const ServeOptions& options) {
  std::string seconds = options.debounce_seconds;
  // The name that others know it by.
  if (const char* given = std::getenv("DEBOUNCE_SECONDS"); given && seconds.empty()) seconds = given;
  auto marker = marker_preset(seconds);
  if (!marker) return std::unexpected(std::move(marker.error()));
  transcript::TranscriptsOptions made{
      .roots = options.transcript_roots, .marker = std::move(*marker), .set_marker = !seconds.empty()};
  const char* home = std::getenv("HOME");
  if (made.roots.empty() && home && *home) made.roots.emplace_back(home);
  return made;
}

/// Where hooks that could not reach this daemon have left what they had. What a store in memory took would be lost.
std::vector<std::string> spools(const ServeOptions& options, const Place& place, const Server& server) {
  if (!options.hook_spool.empty()) return {options.hook_spool};
  if (place.url.starts_with("memory:")) return {};
  const char* home = std::getenv("HOME");
  return spools_of(
      {.directory = place.directory, .socket = server.socket(), .port = server.port(), .home = home ? home : ""});
}

LogLevel log_level(const std::string& name) {
  if (name == "error") return LogLevel::kError;
  return name == "warning" ? LogLevel::kWarning : LogLevel::kInfo;
}

void say_ready(const ServeOptions& options, const Place& place, Node& node, const Server& server) {
  std::string where;
  if (server.port() != 0) {
    std::string host = options.listen.substr(0, options.listen.rfind(':'));
    where = "http://" + host + ":" + std::to_string(server.port());
  }
  if (const std::string& socket = server.socket(); !socket.empty())
    where += (where.empty() ? "" : " and ") + ("unix://" + socket);
  std::printf("perdure %s\nstore %s%s\nlistening on %s\n", PERDURE_VERSION, place.url.c_str(),
              StoreAccess::impl(node.store()).engine().was_new() ? " (new store)" : "", where.c_str());
  std::fflush(stdout);
}

Result<void> run(const ServeOptions& options, const LogSink& sink, const StopSignals& signals) {
  SteadyTime began = steady_now();
  if (auto good = check_listen(options.listen); !good) return good;
  auto allowed = allowed_targets(options);
  if (!allowed) return std::unexpected(std::move(allowed.error()));
  Place place = find_place(options.store);
  auto transcripts = transcript_options(options);
  if (!transcripts) return std::unexpected(std::move(transcripts.error()));
  auto metrics = std::make_shared<Metrics>();
  auto node = Node::open({
      .store = options.store,
      .store_options = {.on_fatal = [sink](const Error& error) { log(sink, LogLevel::kError, error.message); },
                        .log = sink,
                        .metrics = metrics,
                        .changes_kept = kChangesKept},
      .dispatch = options.held ? Dispatch::kHeld : Dispatch::kOn,
      .time = options.test_clock ? StoreTime::kStandsStill : StoreTime::kPasses,
      .transcripts = std::move(*transcripts),
  });
  if (!node) return std::unexpected(std::move(node.error()));
  if (options.prepare)
    if (auto good = options.prepare(**node); !good) return good;
  auto feed = Changes::open((*node)->store());
  if (!feed) return std::unexpected(std::move(feed.error()));

  // What uses something is made after it, and closed before it.
  Io io(kIoThreads);
  auto client = std::make_shared<Client>(
      io, ClientOptions{.allowed = std::move(*allowed), .connections_max = kPushesMax, .waiting_max = 4 * kPushesMax});
  Pushers pushers(**node, client);
  RemoteKinds kinds(**node, client);
  Daemon daemon{**node, pushers, kinds, *feed, *metrics, place.url, PERDURE_VERSION, began};
  Api api(**node, all_routes(daemon), {.on_served = [&metrics](const Served& served) { metrics->served(served); }});
  auto server = start_server(io, options, place, api);
  Result<void> result;
  bool spools_ended = true;
  if (server) {
    say_ready(options, place, **node, **server);
    SpoolTaker spool_taker(**node, {.paths = spools(options, place, **server)});
    spool_taker.start();
    int signal = signals.wait();
    log(sink, LogLevel::kInfo, "stopping", {{"signal", signal == SIGINT ? "INT" : "TERM"}});
    (*server)->begin_stop();
    api.stop_waiting();
    if (!(*server)->stop(kGrace)) log(sink, LogLevel::kWarning, "some requests were cut off");
    spools_ended = spool_taker.stop();
    if (!spools_ended) log(sink, LogLevel::kWarning, "the file system of a spool does not answer");
  } else {
    result = std::unexpected(std::move(server.error()));
  }
  pushers.stop();
  kinds.stop();
  auto closed = (*node)->close(kGrace);
  if (!closed) log(sink, LogLevel::kWarning, closed.error().message);
  if (!closed || !spools_ended) {
    // Something still runs, and would come back to what is taken down below. All that is acknowledged is durable.
    std::_Exit(result ? 0 : 1);
  }
  client->close();
  // Connections that were cut off must not come to the API any more, which goes before them.
  io.stop();
  return result;
}

}  // namespace

int serve(const ServeOptions& options) {
  allow_many_connections();
  // gRPC, which an engine may use, writes lines of its own to standard error, unless told otherwise.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  // Whatever is made belongs to this user alone.
  ::umask(0077);
  StopSignals signals;
  LogSink sink = log_to_stderr(options.log_format, log_level(options.log_level));
  auto done = run(options, sink, signals);
  if (done) return 0;
  std::fprintf(stderr, "perdure: %s\n", done.error().message.c_str());
  return info(done.error().code).exit_code;
}

}  // namespace perdure
