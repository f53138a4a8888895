// What operators do to actors, and see of them. Parts of a transaction, with SystemAccess on.
#pragma once

#include <vector>

#include "actor/rows.h"

namespace perdure::actor {

/// Deletes all that there is of an actor, and fails its callers.
enum class Killed {
  kWhole,
  kPart  ///< Some of its messages and dead letters are gone; there is more.
};
Killed kill_some(Transaction& txn, const ActorId& actor, WallTime now);

/// Errors: kNotFound if there is nothing of it.
Result<ActorInfo> inspect(Reader& reader, const ActorId& actor);
std::vector<DeadLetter> dead_letters(Reader& reader, const ActorId& actor, std::size_t limit, Stamp after = {});
std::uint64_t redrive(Transaction& txn, const ActorId& actor, std::size_t limit, WallTime now);
std::vector<std::string> list(Reader& reader, std::string_view space, std::string_view kind, const ActorPage& page);

}  // namespace perdure::actor
