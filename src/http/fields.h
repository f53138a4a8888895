// The fields of a JSON object that somebody sent, read one by one.
//
//     Fields fields(body, "the event");
//     auto worker = fields.required_text("worker");
//     auto delay = fields.duration("delay");
//     if (auto good = fields.finish(); !good) return std::unexpected(good.error());
//
// The first thing that is wrong is remembered, and whatever is read after it is empty; finish() answers with it. It
// also refuses fields that nobody has asked for, so that a misspelt one is not silently without effect.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/event.h"
#include "perdure/time.h"
#include "perdure/uuid.h"
#include "perdure/value.h"

namespace perdure::http {

class Fields {
 public:
  /// `what` stands in messages. A null counts as an object without fields. `value` outlives this.
  Fields(const Value& value, std::string what);

  std::optional<std::string> text(std::string_view name);
  std::string required_text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  /// From `least` to `most`.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least = 0,
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view name);
  std::optional<Duration> duration(std::string_view name);
  std::optional<DueTime> time(std::string_view name);
  std::optional<Rate> rate(std::string_view name);
  std::optional<Uuid> uuid(std::string_view name);
  std::optional<Token> token(std::string_view name);
  /// Whatever it is; null if it is not there.
  const Value* any(std::string_view name);
  /// A list of at most `most`; null if it is not there.
  const Value::List* list(std::string_view name, std::size_t most = 1'000);
  const Value::Map* map(std::string_view name);
  bool has(std::string_view name) const;

  /// Remembers that something is wrong with a field.
  void refuse(std::string_view name, std::string_view why);
  void refuse(Error error);
  [[nodiscard]] Result<void> finish();

 private:
  /// The field, if it is there, not null, and nothing is wrong so far.
  const Value* take(std::string_view name);
  void refuse_type(std::string_view name, std::string_view wanted, const Value& found);
  template <class T>
  std::optional<T> keep(Result<T> result);
  std::string where(std::string_view name) const;

  const Value& value_;
  const std::string what_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> wrong_;
};

/// For what takes no fields at all. Errors: kInvalidArgument.
Result<void> no_fields(const Value& body);

}  // namespace perdure::http
