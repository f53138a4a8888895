// The HTTP API: from a request to the parts of the node, and back.
//
//     guard -> route -> admission -> JSON -> handler -> answer
//
// Each file api_NAME.cc has the routes of one thing, as functions of what they are given; this one runs them. A handler
// that is a transaction is wrapped with the idempotency key of its request here, so that none has to think of it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "http/admission.h"
#include "http/call.h"
#include "http/router.h"
#include "node/node.h"
#include "runtime/handler_pool.h"
#include "runtime/mutex.h"

namespace perdure::http {

/// What was asked, for metrics: the pattern of the route, the status, and how long it took.
struct Served {
  std::string_view method;
  std::string_view pattern;
  int status;
  Duration took;
};

struct ApiOptions {
  /// Further names of this daemon in Host headers.
  std::vector<std::string> hosts = {};
  AdmissionLimits admission = {};
  std::function<void(const Served&)> on_served = {};
};

class Api {
 public:
  /// `node` outlives it.
  Api(Node& node, std::vector<Route> routes, ApiOptions options = {});
  /// Waits for what still runs on its threads.
  ~Api();

  /// Answers it, sooner or later. Must not be called any more once the node is closed.
  void handle(std::shared_ptr<Exchange> exchange);
  /// What is answered to a body that is too large to be read, if not a problem.
  std::optional<Response> too_large(std::string_view method, std::string_view target) const;
  /// The daemon stops: whoever waits for what goes on without him is told so.
  void stop_waiting() PERDURE_EXCLUDES(mutex_);
  const std::vector<Route>& routes() const { return router_.routes(); }
  const Admission& admission() const { return admission_; }

 private:
  /// A request that is being answered.
  struct Visit;
  void run(const Route& route, std::shared_ptr<Visit> visit);
  void transact(const InTransaction& handler, std::shared_ptr<Visit> visit);
  using Begin = std::function<void(CallPtr, Done)>;
  /// Begins it, unless its answer was kept; keeps the answer.
  void keep_after(Begin begin, std::shared_ptr<Visit> visit);
  void begin(const Begin& begin, const std::shared_ptr<Visit>& visit);
  /// On a thread for such work.
  Begin blocking(const Blocking& handler);
  void answer(Visit& visit, Result<Answer> answer);

  Node& node_;
  const Router router_;
  const ApiOptions options_;
  Admission admission_;
  const std::shared_ptr<HandlerPool> pool_;
  Mutex mutex_;
  std::set<Visit*> waiting_ PERDURE_GUARDED_BY(mutex_);
};

/// As it goes over the wire.
Response to_response(Answer answer);

struct Daemon;

// The routes of each part.
std::vector<Route> event_routes(Node& node);
std::vector<Route> worker_routes(Daemon& daemon);
std::vector<Route> kind_routes(Daemon& daemon);
std::vector<Route> stream_routes(Daemon& daemon);
std::vector<Route> system_routes(Daemon& daemon);
std::vector<Route> schedule_routes(Node& node);
std::vector<Route> debouncer_routes(Node& node);
std::vector<Route> sequence_routes(Node& node);
std::vector<Route> key_routes(Node& node);
std::vector<Route> transact_routes(Node& node);
std::vector<Route> actor_routes(Daemon& daemon);
std::vector<Route> transcript_routes(Daemon& daemon);
/// All of them.
std::vector<Route> all_routes(Daemon& daemon);

}  // namespace perdure::http
