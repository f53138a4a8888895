// Debouncers by name: their settings, pauses and listings. What takes a transaction needs system access.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "debounce/rows.h"

namespace perdure::debounce {

/// Errors: kInvalidArgument.
Result<void> check_names(std::string_view space, std::string_view name);
Result<void> check_key(std::string_view key);
/// Whether a run can have it. Errors: kInvalidArgument, kTooLarge.
Result<void> check_payload(const Value& payload);
/// Fills in the worker. Errors: kInvalidArgument, with the setting that cannot be.
Result<DebounceSettings> check_settings(std::string_view name, DebounceSettings settings);

void set(Transaction& txn, std::string_view space, std::string_view name, const DebounceSettings& settings,
         WallTime now);
/// Errors of these: kNotFound.
Result<DebouncerInfo> get(Reader& reader, std::string_view space, std::string_view name);
Result<std::vector<DebouncerInfo>> list(Reader& reader, std::string_view space, const PageOptions& page);
Result<void> pause(Transaction& txn, std::string_view space, std::string_view name, const PauseOptions& why,
                   WallTime now);
Result<void> unpause(Transaction& txn, std::string_view space, std::string_view name, WallTime now);
/// The debouncer at the first call, and some of its windows at each. Answers with the key to go on after, if there may
/// be more. Runs stay, so that there is no second one of their keys if the debouncer is made again.
Result<std::optional<std::string>> remove_some(Transaction& txn, std::string_view space, std::string_view name,
                                               const std::optional<std::string>& after, WallTime now);

Result<DebounceKey> key_state(Reader& reader, const Place& place, std::uint64_t store_number);
Result<std::vector<DebounceKey>> list_keys(Reader& reader, std::string_view space, std::string_view name,
                                           const PageOptions& page, std::uint64_t store_number);

}  // namespace perdure::debounce
