#include "http/spool_taker.h"

#include <algorithm>
#include <utility>

#include "session/rows.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure::http {
namespace {

/// Of hooks, in one transaction: less than it may hold with one more, which has at most 8 MiB.
constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;
constexpr Duration kLongestWait = std::chrono::minutes(1);

/// Of those that are said, so that they are said once.
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

SpoolTaker::SpoolTaker(Node& node, SpoolTakerOptions options)
    : node_(node), options_(std::move(options)), wait_(options_.every) {}

void SpoolTaker::start() {
  MutexLock lock(mutex_);
  lane_ = StoreAccess::impl(node_.store()).scheduler().lane("perdure-spool");
  lane_->post([this] { turn(); });
}

void SpoolTaker::stop() {
  stopping_ = true;
  std::unique_ptr<Executor> lane;
  {
    MutexLock lock(mutex_);
    lane.swap(lane_);
  }
}

void SpoolTaker::turn() {
  bool all = true;
  for (const std::string& path : options_.paths) all = !stopping_ && take_from(path) && all;
  wait_ = all ? options_.every : std::min<Duration>(2 * wait_, kLongestWait);
  MutexLock lock(mutex_);
  if (lane_) lane_->at(StoreAccess::impl(node_.store()).scheduler().now() + wait_, [this] { turn(); });
}

bool SpoolTaker::take_from(const std::string& path) {
  auto report = transcript::take_spool(path, [this](auto lines) { return take(lines); });
  if (report)
    for (const std::string& strange : report->refused)
      if (refused_.size() < kRefusedMax && refused_.insert(strange).second)
        say(node_, LogLevel::kWarning, "something has the name of a file of hooks, but is no file of this user",
            {{"file", strange}});
  if (!report && !stopping_)
    say(node_, LogLevel::kWarning, "hooks that were left in a file could not be taken",
        {{"file", path}, {"error", report.error().message}});
  if (report && report->taken + report->unreadable > 0)
    say(node_, LogLevel::kInfo, "took hooks that came while no daemon listened",
        {{"file", path}, {"taken", std::to_string(report->taken)}, {"unreadable", std::to_string(report->unreadable)}});
  return report.has_value();
}

Result<void> SpoolTaker::take(std::span<const transcript::Spooled> lines) {
  // In order, and in as few transactions as that takes.
  for (std::size_t i = 0; i < lines.size();) {
    if (stopping_) return fail(ErrorCode::kClosed, "the daemon is stopping");
    const std::string& space = lines[i].space;
    std::vector<transcript::Hook> hooks;
    for (std::size_t bytes = 0; i < lines.size() && lines[i].space == space && bytes < kBytesAtOnce; ++i) {
      bytes += lines[i].hook.size();
      hooks.push_back(node_.transcripts().read(lines[i].hook, lines[i].id));
      hooks.back().came = hooks.back().sent = lines[i].at;
    }
    if (auto taken = take_together(space, hooks); !taken) return taken;
  }
  return {};
}

Result<void> SpoolTaker::take_together(const std::string& space, const std::vector<transcript::Hook>& hooks) {
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
