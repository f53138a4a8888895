// What `perdure work` has to tell the daemon about the events that it claimed, in as few calls as possible.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "perdure/value.h"

namespace perdure::cli {

struct Settlement {
  /// As the call has them.
  enum class Kind { kComplete, kFail, kExtend, kRelease };
  Kind kind = Kind::kComplete;
  std::string id;
  std::string token;
  /// Of its item in the call, beside id and token: "result", "error", "lock".
  std::optional<std::pair<std::string, Value>> detail = {};
};

/// One call of settle.
struct SettleBatch {
  std::vector<Settlement> items;  ///< In the order of the body.
  std::string body;
  std::string idempotency_key;
};

class Settlements {
 public:
  static constexpr std::size_t kItemsMax = 1000, kBytesMax = std::size_t{4} << 20;

  /// A call may name a claim once only: an extension that still waits gives way to whatever comes after it.
  void add(Settlement settlement);
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  /// What comes next, as much as one call takes. There is something.
  SettleBatch take();

 private:
  std::deque<Settlement> waiting_;
};

struct Refusal {
  Settlement item;
  Failure failure;
};

/// Those items of a batch that the answer says were refused. An answer lists an outcome for each item, under the names
/// of the call ("complete", "fail", ...) or all together as "items", in order; one that failed has an "error".
std::vector<Refusal> refused(const SettleBatch& batch, const Value& answer);

std::string_view name_of(Settlement::Kind kind);

}  // namespace perdure::cli
