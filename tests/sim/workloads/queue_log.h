// What the users of the queue write beside it: rows of their own, in the transactions that concern events. So what was
// done with an event, in which order, and under which token can be read from the store, also where nobody was told how
// a transaction ended.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perdure/queue.h"

namespace perdure::sim::queues {

/// Not that of histories.
using perdure::Value;

/// An effect is what a completion writes; the others are what a claim by hand or an operator has done.
enum class Did { kEffect, kFail, kRelease, kExtend, kCancel };
std::string_view name_of(Did did);

/// Something that was done with an event, as the transaction of that version says.
struct Deed {
  Did did;
  Version version;
  /// Nothing for what needs none.
  std::optional<Stamp> token;
};

struct RuleChange {
  enum class Way { kAdded, kRemoved } way;
  Rule::Type type;
  Version version;
  std::optional<DueTime> until;
};

/// An emission in a transaction of the user's.
struct SentRow {
  Version version;
  bool duplicate = false;
  Uuid id;
};

/// Events by their numbers, which their values carry; rules by worker.
struct Log {
  std::map<std::int64_t, SentRow> sent;
  std::map<std::int64_t, std::vector<Deed>> deeds;
  std::map<std::string, std::vector<RuleChange>> rules;

  std::vector<Deed> deeds_of(std::int64_t number) const;
  std::int64_t count(std::int64_t number, Did did) const;
};

Log read_log(Reader& reader);
std::vector<Deed> read_deeds(Reader& reader, std::int64_t number);

void write_sent(Transaction& txn, std::int64_t number, const Emitted& emitted);
void write_deed(Transaction& txn, std::int64_t number, Did did, const std::optional<Token>& token);
void write_rule(Transaction& txn, const std::string& worker, RuleChange::Way way, Rule::Type type,
                const std::optional<DueTime>& until);

}  // namespace perdure::sim::queues
