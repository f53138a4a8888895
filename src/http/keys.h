// Rows of the application's own, which the API reads and writes: values by space and key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "perdure/transaction.h"
#include "perdure/value.h"

namespace perdure::http {

struct StoredKey {
  std::string key;
  Value value;
  Version version;
};

/// 1 to 200 bytes of UTF-8 without control characters, not "." or "..". Errors: kInvalidArgument.
Result<void> check_app_key(std::string_view key);
/// Errors: kCorrupt.
Result<std::optional<StoredKey>> get_key(Reader& reader, const std::string& space, const std::string& key);
struct KeyList {
  std::vector<StoredKey> keys;
  /// The key to go on after; empty if that were all.
  std::string next;
};
/// As many as were asked for; fewer if their values are large.
Result<KeyList> list_keys(Reader& reader, const std::string& space, const std::string& prefix, const std::string& after,
                          std::size_t limit);
/// Errors: kTooLarge.
Result<void> set_key(Transaction& txn, const std::string& space, const std::string& key, const Value& value);
void clear_key(Transaction& txn, const std::string& space, const std::string& key);

}  // namespace perdure::http
