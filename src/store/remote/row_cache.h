// The rows of a server that this process knows, all as of one version.
//
// A server is a round trip away, so what was read or written once is kept, and kept right by the log: the cache is a
// replica of parts of the store, moved from version to version by whole batches, and never a guess. Each entry says
// what is at its key (perhaps nothing), and whether the stretch between it and the entry before it is known to be
// empty. So an index that was walked once is walked again without asking, empty stretches included.
//
// What the rows of the server do not know of yet, because it is in the log only, must stay here: such entries are
// pinned until they are folded, which is what makes it right to take any other row from the server.
//
// While somebody reads as of an older version, a view, what newer ones have replaced is kept for that view. What they
// have not touched is still what it was, so a view can even ask the server for rows.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "store/engine.h"
#include "store/remote/batch.h"
#include "store/remote/row_server.h"

namespace perdure::remote {

/// kStoreFailed, for whoever is to start this process again.
Error lost_commits(const std::string& how);

/// Not thread-safe.
class RowCache {
 public:
  explicit RowCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// What it shows.
  Version version() const { return version_; }
  Version folded() const { return folded_; }
  /// The end of the log as it was then.
  LogEnd end() const { return {version_, link_}; }
  /// How much of the log is not folded yet: the keys and values of its writes.
  std::size_t unfolded_bytes() const { return unfolded_bytes_; }
  std::size_t bytes() const { return bytes_; }

  /// Of what is shown now. Each is to be closed.
  Version open_view();
  void close_view(Version at);

  enum class Known {
    kYes,
    kNo,   ///< Ask the server.
    kLost  ///< The view is too old: begin anew with a new one.
  };
  struct Found {
    Known known = Known::kNo;
    const Versioned* row = nullptr;  ///< Null if there is none. Valid until the next change.
  };
  Found find(Version at, BytesView key);

  using Visit = std::function<bool(BytesView, const Versioned&)>;
  /// Calls `visit(key, row)` for the rows of `range` in order until it returns false: kYes, as when it comes to the
  /// end. Otherwise it has come to where nothing is known, and cuts the range down to what is left.
  Known walk(Version at, KeyRange& range, Direction direction, const Visit& visit);

  using News = std::function<void(const LogEnd& entry, const Writes& writes)>;
  /// Takes in what a server said of itself when it was asked for what came after `since`, and tells `news` of each
  /// entry that was not known; false if entries are missing between what is known and what was said, so that it had to
  /// forget everything: anything may have changed. Errors: kCorrupt; kStoreFailed if what was said does not follow on
  /// `since` or is not what is shown.
  Result<bool> advance(const LogEnd& since, const Moment& moment, const News& news);
  /// What this process has appended itself, on top of what is shown.
  void apply(Writes writes, Version version, Link link = 0);
  /// The rows know of everything up to here.
  void note_folded(Version folded);
  /// What is to be folded so that the rows know of everything that is shown.
  std::vector<FoldedRow> unfolded() const;

  /// Rows that the server gave at a moment. Answers whether they could be kept: not if so much has been folded since
  /// that a newer state of them may have come and gone here.
  bool add(const Moment& moment, BytesView key, std::optional<Versioned> row);
  /// `rows` are all that the server has in the range, in the order of their keys.
  bool add(const Moment& moment, const KeyRange& range, std::vector<Row> rows);

  /// Forgets what has not been used for long, if there is too much.
  void trim();

 private:
  struct Entry {
    /// Whether `row` says what is at the key. If not, the entry only marks where a known stretch ends.
    bool known = false;
    /// Between the entry before this one, which then exists, and this one there is no row.
    bool joined = false;
    /// Since trim() came by.
    bool used = true;
    /// When the log made it so; 0 if the rows of the server did.
    Version changed = {};
    std::optional<Versioned> row = {};
  };
  using Entries = std::map<Bytes, Entry, std::less<>>;

  /// What a view of before `until` sees at a key.
  struct Old {
    Version until;
    bool known;
    std::optional<Versioned> row;
  };

  Found find_now(BytesView key);
  Known walk_now(KeyRange& range, Direction direction, const Visit& visit);
  Known walk_forward(KeyRange& range, const Visit& visit);
  Known walk_back(KeyRange& range, const Visit& visit);
  static const Old* seen_by(Version view, const std::vector<Old>& history);
  /// What views see in place of what is there now; nothing if that is lost.
  std::optional<Writes> differences(Version at, const KeyRange& range) const;
  /// Keeps what is at the key for the views that are open.
  void keep_old(BytesView key, Version until);
  void forget_old(Version up_to);
  Result<bool> follow(const LogEnd& since, const Moment& moment, const News& news);
  /// The entry at `key`; if it was not there, it is one that only marks the place.
  Entries::iterator make(BytesView key);
  void set(BytesView key, std::optional<Versioned> row, Version changed);
  bool pinned(const Entry& entry) const { return entry.changed > folded_; }
  /// Takes an entry away that says nothing which its neighbours do not say; answers the one behind it.
  Entries::iterator drop_if_void(Entries::iterator entry);
  Entries::iterator evict(Entries::iterator entry);
  static std::size_t size_of(const Entries::value_type& entry);
  bool can_add(const Moment& moment) const;

  const std::size_t bytes_max_;
  Version version_;
  Link link_ = 0;
  Version folded_;
  Entries entries_;
  std::size_t bytes_ = 0;
  /// Each write of the log that is not folded, in its order.
  struct Unfolded {
    Version version;
    Bytes key;
    std::size_t bytes;
  };
  std::deque<Unfolded> unfolded_;
  std::size_t unfolded_bytes_ = 0;
  /// How many views there are of each version.
  std::map<Version, std::size_t> views_;
  /// Views of before this are lost.
  Version views_from_;
  std::map<Bytes, std::vector<Old>, std::less<>> old_;
  std::deque<std::pair<Version, Bytes>> old_order_;
  std::size_t old_bytes_ = 0;
  /// Where trim() goes on.
  Bytes hand_;
};

}  // namespace perdure::remote
