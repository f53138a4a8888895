// Answers that are kept, so that a request which is repeated with the same Idempotency-Key has its effect once.
//
// The answer is written by the transaction that has the effect. So either both are there, and a repeat is answered with
// it, or neither, and a repeat does it. A key belongs to a space, a method and a path. Answers are kept for a day of
// store time; whoever writes one clears a few that are older, so that there are never many of these and nothing has to
// run for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/call.h"
#include "perdure/time.h"
#include "perdure/transaction.h"

namespace perdure::http {

inline constexpr Duration kAnswersKept = std::chrono::hours(24);
inline constexpr std::size_t kIdempotencyKeyMax = 200;

/// The key of a request, and what tells whether it is the same request.
struct IdempotencyKey {
  std::string space;
  /// Of method and path, and of the body.
  std::uint64_t where = 0;
  std::uint64_t body = 0;
  std::string key;

  /// Nothing if the request has none. Errors: kInvalidArgument for one that is empty, too long or not printable.
  static Result<std::optional<IdempotencyKey>> of(const Call& call);
};

/// A row that stands for a request: its answer, or text by which to go on waiting for one.
struct Kept {
  enum class Form {
    kAnswer,
    kPending,
    kReused,  ///< The key was used for another body.
  };
  Form form = Form::kAnswer;
  Answer answer = {};
  std::string pending = {};
};

/// What is kept of the request. Errors: kCorrupt.
Result<std::optional<Kept>> find_kept(Reader& reader, const IdempotencyKey& key, WallTime now);
/// Keeps its answer, in the transaction that has the effect, or in one that has `pending` before it.
void keep(Transaction& txn, const IdempotencyKey& key, const Kept& kept, WallTime now);
/// There is no answer to keep after all: a repeat does it anew.
void forget(Transaction& txn, const IdempotencyKey& key);
/// What a repeat is answered with: the first answer, 503 if that is still to come, or 422 if it is another request.
Answer answer_of(Kept kept, const std::string& key);

}  // namespace perdure::http
