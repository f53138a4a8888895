// Where the things of a store are in etcd. All keys begin with the prefix of the url and a slash:
//
//   <prefix>/format             "perdure 2": what wrote the rest, and the version of this layout
//   <prefix>/version            where the log ends: the version, and behind it the link of that entry
//   <prefix>/folded             up to where the rows know of it
//   <prefix>/trimmed            up to where its entries are gone
//   <prefix>/folder             who folds just now; absent if nobody does
//   <prefix>/turn               who has asked for a turn to append (remote/turns.h) last; absent if nobody ever did
//   <prefix>/log/<version>      an entry of the log: the batch
//   <prefix>/row/<key>          a row: its version, and then its value
//
// Versions and links are eight bytes, most significant first, so that entries sort by them. The keys of rows are as
// they are, any bytes, in the same order.
#pragma once

#include <cstdint>
#include <optional>

#include "store/etcd/etcd_ops.h"
#include "store/remote/row_server.h"

namespace perdure::etcd {

inline constexpr unsigned kFormat = 2;

class Layout {
 public:
  explicit Layout(const std::string& prefix) : prefix_(prefix + "/") {}

  Bytes format() const { return prefix_ + "format"; }
  Bytes version() const { return prefix_ + "version"; }
  Bytes folded() const { return prefix_ + "folded"; }
  Bytes trimmed() const { return prefix_ + "trimmed"; }
  Bytes folder() const { return prefix_ + "folder"; }
  /// No other key stands between this one and version(), so that both can be watched together.
  Bytes turn() const { return prefix_ + "turn"; }
  Bytes entry(Version version) const;
  Bytes row(BytesView key) const { return prefix_ + "row/" + Bytes(key); }

  /// The entries after `version`.
  Range log_after(Version version) const;
  /// The entries up to `version`.
  Delete log_up_to(Version version) const;
  /// The rows of a range that is not empty; its limit and direction are left to the caller.
  Range rows(const KeyRange& range) const;

  /// The four things that every reader of a moment asks for first: version, folded, trimmed, and the log.
  std::vector<Range> moment_after(Version since) const;
  /// What they were answered. Errors: kCorrupt.
  Result<remote::Moment> moment(Version since, std::span<RangeAnswer> answers) const;
  /// Errors: kCorrupt.
  Result<Row> row_of(KeyValue& stored) const;

 private:
  Result<Version> version_in(const RangeAnswer& answer, const Bytes& key) const;
  Result<remote::LogEntry> entry_of(KeyValue& stored) const;

  const std::string prefix_;
};

Bytes encode_end(const remote::LogEnd& end);
/// Nothing unless it is sixteen bytes.
std::optional<remote::LogEnd> decode_end(BytesView bytes);
Bytes encode_version(Version version);
/// Nothing unless it is eight bytes.
std::optional<Version> decode_version(BytesView bytes);
Bytes encode_row(const Versioned& row);

Bytes encode_format();
/// Errors: kUnsupportedFormat, kCorrupt.
Result<void> check_format(const Bytes& stored, const std::string& prefix);

}  // namespace perdure::etcd
