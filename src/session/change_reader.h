// Reading the feed of changes: where a reader stands in it, and what comes next. See store/change_notes.h for its rows.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/changes.h"
#include "store/change_notes.h"

namespace perdure::session {

/// Behind the change with this index in the row with this stamp.
struct ChangePosition {
  Stamp stamp;
  std::uint32_t index = 0;
  auto operator<=>(const ChangePosition&) const = default;

  std::string cursor() const;
  static std::optional<ChangePosition> of(std::string_view cursor);
};

/// How far the feed of a space was cleared.
struct TrimmedRow {
  ChangePosition last;
  std::uint64_t rows = 0;

  Bytes encode() const;
  static std::optional<TrimmedRow> decode(BytesView value);
};

/// These need system access. The position that nothing before is known of: the feed was begun there, or cleared up to
/// there.
ChangePosition feed_floor(Reader& reader, std::string_view space);
/// Behind all that is there.
ChangePosition feed_end(Reader& reader, std::string_view space);
/// Errors: kInvalidArgument.
Result<ChangePage> read_feed(Reader& reader, std::string_view space, const ChangeQuery& query);

}  // namespace perdure::session
