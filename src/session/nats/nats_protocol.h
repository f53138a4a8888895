// What is said to JetStream and what it answers, as text: no connection in here.
//
// A bucket is the stream KV_<bucket>, and a key of it the subject $KV.<bucket>.<key>. Requests to the JetStream API are
// JSON on subjects under $JS.API; a write is a message on the subject of its key, with the revision that it expects as
// a header, and is answered on its reply subject.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/nats.h"

namespace perdure::nats {

/// Of the errors of JetStream, those that somebody reacts to.
enum : int {
  kNoJetStream = 10076,
  kNoJetStreamForAccount = 10039,
  kNoMessage = 10037,
  kStreamNotFound = 10059,
  kStreamNameInUse = 10058,
  kWrongLastSequence = 10071,
};

struct ApiError {
  int code = 0;
  std::string description;
};

/// The error of an answer; nothing if it has none. An answer that is no JSON is an error with the code 0.
std::optional<ApiError> error_of(std::string_view answer);
/// The sequence of an acknowledged write.
std::optional<std::uint64_t> sequence_of(std::string_view answer);

struct BucketInfo {
  Duration max_age = {};
  bool rollup = false;
};
std::optional<BucketInfo> bucket_of(std::string_view stream_info);
std::string create_stream(const NatsOptions& options);
std::string create_consumer(const NatsOptions& options, const std::string& deliver_subject, Duration heartbeat);

/// The last message of a key.
struct Entry {
  std::uint64_t revision = 0;
  /// A delete or purge: the key is absent.
  bool marker = false;
  std::string value;
  WallTime written;
};
std::string last_message_of(const std::string& subject);
/// Of the answer to that; nothing if it cannot be read.
std::optional<Entry> entry_of(std::string_view answer);

struct KeyValue {
  /// Both empty or waiting for a value that is not ours to read.
  std::string instance_id;
  LeaderStatus status = LeaderStatus::kWaiting;
};
std::string value_of(const std::string& instance_id, LeaderStatus status);
KeyValue parse_value(std::string_view value);
/// Whether the header KV-Operation says so.
bool is_marker(std::string_view operation);

/// What the reply subject of a delivered message says.
struct Delivery {
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;
};
std::optional<Delivery> delivery_of(std::string_view reply_subject);

/// "2026-11-16T16:34:03.5Z"; nothing if it is no such time.
std::optional<WallTime> parse_time(std::string_view text);
/// Nothing if it is no base64.
std::optional<std::string> decode_base64(std::string_view text);

/// Errors: kInvalidArgument with the setting.
Result<void> check_options(const NatsOptions& options);
Result<void> check_key(std::string_view key);

}  // namespace perdure::nats
