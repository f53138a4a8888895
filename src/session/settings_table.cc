#include "session/settings_table.h"

#include <algorithm>

#include "store/system_access.h"

namespace perdure {
namespace {

constexpr std::size_t kListedMax = 1'000;
constexpr Duration kRetry = std::chrono::milliseconds(200);

}  // namespace

std::optional<Bytes> SettingsTable::read(Reader& reader, std::string_view space, std::string_view name) const {
  SystemAccess access(reader);
  return reader.get(key(space, name));
}

void SettingsTable::write(Transaction& txn, std::string_view space, std::string_view name,
                          const std::optional<Bytes>& value) const {
  SystemAccess access(txn);
  Bytes row = key(space, name);
  if (txn.get(row) == value) return;
  if (value)
    txn.set(row, *value);
  else
    txn.clear(row);
  txn.add(bell(), 1);
}

std::vector<SettingsTable::Setting> SettingsTable::list(Reader& reader, std::string_view space,
                                                        const PageOptions& page) const {
  SystemAccess access(reader);
  KeyRange range = tuple::extensions(prefix(space));
  if (!page.after.empty()) range.begin = next_key(key(space, page.after));
  std::vector<Setting> settings;
  for (Row& row : reader.get_range(range, {.limit = std::min(page.limit, kListedMax)}))
    if (auto name = tuple::unpack_after<std::string>(prefix(space), row.key))
      settings.push_back({std::string(space), std::move(std::get<0>(*name)), std::move(row.value)});
  return settings;
}

std::vector<SettingsTable::Setting> SettingsTable::all(Reader& reader) const {
  SystemAccess access(reader);
  std::vector<Setting> settings;
  for (Row& row : reader.get_range(tuple::extensions(prefix())))
    if (auto names = tuple::unpack_after<std::string, std::string>(prefix(), row.key))
      settings.push_back({std::move(std::get<0>(*names)), std::move(std::get<1>(*names)), std::move(row.value)});
  return settings;
}

void SettingsFollower::look() {
  transact(
      [table = table_](Transaction& txn) {
        SystemAccess access(txn);
        Watch bell = txn.watch(table.bell());
        Reader snapshot = txn.snapshot();
        return Seen{table.all(snapshot), std::move(bell)};
      },
      [this](Result<Seen> now, Receipt) { seen(std::move(now)); }, {});
}

void SettingsFollower::seen(Result<Seen> seen) {
  if (!seen && seen.error().code == ErrorCode::kClosed) return;
  if (!seen) return (void)at(scheduler_.now() + kRetry, [this] { look(); });
  changed_(seen->settings);
  {
    MutexLock lock(mutex_);
    bell_ = seen->bell;
  }
  seen->bell.then(guarded([this] { look(); }));
}

void SettingsFollower::stop() {
  abandon();
  Watch bell;
  {
    MutexLock lock(mutex_);
    bell = bell_;
  }
  bell.cancel();
}

}  // namespace perdure
