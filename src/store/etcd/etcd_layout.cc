#include "store/etcd/etcd_layout.h"

#include <algorithm>
#include <charconv>

#include "base/endian.h"

namespace perdure::etcd {
namespace {

constexpr std::size_t kVersionSize = 8;
constexpr std::string_view kFormatName = "perdure ";
/// '0' is what follows '/': the end of all keys with that folder.
constexpr std::string_view kLog = "log/", kLogEnd = "log0", kRow = "row/", kRowEnd = "row0";

std::unexpected<Error> corrupt(const Bytes& key, const std::string& what) {
  return fail(ErrorCode::kCorrupt, "the key '" + printable(key) + "' in etcd " + what +
                                       "; restore a snapshot of etcd, or use another prefix in the url");
}

}  // namespace

Bytes encode_version(Version version) {
  Bytes bytes(kVersionSize, '\0');
  store_big(bytes.data(), version.number);
  return bytes;
}

std::optional<Version> decode_version(BytesView bytes) {
  if (bytes.size() != kVersionSize) return {};
  return Version{load_big<std::uint64_t>(bytes.data())};
}

Bytes encode_end(const remote::LogEnd& end) {
  return encode_version(end.version) + encode_version({end.link});
}

std::optional<remote::LogEnd> decode_end(BytesView bytes) {
  if (bytes.size() != 2 * kVersionSize) return {};
  return remote::LogEnd{{load_big<std::uint64_t>(bytes.data())}, load_big<remote::Link>(bytes.data() + kVersionSize)};
}

Bytes encode_row(const Versioned& row) {
  return encode_version(row.version) + row.value;
}

Bytes encode_format() {
  return std::string(kFormatName) + std::to_string(kFormat);
}

Result<void> check_format(const Bytes& stored, const std::string& prefix) {
  unsigned format = 0;
  const char* end = stored.data() + stored.size();
  if (!stored.starts_with(kFormatName) || std::from_chars(stored.data() + kFormatName.size(), end, format).ptr != end ||
      format == 0)
    return fail(ErrorCode::kCorrupt, "what is under '" + prefix + "' in etcd is no store of perdure: its format is '" +
                                         printable(stored) + "'; use another prefix in the url");
  if (format != kFormat)
    return fail(ErrorCode::kUnsupportedFormat, "the store under '" + prefix + "' in etcd has the format " +
                                                   std::to_string(format) + ", and this perdure knows only " +
                                                   std::to_string(kFormat) + "; use " +
                                                   (format > kFormat ? "a newer perdure" : "the perdure that made it"));
  return {};
}

Bytes Layout::entry(Version version) const {
  return prefix_ + std::string(kLog) + encode_version(version);
}

Range Layout::log_after(Version version) const {
  return {.key = entry(version) + '\0', .end = prefix_ + std::string(kLogEnd)};
}

Delete Layout::log_up_to(Version version) const {
  return {.key = prefix_ + std::string(kLog), .end = entry(version) + '\0'};
}

Range Layout::rows(const KeyRange& range) const {
  return {.key = row(range.begin), .end = range.end.empty() ? prefix_ + std::string(kRowEnd) : row(range.end)};
}

std::vector<Range> Layout::moment_after(Version since) const {
  return {{.key = version()}, {.key = folded()}, {.key = trimmed()}, log_after(since)};
}

Result<Version> Layout::version_in(const RangeAnswer& answer, const Bytes& key) const {
  if (answer.rows.empty()) return corrupt(key, "is gone: somebody has deleted it");
  if (auto version = decode_version(answer.rows[0].value)) return *version;
  return corrupt(key, "is no version");
}

Result<remote::LogEntry> Layout::entry_of(KeyValue& stored) const {
  auto version =
      decode_version(BytesView(stored.key).substr(std::min(stored.key.size(), prefix_.size() + kLog.size())));
  if (!version) return corrupt(stored.key, "is no entry of a log");
  return remote::LogEntry{*version, std::move(stored.value)};
}

Result<remote::Moment> Layout::moment(Version since, std::span<RangeAnswer> answers) const {
  if (answers[0].rows.empty()) return corrupt(version(), "is gone: somebody has deleted it");
  auto end = decode_end(answers[0].rows[0].value);
  if (!end) return corrupt(version(), "is no end of a log");
  auto folded_at = version_in(answers[1], folded());
  if (!folded_at) return std::unexpected(std::move(folded_at.error()));
  auto trimmed_at = version_in(answers[2], trimmed());
  if (!trimmed_at) return std::unexpected(std::move(trimmed_at.error()));
  remote::Moment moment{*end, *folded_at, *trimmed_at, {}, {}, {}};
  // Some of what comes after `since` is gone: then only what the rows do not know of is of use.
  const Version after = since < *trimmed_at ? *folded_at : since;
  for (KeyValue& stored : answers[3].rows) {
    auto entry = entry_of(stored);
    if (!entry) return std::unexpected(std::move(entry.error()));
    if (entry->version > after) moment.log.push_back(std::move(*entry));
  }
  return moment;
}

Result<Row> Layout::row_of(KeyValue& stored) const {
  const std::size_t before = prefix_.size() + kRow.size();
  auto version = decode_version(BytesView(stored.value).substr(0, kVersionSize));
  if (!version || stored.key.size() < before) return corrupt(stored.key, "is no row");
  return Row{stored.key.substr(before), stored.value.substr(kVersionSize), *version};
}

}  // namespace perdure::etcd
