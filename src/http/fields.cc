#include "http/fields.h"

#include "http/units.h"

namespace perdure::http {

Fields::Fields(const Value& value, std::string what) : value_(value), what_(std::move(what)) {
  if (!value.is_null() && !value.is_map())
    wrong_ = Error{ErrorCode::kInvalidArgument, what_ + " must be a JSON object, and not " + describe_found(value)};
}

std::string Fields::where(std::string_view name) const {
  return "'" + std::string(name) + "' of " + what_;
}

const Value* Fields::take(std::string_view name) {
  asked_.emplace(name);
  if (wrong_) return nullptr;
  const Value* found = value_.find(name);
  return found && !found->is_null() ? found : nullptr;
}

void Fields::refuse(std::string_view name, std::string_view why) {
  refuse(Error{ErrorCode::kInvalidArgument, where(name) + " " + std::string(why)});
}

void Fields::refuse(Error error) {
  if (!wrong_) wrong_ = std::move(error);
}

void Fields::refuse_type(std::string_view name, std::string_view wanted, const Value& found) {
  refuse(name, "must be " + std::string(wanted) + ", and not " + describe_found(found));
}

template <class T>
std::optional<T> Fields::keep(Result<T> result) {
  if (result) return std::move(*result);
  refuse(std::move(result.error()));
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Value* found = take(name);
  if (!found) return std::nullopt;
  if (found->is_text()) return *found->as_text();
  refuse_type(name, "a text", *found);
  return std::nullopt;
}

std::string Fields::required_text(std::string_view name) {
  auto found = text(name);
  if (!found) refuse(name, "is missing");
  return found.value_or("");
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Value* found = take(name);
  if (!found) return std::nullopt;
  if (found->is_bool()) return *found->as_bool();
  refuse_type(name, "true or false", *found);
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const Value* found = take(name);
  if (!found) return std::nullopt;
  const std::int64_t* integer = found->as_integer();
  if (integer && *integer >= least && *integer <= most) return *integer;
  bool bounded = most != std::numeric_limits<std::int64_t>::max();
  refuse_type(name,
              "a whole number " + (bounded ? "from " + std::to_string(least) + " to " + std::to_string(most)
                                           : "of at least " + std::to_string(least)),
              *found);
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view name) {
  const Value* found = take(name);
  if (!found) return std::nullopt;
  if (const std::int64_t* integer = found->as_integer()) return static_cast<double>(*integer);
  if (const double* number = found->as_double()) return *number;
  refuse_type(name, "a number", *found);
  return std::nullopt;
}

std::optional<Duration> Fields::duration(std::string_view name) {
  const Value* found = take(name);
  if (!found) return std::nullopt;
  return keep(read_duration(*found, where(name)));
}

std::optional<DueTime> Fields::time(std::string_view name) {
  auto found = text(name);
  if (!found) return std::nullopt;
  return keep(parse_time(*found, where(name)));
}

std::optional<Rate> Fields::rate(std::string_view name) {
  auto found = text(name);
  if (!found) return std::nullopt;
  return keep(parse_rate(*found, where(name)));
}

std::optional<Uuid> Fields::uuid(std::string_view name) {
  auto found = text(name);
  if (!found) return std::nullopt;
  return keep(Uuid::parse(*found));
}

std::optional<Token> Fields::token(std::string_view name) {
  auto found = text(name);
  if (!found) return std::nullopt;
  return keep(Token::parse(*found));
}

const Value* Fields::any(std::string_view name) {
  asked_.emplace(name);
  return wrong_ ? nullptr : value_.find(name);
}

const Value::List* Fields::list(std::string_view name, std::size_t most) {
  const Value* found = take(name);
  if (!found) return nullptr;
  const Value::List* list = found->as_list();
  if (!list) refuse_type(name, "an array", *found);
  if (list && list->size() > most)
    refuse({ErrorCode::kTooLarge, where(name) + " has " + std::to_string(list->size()) + " items; at most " +
                                      std::to_string(most) + " are allowed at once"});
  return wrong_ ? nullptr : list;
}

const Value::Map* Fields::map(std::string_view name) {
  const Value* found = take(name);
  if (!found) return nullptr;
  if (!found->is_map()) refuse_type(name, "an object", *found);
  return wrong_ ? nullptr : found->as_map();
}

bool Fields::has(std::string_view name) const {
  const Value* found = value_.find(name);
  return found && !found->is_null();
}

Result<void> no_fields(const Value& body) {
  return Fields(body, "the request").finish();
}

Result<void> Fields::finish() {
  if (wrong_) return std::unexpected(*wrong_);
  if (const Value::Map* map = value_.as_map())
    for (const auto& [name, ignored] : *map)
      if (!asked_.contains(name)) {
        std::string known;
        for (const std::string& each : asked_) known += (known.empty() ? "" : ", ") + each;
        return fail(ErrorCode::kInvalidArgument,
                    where(name) + " is not known; there " + (known.empty() ? "are none" : "are: " + known));
      }
  return {};
}

}  // namespace perdure::http
