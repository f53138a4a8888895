#include "queue/rules.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/worker_table.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kReasonBytesMax = 1'000;

}  // namespace

Result<void> check_rule(const RuleOptions& options) {
  if (auto good = tuple::check_text(options.reason, "the reason of a rule"); !good) return good;
  if (auto good = tuple::check_text(options.by, "who makes a rule"); !good) return good;
  if (options.reason.size() > kReasonBytesMax || options.by.size() > kReasonBytesMax)
    return fail(ErrorCode::kInvalidArgument, "the reason of a rule, and who makes it, have at most 1000 bytes each");
  if (options.until && *options.until > kLastDueTime)
    return fail(ErrorCode::kInvalidArgument, "a rule must end before the year 10000");
  return {};
}

void add_rule(Transaction& txn, std::string_view space, std::string_view worker, Rule::Type type,
              const RuleOptions& options, WallTime now) {
  WorkerTable table(txn, space, worker, now);
  auto rules = table.rules();
  if (std::ranges::any_of(rules, [type](const Rule& rule) { return rule.type == type; })) return;
  std::int64_t id = decode_counter(txn.get(rule_id_key())) + 1;
  txn.set(rule_id_key(), encode_counter(id));
  rules.push_back({id, type, options.reason, options.by, now, options.until});
  table.write_rules(rules);
  table.note_worker(type == Rule::Type::kPause ? ChangeState::kPaused : ChangeState::kBlocked);
  table.finish();
}

void remove_rule(Transaction& txn, std::string_view space, std::string_view worker, Rule::Type type, WallTime now) {
  WorkerTable table(txn, space, worker, now);
  auto rules = table.rules();
  if (std::erase_if(rules, [type](const Rule& rule) { return rule.type == type; }) == 0) return;
  table.write_rules(rules);
  table.note_no_more(type);
  if (!seeded(SeededBug::kUnpauseSilently)) table.ring();
  table.finish();
}

WorkerState state_by(const std::vector<Rule>& rules) {
  auto has = [&](Rule::Type type) {
    return std::ranges::any_of(rules, [type](const Rule& rule) { return rule.type == type; });
  };
  return has(Rule::Type::kBlock)   ? WorkerState::kBlock
         : has(Rule::Type::kPause) ? WorkerState::kPause
                                   : WorkerState::kRun;
}

}  // namespace perdure::queue
