// Judges a list-append history: is there one order of all transactions that explains every read and that agrees with
// real time? That is strict serializability, and this is the method of Elle (Kingsbury, Alvaro: "Elle: Inferring
// Isolation Anomalies from Experimental Observations"): lists make the order of writes visible, the rest is a search
// for cycles of dependencies.
//
// It reports no anomaly that is not one, provided that the times come from one steady clock, that no value is appended
// twice to a key, and that the reads recorded for an operation of unknown outcome are those it would have committed
// with. It finds every violation that the recorded reads prove, so read often; keys that nobody reads prove nothing.
#pragma once

#include <cstddef>
#include <string>

#include "sim/history.h"

namespace perdure::sim {

struct Verdict {
  bool ok = true;
  /// The name of what is wrong, empty if ok:
  ///   duplicate-append    two appends of one value to one key: the history is not fit to be judged
  ///   internal            a transaction contradicts its own earlier reads and appends, or saw its own in advance
  ///   garbage-read        a value that nobody appended
  ///   duplicate-elements  a value twice in one list
  ///   G1a                 a value of a failed transaction (aborted read)
  ///   G1b                 some of a transaction's appends to a key without the others (intermediate read)
  ///   incompatible-order  two lists of one key, neither of which is the beginning of the other
  ///   lost-append         an acknowledged append that the last read of its key, begun later, does not have
  ///   G0                  a cycle of appends
  ///   G1c                 a cycle of appends and reads of them
  ///   G-single            a cycle with one read that missed an append (read skew, lost update)
  ///   G2                  a cycle with several of them (write skew)
  ///   G0-realtime, G1c-realtime, G-single-realtime, G2-realtime
  ///                       the same, closed only by one having completed before another began (stale read)
  std::string anomaly;
  /// What happened, for a person, with the records of the transactions concerned. T12 is operation 12 of the history.
  std::string explanation;

  std::size_t txns = 0;               ///< All, final reads included.
  std::size_t ok_txns = 0;            ///< Those that were acknowledged.
  std::size_t failed_txns = 0;        ///< Those that surely had no effect.
  std::size_t unknown_txns = 0;       ///< Those of unknown outcome.
  std::size_t unknown_committed = 0;  ///< Those of them that were seen to have taken effect.
  std::size_t keys = 0;
  std::size_t appends = 0;
  std::size_t reads = 0;  ///< One for each transaction and key that it read.
  std::size_t edges = 0;  ///< Of the dependency graph; 0 if it was not needed.
};

/// Checks a million transactions in about a second.
Verdict check_list_append(const History& history);

/// "ok: 1000 txns (990 ok, 3 failed, 7 unknown of which 2 committed), ..." or "G2: ..." with the explanation.
std::string to_string(const Verdict& verdict);

}  // namespace perdure::sim
