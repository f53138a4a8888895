#include "schedule/zone.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

namespace perdure::schedule {
namespace {

/// A hundred times the largest there is.
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::size_t kNameBytesMax = 64;
/// No clock on a wall is further from UTC, see tzif.cc.
constexpr Seconds kFarthest = 26 * 3600;

/// Names like those of the database, and no path to elsewhere. Those of its files that are no zones, or another one on
/// each machine, like "localtime", begin with a small letter.
bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax || !std::isupper(static_cast<unsigned char>(name[0]))) return false;
  if (name.find("//") != name.npos) return false;
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || (c != '\0' && std::strchr("_+-/", c) != nullptr);
  });
}

bool is_utc(std::string_view name) {
  return name == "UTC" || name == "Etc/UTC";
}

std::unexpected<Error> unknown(std::string_view name, const std::string& directory) {
  struct stat info{};
  // The directory may be there without the database, as a leftover.
  bool there = ::stat(directory.c_str(), &info) == 0 && ::stat((directory + "/Europe").c_str(), &info) == 0;
  if (!there)
    return fail(ErrorCode::kUnavailable, "the time zone " + printable(name) +
                                             " cannot be looked up, for there is no "
                                             "time zone database in " +
                                             directory + "; install the package tzdata");
  return fail(ErrorCode::kInvalidArgument, "there is no time zone \"" + printable(name) +
                                               "\"; write it as in the IANA database, like Europe/Berlin or UTC");
}

/// The file, or nothing if it is none; `problem` is what else went wrong.
std::optional<Bytes> read_file(const std::string& path, int& problem) {
  problem = 0;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno != ENOENT && errno != ENOTDIR) problem = errno;
    return std::nullopt;
  }
  Bytes bytes;
  struct stat info{};
  bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  char part[4096];
  while (is_file && bytes.size() <= kFileBytesMax) {
    ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) problem = errno;
    if (got <= 0) break;
    bytes.append(part, static_cast<std::size_t>(got));
  }
  ::close(fd);
  if (!is_file || problem != 0) return std::nullopt;
  return bytes;
}

}  // namespace

Result<Zone> Zone::load(std::string_view name, const std::string& directory) {
  if (is_utc(name)) return Zone(std::string(name), {{kBeginningOfTime, 0}});
  if (!is_zone_name(name)) return unknown(name, directory);
  std::string path = directory + "/" + std::string(name);
  int problem = 0;
  auto bytes = read_file(path, problem);
  if (problem != 0)
    return fail(ErrorCode::kUnavailable,
                "the time zone file " + path + " cannot be read: " + std::generic_category().message(problem));
  if (!bytes) return unknown(name, directory);
  auto transitions = parse_tzif(*bytes);
  if (!transitions)
    return fail(ErrorCode::kCorrupt, "the time zone file " + path + " is of no use: " + transitions.error().message);
  return Zone(std::string(name), std::move(*transitions));
}

Zone::Segment Zone::segment(Seconds utc) const {
  auto after = std::ranges::upper_bound(transitions_, utc, {}, &Transition::begin);
  Seconds end = after == transitions_.end() ? std::numeric_limits<Seconds>::max() / 4 : after->begin;
  auto holds = after == transitions_.begin() ? after : std::prev(after);
  return {holds->begin, end, holds->offset};
}

Seconds Zone::latest_local(Seconds utc) const {
  Segment now = segment(utc);
  Seconds latest = utc + now.offset;
  // What was shown longer ago than this is earlier than what is shown now.
  Seconds oldest = utc - 2 * kFarthest;
  while (now.begin > oldest) {
    Seconds last = now.begin - 1;
    now = segment(last);
    latest = std::max(latest, last + now.offset);
  }
  return latest;
}

Seconds Zone::first_shown(Seconds local) const {
  Segment now = segment(local - kFarthest);
  while (local - now.offset >= now.end) now = segment(now.end);
  return std::max(local - now.offset, now.begin);
}

Zones::Mark Zones::mark_of(std::string_view name) const {
  struct stat info{};
  if (is_utc(name) || !is_zone_name(name)) return {};
  if (::stat((directory_ + "/" + std::string(name)).c_str(), &info) != 0) return {};
  return {std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_ino};
}

Result<std::shared_ptr<const Zone>> Zones::find(std::string_view name) {
  Mark mark = mark_of(name);
  std::shared_ptr<const Zone> before;
  {
    MutexLock lock(mutex_);
    auto known = known_.find(name);
    if (known != known_.end() && known->second.mark == mark) return known->second.zone;
    if (known != known_.end()) before = known->second.zone;
  }
  auto loaded = Zone::load(name, directory_);
  if (!loaded && before) return before;
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  auto zone = std::make_shared<const Zone>(std::move(*loaded));
  MutexLock lock(mutex_);
  known_.insert_or_assign(std::string(name), Known{mark, zone});
  return zone;
}

}  // namespace perdure::schedule
