#include <algorithm>
#include <charconv>
#include <map>

#include "perdure/bytes.h"
#include "sim/history.h"

namespace perdure::sim {
namespace {

/// The words of one line, taken one after the other. The first word that does not fit ends it: `wrong` says why.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool done() const { return rest_.empty() || !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  std::string_view next(std::string_view what) {
    if (done()) return refuse("the line ends where " + std::string(what) + " should be"), std::string_view();
    std::size_t end = std::min(rest_.find(' '), rest_.size());
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }

  template <class Number>
  Number number(std::string_view what) {
    return to_number<Number>(next(what), what);
  }

  std::optional<std::vector<Value>> list() {
    std::string_view word = next("a list");
    if (word == "?") return std::nullopt;
    std::vector<Value> values;
    if (word == "-") return values;
    while (wrong_.empty()) {
      std::size_t comma = word.find(',');
      values.push_back(to_number<Value>(word.substr(0, comma), "a list"));
      if (comma == std::string_view::npos) break;
      word.remove_prefix(comma + 1);
    }
    return values;
  }

  void refuse(std::string why) {
    if (wrong_.empty()) wrong_ = std::move(why);
  }

 private:
  template <class Number>
  Number to_number(std::string_view word, std::string_view what) {
    Number number = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || end != word.data() + word.size())
      refuse("'" + printable(word) + "' where " + std::string(what) + " should be");
    return number;
  }

  std::string_view rest_;
  std::string wrong_;
};

std::vector<MicroOp> parse_micro_ops(Words& words) {
  std::vector<MicroOp> ops;
  while (!words.done()) {
    std::string_view kind = words.next("a micro-op");
    if (kind != "a" && kind != "r") {
      words.refuse("'" + printable(kind) + "' where the micro-op 'a' or 'r' should be");
      break;
    }
    ops.push_back(read(words.number<Key>("a key")));
    if (kind == "a")
      ops.back() = append(ops.back().key, words.number<Value>("a value"));
    else
      ops.back().list = words.list();
  }
  return ops;
}

class Parser {
 public:
  /// What is wrong with the line, or nothing.
  std::string line(std::string_view line, std::size_t number) {
    if (line.empty() || line.front() == '#') return {};
    Words words(line);
    std::string_view kind = words.next("a record");
    if (kind == "invoke")
      invocation(words, number);
    else if (kind == "ok")
      completion(words, Ending::kOk);
    else if (kind == "fail")
      completion(words, Ending::kFail);
    else if (kind == "unknown")
      completion(words, Ending::kUnknown);
    else if (kind == "final")
      final_read(words);
    else
      words.refuse("'" + printable(kind) + "' is no kind of record");
    return words.wrong();
  }

  /// Whoever is still waiting for a completion will never have one.
  History finish() {
    std::map<std::size_t, const Operation*> by_line;
    for (const auto& [id, pending] : pending_) by_line.emplace(pending.line, &pending.operation);
    for (const auto& [line, operation] : by_line) history_.add(*operation);
    return std::move(history_);
  }

 private:
  struct Pending {
    std::size_t line;
    Operation operation;
  };
  /// A process may have several operations under way: the time of invocation tells them apart.
  using OperationId = std::pair<std::uint64_t, std::int64_t>;

  static Operation start(Words& words) {
    Operation operation;
    operation.process = words.number<std::uint64_t>("a process");
    operation.invoked_ns = words.number<std::int64_t>("the time of invocation");
    if (operation.invoked_ns >= kNever - 1) words.refuse("the time of invocation is the end of time");
    return operation;
  }

  void invocation(Words& words, std::size_t number) {
    Operation operation = start(words);
    operation.micro_ops = parse_micro_ops(words);
    if (!words.wrong().empty()) return;
    OperationId id{operation.process, operation.invoked_ns};
    auto [place, fresh] = pending_.try_emplace(id, Pending{number, std::move(operation)});
    if (!fresh)
      words.refuse("the same process invoked another operation at the same time in line " +
                   std::to_string(place->second.line) + ", which has not completed");
  }

  void completion(Words& words, Ending ending) {
    Operation operation = start(words);
    operation.ending = ending;
    operation.completed_ns = words.number<std::int64_t>("the time of completion");
    operation.micro_ops = parse_micro_ops(words);
    if (operation.completed_ns < operation.invoked_ns) words.refuse("the operation completed before it was invoked");
    if (!words.wrong().empty()) return;
    pending_.erase({operation.process, operation.invoked_ns});
    history_.add(operation);
  }

  void final_read(Words& words) {
    Key key = words.number<Key>("a key");
    std::optional<std::vector<Value>> list = words.list();
    if (!words.done() || !list) words.refuse("a final read is one key and its list");
    if (words.wrong().empty()) history_.add_final_read(key, *list);
  }

  History history_;
  std::map<OperationId, Pending> pending_;
};

}  // namespace

Result<History> parse_history(std::string_view text, std::string_view name) {
  Parser parser;
  std::size_t number = 0;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    ++number;
    std::string wrong = parser.line(text.substr(0, end), number);
    if (!wrong.empty())
      return fail(ErrorCode::kInvalidArgument, std::string(name) + ":" + std::to_string(number) + ": " + wrong);
  }
  return parser.finish();
}

}  // namespace perdure::sim
