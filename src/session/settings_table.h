// Settings that every daemon on a store goes by: a row for each name of a space, and a bell that is rung when one
// changes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/session.h"
#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "runtime/mutex.h"
#include "store/ranges.h"
#include "store/store_part.h"

namespace perdure {

/// The rows ("NAME", space, name), and the counter ("NAME-bell"). See docs/internals/key_layout.md.
class SettingsTable {
 public:
  struct Setting {
    std::string space;
    std::string name;
    Bytes value;
    bool operator==(const Setting&) const = default;
  };

  explicit constexpr SettingsTable(std::string_view name) : name_(name) {}

  std::optional<Bytes> read(Reader& reader, std::string_view space, std::string_view name) const;
  /// Nothing removes it. Writing what is there already changes nothing, and rings no bell.
  void write(Transaction& txn, std::string_view space, std::string_view name, const std::optional<Bytes>& value) const;
  /// By name, at most 1,000 at once.
  std::vector<Setting> list(Reader& reader, std::string_view space, const PageOptions& page) const;
  /// Those of all spaces.
  std::vector<Setting> all(Reader& reader) const;
  Bytes bell() const { return tuple::pack_onto(kSystemKeys, std::string(name_) + "-bell"); }

 private:
  Bytes prefix() const { return tuple::pack_onto(kSystemKeys, name_); }
  Bytes prefix(std::string_view space) const { return tuple::pack_onto(kSystemKeys, name_, space); }
  Bytes key(std::string_view space, std::string_view name) const {
    return tuple::pack_onto(kSystemKeys, name_, space, name);
  }

  std::string_view name_;
};

/// Tells its owner all rows of a table, at first and after each change, whoever made it. One call at a time.
class SettingsFollower : public StorePart<SettingsFollower> {
 public:
  /// Called on one of the store's threads, where nothing may block.
  using Changed = std::function<void(const std::vector<SettingsTable::Setting>&)>;

  SettingsFollower(Store& store, SettingsTable table, Changed changed)
      : StorePart(store, "the settings"), table_(table), changed_(std::move(changed)) {}

  void start() { look(); }
  /// Nothing is called any more once this returns. Not in a callback of the store.
  void stop() PERDURE_EXCLUDES(mutex_);

 private:
  struct Seen {
    std::vector<SettingsTable::Setting> settings;
    Watch bell;
  };
  void look();
  void seen(Result<Seen> seen) PERDURE_EXCLUDES(mutex_);

  const SettingsTable table_;
  const Changed changed_;
  Mutex mutex_;
  Watch bell_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
