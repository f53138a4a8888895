#include "http/spool_taker.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <span>
#include <utility>

#include "runtime/handler_pool.h"
#include "runtime/latch.h"
#include "session/rows.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure::http {
namespace {

/// Of hooks, in one transaction: less than it may hold with one more, which has at most 8 MiB.
constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;
constexpr Duration kLongestWait = std::chrono::minutes(1);

/// Of a spool, of those that are said, so that they are said once.
constexpr std::size_t kRefusedMax = 100;

/// Whether the hooks themselves are to blame, and would be the next time. All else is the store's, which may be mended:
/// what is deleted would be lost for it.
bool is_final(const Error& error) {
  return error.code == ErrorCode::kTooLarge;
}

void say(Node& node, LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  log(StoreAccess::impl(node.store()).options(), level, "transcript", message, fields);
}

}  // namespace

/// What the threads work on, those that were left behind as well.
class SpoolTaker::Taking : public std::enable_shared_from_this<Taking> {
 public:
  Taking(Node& node, SpoolTakerOptions options);
  void start();
  bool stop(Duration grace);

 private:
  /// One at a time looks at it.
  struct Place {
    std::string path;
    /// Longer after something failed, as it will mostly do so again.
    Duration wait;
    /// What was found in the place of a file, and has been said.
    std::set<std::string> refused = {};
  };

  Scheduler& scheduler() { return StoreAccess::impl(node_.store()).scheduler(); }
  void look(Place& place);
  void turn(Place& place);
  /// Whether all of a spool is taken.
  bool take_from(Place& place);
  Result<void> take(std::span<const transcript::Spooled> lines);
  Result<void> take_together(const std::string& space, const std::vector<transcript::Hook>& hooks);

  Node& node_;
  const SpoolTakerOptions options_;
  /// Then nothing of the node is touched any more, but by what is under way.
  std::atomic<bool> stopping_ = false;
  std::vector<Place> places_;
  const std::shared_ptr<HandlerPool> pool_;
};

SpoolTaker::SpoolTaker(Node& node, SpoolTakerOptions options)
    : taking_(std::make_shared<Taking>(node, std::move(options))) {}

void SpoolTaker::start() {
  taking_->start();
}

bool SpoolTaker::stop(Duration grace) {
  return taking_->stop(grace);
}

SpoolTaker::Taking::Taking(Node& node, SpoolTakerOptions options)
    : node_(node),
      options_(std::move(options)),
      pool_(std::make_shared<HandlerPool>(scheduler(),
                                          HandlerPool::Options{.name = "perdure-spool",
                                                               .eager = static_cast<unsigned>(options_.paths.size()),
                                                               .most = static_cast<unsigned>(options_.paths.size()),
                                                               .spare = 0})) {
  for (const std::string& path : options_.paths) places_.push_back({path, options_.every});
}

void SpoolTaker::Taking::start() {
  for (Place& place : places_) look(place);
}

bool SpoolTaker::Taking::stop(Duration grace) {
  stopping_ = true;
  auto ended = std::make_shared<Latch>();
  pool_->close([ended] { ended->set(); });
  const bool all = ended->wait_for(grace);
  if (!all) pool_->leave_behind();
  pool_->join();
  return all;
}

void SpoolTaker::Taking::look(Place& place) {
  pool_->run({.run = [self = shared_from_this(), &place] { self->turn(place); }});
}

void SpoolTaker::Taking::turn(Place& place) {
  const bool all = take_from(place);
  if (stopping_) return;
  place.wait = all ? options_.every : std::min<Duration>(2 * place.wait, kLongestWait);
  scheduler().at(scheduler().now() + place.wait, [weak = weak_from_this(), &place] {
    if (auto self = weak.lock()) self->look(place);
  });
}

bool SpoolTaker::Taking::take_from(Place& place) {
  auto report = options_.take_spool(place.path, [this](auto lines) { return take(lines); });
  if (stopping_) return false;
  if (!report) {
    say(node_, LogLevel::kWarning, "hooks that were left in a file could not be taken",
        {{"file", place.path}, {"error", report.error().message}});
    return false;
  }
  for (const std::string& strange : report->refused)
    if (place.refused.size() < kRefusedMax && place.refused.insert(strange).second)
      say(node_, LogLevel::kWarning, "something has the name of a file of hooks, but is no file of this user",
          {{"file", strange}});
  if (report->taken + report->unreadable > 0)
    say(node_, LogLevel::kInfo, "took hooks that came while no daemon listened",
        {{"file", place.path},
         {"taken", std::to_string(report->taken)},
         {"unreadable", std::to_string(report->unreadable)}});
  return true;
}

Result<void> SpoolTaker::Taking::take(std::span<const transcript::Spooled> lines) {
  // In order, and in as few transactions as that takes.
  for (std::size_t i = 0; i < lines.size();) {
    if (stopping_) return fail(ErrorCode::kClosed, "the daemon is stopping");
    const std::string& space = lines[i].space;
    std::vector<transcript::Hook> hooks;
    for (std::size_t bytes = 0; i < lines.size() && lines[i].space == space && bytes < kBytesAtOnce; ++i) {
      bytes += lines[i].hook.size();
      hooks.push_back(node_.transcripts().read(lines[i].hook, lines[i].id));
      hooks.back().sent = lines[i].at;
      hooks.back().came = transcript::came_at(lines[i].at, node_.transcripts().clocks());
    }
    if (auto taken = take_together(space, hooks); !taken) return taken;
  }
  return {};
}

Result<void> SpoolTaker::Taking::take_together(const std::string& space, const std::vector<transcript::Hook>& hooks) {
  // What will never be taken must not hold up what is behind it.
  auto refused = [&](const Error& error, std::size_t count) {
    say(node_, LogLevel::kWarning, "hooks that were left in a file are refused for good",
        {{"space", space}, {"hooks", std::to_string(count)}, {"error", error.message}});
  };
  if (auto good = session::check_short_name(space, "the space"); !good) {
    refused(good.error(), hooks.size());
    return {};
  }
  auto taken = node_.transcripts().take(space, hooks);
  if (taken || !is_final(taken.error())) return taken;
  // One by one, without those that are to blame.
  for (const transcript::Hook& hook : hooks) {
    auto one = node_.transcripts().take(space, {hook});
    if (!one && !is_final(one.error())) return one;
    if (!one) refused(one.error(), 1);
  }
  return {};
}

}  // namespace perdure::http
