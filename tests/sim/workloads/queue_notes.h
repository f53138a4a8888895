// What somebody who watches from outside knows of events: who emitted what and was told what, and which claims were
// seen. See queue_check.h for what must hold of it in the end.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "queue_log.h"
#include "sim/client_workload.h"

namespace perdure::sim::queues {

/// An attempt fails as long as there were no more than so many failures before it.
inline constexpr int kAlways = 1'000;

/// What an event carries.
struct Errand {
  std::int64_t number = 0;
  int fails = 0;
  /// How it fails.
  enum class Way { kThrow, kError, kBody, kGiveUp, kSoon } way = Way::kThrow;

  /// Bytes more than it needs.
  std::int64_t load = 0;

  Value to_value() const;
  /// Number 0 if it is none.
  static Errand from(const Value& value);
};

/// One emission, whatever came of it.
struct Sent {
  std::string worker;
  Errand errand;
  EmitOptions options;
  bool in_transaction = false;
  /// Whoever claims it by hand may fail it, whatever it says.
  bool by_hand = false;

  Ending ending = Ending::kUnknown;
  /// An answer left it open.
  bool perhaps = false;
  bool duplicate = false;
  /// When it was first answered that it is there.
  std::uint64_t answered_at = UINT64_MAX;
  /// As it was answered, or seen later.
  std::optional<Uuid> id = {};

  bool delayed() const { return options.delay > Duration::zero() || options.at.has_value(); }
};

/// A claim that somebody got: the handler that began, or a client.
struct SeenClaim {
  std::int64_t number = 0;
  std::string worker;
  Stamp token;
  WallTime locked_at;
  /// The latest that store time can have been.
  WallTime latest;
  std::string by;
  /// The session that has it, and whether its handler succeeds.
  std::optional<SessionId> owner;
  bool succeeds = false;
  std::uint64_t seen_at = 0;
};

class QueueNotes {
 public:
  explicit QueueNotes(World& world) : world_(world) {}

  // Taking notes.

  /// An event is about to be emitted; answers its number.
  std::int64_t send(Sent sent);
  void answered(std::int64_t number, const Result<Emitted>& result);
  /// It is on its way once more: until that is answered nobody knows whether it is there.
  void said_again(std::int64_t number);
  /// An event was seen in the store, under that id.
  void saw(std::int64_t number, const Uuid& id);
  /// Looks at once whether it may be: `event` as the claim has it, and `latest` the latest that store time can be.
  void claimed(const Event& event, const std::string& by, WallTime latest);
  /// A client was told that what it did with its claim has succeeded.
  void did(std::int64_t number, Did what, const Result<void>& result);
  /// Dead letters of that worker may be back.
  void redrove(const std::string& worker) { redriven_.insert(worker); }

  // Looking them up.

  const std::vector<Sent>& sent() const { return sent_; }
  const Sent& sent(std::int64_t number) const { return sent_[static_cast<std::size_t>(number) - 1]; }
  bool knows(std::int64_t number) const { return number > 0 && static_cast<std::size_t>(number) <= sent_.size(); }
  /// In the order in which they were seen.
  const std::vector<SeenClaim>& claims() const { return claims_; }
  bool redriven(const std::string& worker) const { return redriven_.contains(worker); }
  /// Any event whose id is known; nothing if there is none.
  std::optional<std::pair<std::int64_t, Uuid>> any_known(Random& random) const;

  void wrong(const std::string& what) { world_.violation("queue: " + what); }
  static std::string text(std::int64_t number) { return "event " + std::to_string(number); }

 private:
  World& world_;
  std::vector<Sent> sent_;  ///< By number, from 1.
  std::vector<SeenClaim> claims_;
  std::vector<std::pair<std::int64_t, Uuid>> known_;
  std::set<Stamp> tokens_;
  std::uint64_t clock_ = 0;  ///< What is noted, in its order.
  std::set<std::string> redriven_;
};

}  // namespace perdure::sim::queues
