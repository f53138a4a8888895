// /v1/{space}/stream: changes of state as server-sent events.
#include "http/api.h"
#include "http/bind.h"
#include "http/daemon.h"
#include "http/problem.h"
#include "http/units.h"
#include "runtime/mutex.h"
#include "store/store_access.h"

namespace perdure::http {
namespace {

/// So often something is said, if there is nothing to say: proxies and clients would give up.
constexpr Duration kComment = std::chrono::seconds(15);

Value change_json(const Change& change) {
  Value::Map out{{"type", change.type}, {"name", change.name}, {"state", change.state}, {"at", format_time(change.at)}};
  if (!change.id.empty()) out.emplace("id", change.id);
  if (change.attempt > 0) out.emplace("attempt", change.attempt);
  if (change.count > 0) out.emplace("count", number_value(change.count));
  if (change.offset) out.emplace("offset", number_value(*change.offset));
  if (change.version) out.emplace("version", format_version(change.version->version));
  if (!change.error.empty()) out.emplace("error", change.error);
  return out;
}

std::vector<std::string> names(const Call& call, std::string_view query) {
  auto given = call.query(query);
  if (!given) return {};
  return {std::string(*given)};
}

/// One client who listens.
///
///     { read ( something: write it | nothing: wait for news or the time of a comment ) }
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(Daemon& daemon, CallPtr call, ChangeQuery query)
      : scheduler_(StoreAccess::impl(daemon.node.store()).scheduler()),
        changes_(daemon.feed.in(call->space())),
        call_(std::move(call)),
        query_(std::move(query)) {}

  void start() {
    gone_ = call_->exchange().gone();
    Response head{
        200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}, {}};
    out_ = call_->exchange().stream(std::move(head));
    gone_.then([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->stop();
    });
    // A client knows by this that it is connected, and where to go on if it is cut off before the first change.
    out_->write(": perdure\nid: " + query_.after + "\n\n", [self = shared_from_this()] { self->read(); });
  }

 private:
  void read() {
    if (gone_.cancelled()) return out_->end();
    changes_.read_async(query_, [self = shared_from_this()](Result<ChangePage> page) { self->take(std::move(page)); });
  }

  void take(Result<ChangePage> page) {
    if (!page || gone_.cancelled()) return out_->end();
    query_.after = page->next;
    std::string text;
    if (page->gap) text = "event: gap\ndata: {}\n\n";
    for (const Change& change : page->changes)
      text += "id: " + change.cursor + "\nevent: " + change.type + "\ndata: " + change_json(change).to_json() + "\n\n";
    if (!text.empty()) {
      page->news.cancel();
      return out_->write(std::move(text), [self = shared_from_this()] { self->read(); });
    }
    if (page->more) return read();
    await(std::move(page->news));
  }

  /// Whichever comes first goes on; the other finds that it is too late.
  void await(Watch news) {
    auto round = std::make_shared<std::atomic<bool>>(false);
    auto timer = scheduler_.at(scheduler_.now() + kComment, [self = shared_from_this(), round] {
      if (round->exchange(true)) return;
      self->out_->write(": still here\nid: " + self->query_.after + "\n\n", [self] { self->read(); });
    });
    {
      MutexLock lock(mutex_);
      news_ = news;
      timer_ = timer;
    }
    news.then([self = shared_from_this(), round, timer] {
      if (round->exchange(true)) return;
      self->scheduler_.cancel(timer);
      self->read();
    });
    if (gone_.cancelled()) stop();
  }

  void stop() {
    Watch news;
    Executor::TimerId timer;
    {
      MutexLock lock(mutex_);
      news = news_;
      timer = timer_;
    }
    news.cancel();
    if (timer != 0) scheduler_.cancel(timer);
    out_->end();
  }

  Scheduler& scheduler_;
  Changes changes_;
  const CallPtr call_;
  ChangeQuery query_;
  CancelSignal gone_;
  std::shared_ptr<ResponseStream> out_;
  Mutex mutex_;
  Watch news_ PERDURE_GUARDED_BY(mutex_);
  Executor::TimerId timer_ PERDURE_GUARDED_BY(mutex_) = 0;
};

void listen(Daemon& daemon, const CallPtr& call) {
  ChangeQuery query;
  query.filter = {names(*call, "worker"),   names(*call, "kind"),      names(*call, "debouncer"),
                  names(*call, "schedule"), names(*call, "partition"), names(*call, "session")};
  const std::string* last = call->header("Last-Event-ID");
  query.after = last ? *last : std::string(call->query("after").value_or(""));
  Changes changes = daemon.feed.in(call->space());
  if (!query.after.empty()) {
    // A cursor that is none is refused before the stream begins.
    auto checked = [&daemon, call, query](Result<ChangePage> page) {
      if (!page) return call->exchange().answer(problem(page.error()));
      page->news.cancel();
      std::make_shared<Listener>(daemon, call, query)->start();
    };
    return changes.read_async({.after = query.after, .limit = 1}, std::move(checked));
  }
  changes.latest_async([&daemon, call, query](Result<std::string> cursor) mutable {
    if (!cursor) return call->exchange().answer(problem(cursor.error()));
    query.after = *cursor;
    std::make_shared<Listener>(daemon, call, std::move(query))->start();
  });
}

}  // namespace

std::vector<Route> stream_routes(Daemon& daemon) {
  return {{"GET", "/v1/{space}/stream", Load::kPoll, Raw{[&daemon](CallPtr call) { listen(daemon, call); }}}};
}

}  // namespace perdure::http
