// What somebody who watches from outside knows of the messages to accounts, and whether the store agrees.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "account.h"
#include "sim/client_workload.h"

namespace perdure::sim::accounts {

class AccountNotes {
 public:
  enum class What { kPut, kPoison, kAsk, kTransfer, kDelayed, kSlow, kMark };
  struct Sent {
    What what = What::kPut;
    std::string actor;
    std::int64_t amount = 0;
    std::string to = {};
    /// Messages of one cast_many have the id of the first of them here.
    std::int64_t group = 0;
    /// Sent in a transaction with a row of the user's. A call may be taken out of its mailbox by a stop.
    enum class With { kNothing, kCastInTransaction, kCallInTransaction } with = With::kNothing;

    std::uint64_t sent_at = 0;
    std::uint64_t answered_at = UINT64_MAX;
    Ending ending = Ending::kUnknown;
    /// Its place in the log, as the reply says.
    std::int64_t place = 0;
    int commits = 0;
  };

  AccountNotes(World& world, std::vector<std::string> actors) : world_(world), actors_(std::move(actors)) {}

  const std::vector<std::string>& actors() const { return actors_; }
  static ActorId id_of(const std::string& actor) { return {"default", std::string(Account::kKind), actor}; }
  static Bytes row_of(std::int64_t id) { return "sent/" + std::to_string(id); }

  /// A message is on its way; answers its id.
  std::int64_t send(Sent sent);
  void answered(std::int64_t id, const Result<Value>& reply);
  void answered(std::int64_t id, const Result<void>& taken);
  /// A turn that it was part of has committed, as far as an action can know.
  void committed(std::int64_t id);
  /// The least that the log of an actor must be seen to have from now on.
  std::int64_t length_known(const std::string& actor) const;
  void saw_length(const std::string& actor, std::int64_t length);
  /// Somebody deleted actors: what is in a state says less then.
  void killed() { killed_ = true; }

  /// All nodes are down: whether what is in the store is what it must be.
  void check(Store& store);
  /// Reads what must hold at any time; tells what is wrong.
  static void check_ready(Reader& reader, const ActorId& actor, const std::function<void(std::string)>& wrong);

 private:
  struct Found {
    std::map<std::string, Account::State> states;
    /// By id, those in mailboxes and in the index of delayed casts; and the dead letters.
    std::map<std::int64_t, int> waiting;
    std::map<std::int64_t, int> dead;
    std::set<std::int64_t> rows;
  };
  void wrong(const std::string& actor, const std::string& what);
  void end(std::int64_t id, const Error* error);
  void read(Reader& reader, Found& found);
  void read_mailbox(Reader& reader, const ActorId& actor, Found& found);
  void check_dead(const std::string& actor, const DeadLetter& letter, std::int64_t id);
  void check_state(const std::string& actor, const Account::State& state);
  void check_order(const std::string& actor, const std::vector<std::int64_t>& log);
  void check_sent(std::int64_t id, const Sent& sent, const Found& found, int in_log);
  void check_places(const Found& found);
  void check_money(const Found& found);

  World& world_;
  const std::vector<std::string> actors_;
  std::vector<Sent> sent_;  ///< By id, from 1.
  std::map<std::string, std::int64_t> lengths_;
  std::uint64_t clock_ = 0;
  bool killed_ = false;
};

}  // namespace perdure::sim::accounts
