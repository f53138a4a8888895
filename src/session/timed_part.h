// What moves time needs of the parts of a node: see node/advance.h.
#pragma once

#include <cstdint>
#include <optional>

#include "perdure/time.h"
#include "perdure/transaction.h"

namespace perdure {

/// A part that does things when they are due, or when there is work for it. Thread-safe.
class TimedPart {
 public:
  struct Activity {
    /// Something of it is under way in this process.
    bool busy = false;
    /// How often something was begun: what came and went between two looks shows in this.
    std::uint64_t begun = 0;
  };

  virtual ~TimedPart() = default;
  /// When time must stop for it next: the first moment that something is due which this node would see to. Needs system
  /// access, as `has_work` does.
  virtual std::optional<WallTime> next_due(Reader& reader) = 0;
  /// Whether the store has something that this node would do without time going on. Nothing that it is held from.
  virtual bool has_work(Reader& reader, WallTime now) = 0;
  virtual Activity activity_now() { return {}; }
  /// Time has moved: looks for what is due.
  virtual void look() = 0;
};

/// For what wires a node together: what is behind the public class of a part.
struct PartAccess {
  template <class Part>
  static auto& impl(Part& part) {
    return *part.impl_;
  }
};

/// The earlier of the two that there are.
inline std::optional<WallTime> earlier(std::optional<WallTime> one, std::optional<WallTime> other) {
  if (!one || !other) return one ? one : other;
  return *one < *other ? one : other;
}

}  // namespace perdure
