// Walking the events of a worker in the order of one of their indexes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perdure/event.h"
#include "perdure/transaction.h"

namespace perdure::queue {

/// The ids in one index of a worker, behind a place in it.
struct IndexPage {
  std::vector<Uuid> ids;
  /// For each of them, what a page that begins behind it is asked for with. A page is the last one if it has fewer ids
  /// than were asked for.
  std::vector<Bytes> places;
};
/// kPaused and kBlocked are kReady. Those that wait for a slot of their limit key come behind the other ready ones.
/// Needs system access.
IndexPage walk(Reader& reader, std::string_view space, std::string_view worker, EventState state, const Bytes& after,
               std::size_t limit);

}  // namespace perdure::queue
