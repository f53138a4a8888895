// The rows of sessions and leases, all of them among perdure's own keys; see docs/internals/key_layout.md.
//
//     ("session", "open", id)              -> ttl, presence, name   while it is open; renewals never touch it
//     ("session", "beat", id)              -> number of the last renewal
//     ("session", "held", id, kind, ...)   -> what that kind says   for each thing that it holds, or held at its end
//     ("session", "held", id, "lease", n)  -> the token             the first of these kinds
//     ("session", "ended", id)             -> nothing               until what it held is swept
//     ("lease", name)                      -> session, token        held if that session is open, free otherwise
//     ("store")                            -> a number that tells stores apart
//     ("clock")                            -> the latest store time that anybody acted upon
#pragma once

#include <optional>
#include <string>

#include "perdure/session.h"
#include "perdure/tuple.h"
#include "store/ranges.h"

namespace perdure::session {

inline Bytes open_key(SessionId id) {
  return tuple::pack_onto(kSystemKeys, "session", "open", id.stamp);
}
inline Bytes beat_key(SessionId id) {
  return tuple::pack_onto(kSystemKeys, "session", "beat", id.stamp);
}
inline Bytes ended_key(SessionId id) {
  return tuple::pack_onto(kSystemKeys, "session", "ended", id.stamp);
}
/// The kind of held rows that leases have. See sweep.h for those of other parts.
inline constexpr std::string_view kLeaseKind = "lease";
inline Bytes held_prefix(SessionId id) {
  return tuple::pack_onto(kSystemKeys, "session", "held", id.stamp);
}
/// The row of one thing that the session holds: without `rest`, what all of its kind begin with. Whoever writes one
/// reads in the same transaction that the session is open, so that none comes after its end.
template <class... Rest>
Bytes held_key(SessionId id, std::string_view kind, const Rest&... rest) {
  return tuple::pack_onto(kSystemKeys, "session", "held", id.stamp, kind, rest...);
}
inline Bytes lease_key(std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "lease", name);
}
inline Bytes store_key() {
  return tuple::pack_onto(kSystemKeys, "store");
}
inline Bytes clock_key() {
  return tuple::pack_onto(kSystemKeys, "clock");
}

/// The ids of the rows ("session", table, id); rows that are none of ours are skipped.
std::optional<SessionId> id_of(std::string_view table, BytesView key);
KeyRange table_range(std::string_view table);

struct OpenRow {
  Duration ttl = {};
  Bytes presence;
  std::string name;

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<OpenRow> decode(BytesView value);
};

struct LeaseRow {
  SessionId session;
  Stamp token;

  /// The row of a lease that is being taken: the commit fills in the token.
  static Stamped taken_by(SessionId session);
  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<LeaseRow> decode(BytesView value);
  bool operator==(const LeaseRow&) const = default;
};

/// The row of `name`, nothing if there is none. Leaves the body if it is damaged. These need SystemAccess.
std::optional<LeaseRow> read_lease(Reader& reader, std::string_view name);
std::optional<OpenRow> read_open(Reader& reader, SessionId id);
bool is_open(Reader& reader, SessionId id);
/// From here on everything that the session holds is free.
void end_rows(Transaction& txn, SessionId id);
/// What tells this store from all others; 0 if no session has ever been opened in it.
std::uint64_t read_store_number(Reader& reader);

/// Errors: kInvalidArgument with the limit and the place.
Result<void> check_name(std::string_view name, std::string_view what);
/// The same for names that stand in URLs and metrics: 1 to 64 of A-Za-z0-9._:-, beginning with a letter or digit.
Result<void> check_short_name(std::string_view name, std::string_view what);
/// A trace context that is carried along; empty for none.
Result<void> check_traceparent(std::string_view traceparent);

}  // namespace perdure::session
