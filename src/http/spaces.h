// Which spaces there are: those that have anything in the store.
#pragma once

#include <string>
#include <vector>

#include "perdure/transaction.h"

namespace perdure::http {

/// By name, after `after`, at most `limit`. Costs a few seeks for each, however much is in them.
std::vector<std::string> list_spaces(Reader& reader, const std::string& after, std::size_t limit);

}  // namespace perdure::http
