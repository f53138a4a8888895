// Pauses and blocks: both rules of a worker stand in one row, which every claim reads.
#pragma once

#include "perdure/event.h"
#include "perdure/transaction.h"

namespace perdure::queue {

/// Errors: kInvalidArgument.
Result<void> check_rule(const RuleOptions& options);
/// One that holds already stays as it is.
void add_rule(Transaction& txn, std::string_view space, std::string_view worker, Rule::Type type,
              const RuleOptions& options, WallTime now);
void remove_rule(Transaction& txn, std::string_view space, std::string_view worker, Rule::Type type, WallTime now);
WorkerState state_by(const std::vector<Rule>& rules);

}  // namespace perdure::queue
