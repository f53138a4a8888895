// What a remote behaviour answers, read strictly: a field that nobody knows, or of the wrong kind, is more likely a
// mistake than something to pass over, and what would come of it is durable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/behaviour.h"
#include "perdure/error.h"
#include "perdure/event.h"
#include "perdure/sequence.h"
#include "perdure/value.h"

namespace perdure::http {

struct RemoteEmit {
  std::string worker;
  Value value;
  Duration delay;
};
struct RemoteCast {
  std::string kind;
  std::string id;
  Value message;
  Duration delay;
};
struct RemoteTouch {
  std::string debouncer;
  std::string key;
  Value payload;
};
struct RemoteAppend {
  std::string partition;
  Append event;
};
struct RemoteReply {
  From from;
  Value reply;
};

struct RemoteAnswer {
  /// Nothing: it stays as it is.
  std::optional<Value> state;
  std::optional<Value> reply;
  bool noreply = false;
  bool lock = false;
  std::optional<std::string> stop;
  std::vector<RemoteEmit> emit;
  std::vector<RemoteCast> cast;
  std::vector<RemoteTouch> touch;
  std::vector<RemoteAppend> append;
  std::vector<RemoteReply> replies;
};

/// Of each list in an answer.
inline constexpr std::size_t kRemoteItemsMax = 1'000;

/// What an operation may answer.
enum class RemoteFields {
  kAll,
  kState,  ///< init and upgrade: the state and nothing else.
};

/// `space` is that of the actor: replies to callers of others are refused.
/// Errors: kHandlerFailed, naming the field: "emit[2].worker: expected text, found integer 7".
Result<RemoteAnswer> read_remote_answer(std::string_view body, RemoteFields fields, std::string_view space);

}  // namespace perdure::http
