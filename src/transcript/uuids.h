// Each uuid is stored once in a space.
//
// The row of a uuid says which entry has it: the 812th that was read of session 7, say. A session counts all its
// entries, those of which nothing is kept too, so a row is true once its session has read so far.
//
// Uuids come in no order. Each row that is written by itself changes a page of the store of its own, which would cost
// more than all the text of a long transcript. So the uuids of a long stretch are booked ahead: they are read first,
// and their rows are written sorted, many to a page. The entries are stored afterwards, and find their rows there.
// Until then such a row is not true, and keeps nobody from storing the uuid first.
//
// What is booked is listed among the data of the session until its stretch is stored. Whatever a crash, or a file that
// changed meanwhile, leaves of it is cleared by that list: a row that is not true yet must never become so by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "perdure/time.h"
#include "perdure/transaction.h"
#include "transcript/entry.h"
#include "transcript/lines.h"

namespace perdure::transcript {

/// The entry of a session that has a uuid.
struct UuidOwner {
  std::uint64_t session = 0;
  std::uint64_t entry = 0;
  bool operator==(const UuidOwner&) const = default;
};

/// By the row of the uuid, if there is one.
std::optional<UuidOwner> decode_owner(const std::optional<Bytes>& row);
/// `key` is that of a uuid. Needs system access, as all that follows.
void write_owner(Transaction& txn, BytesView key, const UuidOwner& owner);
/// Whether the message of the owner is stored, if that is another session.
bool is_stored(Transaction& txn, std::string_view space, const UuidOwner& owner);
/// Clears those of the rows that are of entries of the session behind the entry `after`.
void clear_owned(Transaction& txn, std::string_view space, std::span<const std::string> uuids, std::uint64_t session,
                 std::uint64_t after);

/// Whether an entry has a message, and so needs its uuid for itself.
bool has_message(const Entry& entry);

/// Entries that were read ahead.
struct Stretch {
  /// The last entry before them.
  std::uint64_t before = 0;
  /// As keys have them (key_text, which leaves them as they are when it is asked again), in the order of the entries;
  /// empty for an entry that needs none.
  std::vector<std::string> uuids = {};
  /// Behind them, in the file.
  std::uint64_t end = 0;

  std::uint64_t last() const { return before + uuids.size(); }
  /// Empty if it is not among them.
  std::string_view uuid_of(std::uint64_t entry) const;
  /// Its entries that need a uuid, in the order of those; of equal ones the first first.
  std::vector<std::uint32_t> sorted() const;
};
/// Reads on to the end of the file, or until it is enough, or there are so many entries, or more than memory shall
/// hold. Those with a time up to `oldest` will not be stored. Errors: those of the file.
Result<Stretch> read_ahead(LineReader& lines, std::uint64_t before, std::size_t entries_max, WallTime oldest,
                           const std::function<bool()>& enough);

/// Books those of the entries `which` of the stretch that nobody has. `place` is where they stand in its order. Errors
/// of the transaction: kNotFound if the session is gone, kStaleToken if it has read other entries meanwhile.
void book(Transaction& txn, std::string_view space, std::uint64_t session, const Stretch& stretch,
          std::span<const std::uint32_t> which, std::size_t place);
/// The stretch is stored: the list goes.
void close_bookings(Transaction& txn, std::string_view space, std::uint64_t session);
/// Clears some of what is booked and was never stored; whether there is more.
bool cancel_bookings(Transaction& txn, std::string_view space, std::uint64_t session);
/// The uuids that a row of the list has. Errors: kCorrupt.
Result<std::vector<std::string>> booked_uuids(BytesView row);

}  // namespace perdure::transcript
