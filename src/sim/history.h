// What clients did to a store and what they saw, so that a checker can judge it afterwards.
//
// An operation is one transaction on lists: it appends values to keys and reads whole lists. No value is ever appended
// twice to one key, so each element of a list names the transaction that put it there; that is what lets a checker work
// out the order of all transactions from the reads alone. A client that repeats a failed operation takes new values.
//
// History file, one record a line, words separated by one space, numbers in decimal, times in nanoseconds on one steady
// clock shared by all the processes that write:
//
//   invoke PROCESS INVOKED MICRO-OPS            before the operation starts
//   ok PROCESS INVOKED COMPLETED MICRO-OPS      after it took effect
//   fail PROCESS INVOKED COMPLETED MICRO-OPS    after it surely had no effect
//   unknown PROCESS INVOKED COMPLETED MICRO-OPS after it may or may not have had an effect
//   final KEY LIST                              what the key held after everything had ended
//   # any words                                 ignored, as is an empty line
//
// A micro-op is `a KEY VALUE` or `r KEY LIST`. A LIST is `1,2,3`, or `-` if it is empty, or `?` if it was not seen.
// An invocation without its completion counts as unknown: its process died in between. A completion may stand alone.
// A last line without its newline was torn by a crash and is ignored; so each life of a process writes its own file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"

namespace perdure::sim {

using Key = std::uint64_t;
using Value = std::uint64_t;

/// How an operation ended, as its client knows.
enum class Ending : std::uint8_t { kOk, kFail, kUnknown };

/// The completion time of what never completed.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// One append or one read, as a client makes it. Made by append() and read().
struct MicroOp {
  enum class Kind : std::uint8_t { kAppend, kRead };

  Kind kind;
  Key key;
  Value value = 0;                         ///< What is appended.
  std::optional<std::vector<Value>> list;  ///< What was read; empty as long as it is not known.

  bool operator==(const MicroOp&) const = default;
};

MicroOp append(Key key, Value value);
MicroOp read(Key key);
MicroOp read(Key key, std::vector<Value> list);

/// One transaction, as a client makes it.
struct Operation {
  std::uint64_t process = 0;
  std::int64_t invoked_ns = 0;
  std::int64_t completed_ns = 0;  ///< Without meaning if the ending is unknown.
  Ending ending = Ending::kUnknown;
  std::vector<MicroOp> micro_ops;

  bool operator==(const Operation&) const = default;
};

/// Many operations, packed flat: a million of them are a few large arrays and not millions of small ones.
class History {
 public:
  struct Txn {
    std::uint64_t process;
    std::int64_t invoked_ns;
    std::int64_t completed_ns;  ///< kNever if the ending is unknown.
    std::uint64_t first_step;
    std::uint32_t step_count;
    Ending ending;
    bool is_final;  ///< It stands for a final read and not for an operation of a client.
  };

  struct Step {
    enum class Kind : std::uint8_t { kAppend, kRead, kUnseenRead };

    Key key;
    std::uint64_t value_or_first;  ///< The value appended, or where the list read begins among all elements.
    std::uint32_t count;           ///< The length of the list read.
    Kind kind;
  };

  /// Adds one operation; its number is size() before the call.
  void add(const Operation& operation);
  /// Adds what `key` held after every operation had ended: every acknowledged append must be in it.
  void add_final_read(Key key, std::span<const Value> list);
  /// Adds all of `other`, such as the history that another process wrote.
  void merge(const History& other);

  std::size_t size() const { return txns_.size(); }
  std::size_t step_count() const { return steps_.size(); }
  const Txn& txn(std::size_t number) const { return txns_[number]; }
  std::span<const Step> steps(const Txn& txn) const { return {steps_.data() + txn.first_step, txn.step_count}; }
  /// The list of a step of kind kRead. Valid until something is added.
  std::span<const Value> list(const Step& step) const { return {elements_.data() + step.value_or_first, step.count}; }
  /// The operation that was added as `number`.
  Operation operation(std::size_t number) const;

 private:
  void add_step(const MicroOp& op);

  std::vector<Txn> txns_;
  std::vector<Step> steps_;
  std::vector<Value> elements_;
};

/// Formats records and hands each, with its newline, to the sink in one call.
///
/// Not thread-safe: give each thread its own writer, or guard it. For a history that is to survive the death of its
/// process the sink must have passed the record to the kernel when it returns.
/// Crash: an operation whose completion was not written counts as unknown; one whose invocation was not written must
/// not have started, or its appends look like garbage to the checker.
class HistoryWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit HistoryWriter(Sink sink) : sink_(std::move(sink)) {}

  void invoke(const Operation& operation);
  void complete(const Operation& operation);
  void final_read(Key key, std::span<const Value> list);

 private:
  Sink sink_;
  std::string line_;
};

/// The completion record of an operation, or `final ...`, without a newline.
std::string format_record(const Operation& operation);
std::string format_final_read(Key key, std::span<const Value> list);

/// "[1 2 3]", with the middle left out of a long list.
std::string show_list(std::span<const Value> list);

/// Reads a history file. `name` is put before the line number in errors; the error is kInvalidArgument.
Result<History> parse_history(std::string_view text, std::string_view name);

}  // namespace perdure::sim
