#include "perdure/value.h"

#include <bit>
#include <stdexcept>

#include "tuple/utf8.h"
#include "value/format.h"

namespace perdure {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kShownMax = 40;

/// Looks at a value and all in it, keeping the path to the place where it is only by its parts: it is put together only
/// if something is wrong there.
struct Checker {
  struct Step {
    const Step* above;
    const std::string* key;  ///< Of an entry; null for an item of a list, which has an index.
    std::size_t index;
  };

  std::string_view what;

  std::string path_to(const Step* step) const {
    std::string path = step->above == nullptr ? std::string(what) : path_to(step->above);
    if (step->key != nullptr) {
      append_key(path, *step->key);
    } else {
      append_index(path, step->index);
    }
    return path;
  }

  std::unexpected<Error> refuse(const Step* at, const std::string& why) const {
    return fail(ErrorCode::kInvalidArgument, (at == nullptr ? std::string(what) : path_to(at)) + ": " + why);
  }

  Result<void> text(std::string_view text, const Step* at, std::string_view name) const {
    auto offset = find_invalid_utf8(text);
    if (!offset) return {};
    return refuse(at, std::string(name) + " that is not UTF-8 at byte " + std::to_string(*offset));
  }

  Result<void> value(const Value& value, const Step* at, std::size_t depth) const {
    if (const auto* held = value.as_text()) return text(*held, at, "text");
    if (!value.is_list() && !value.is_map()) return {};
    if (depth == Value::kMaxDepth)
      return refuse(at,
                    "lists and maps nested more than " + std::to_string(Value::kMaxDepth) + " deep; make it flatter");
    if (const auto* list = value.as_list()) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        Step step{at, nullptr, i};
        if (auto good = this->value((*list)[i], &step, depth + 1); !good) return good;
      }
      return {};
    }
    for (const auto& [key, entry] : *value.as_map()) {
      if (auto good = text(key, at, "a key"); !good) return good;
      Step step{at, &key, 0};
      if (auto good = this->value(entry, &step, depth + 1); !good) return good;
    }
    return {};
  }
};

bool is_plain(std::string_view key) {
  for (char c : key)
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-') return false;
  return !key.empty() && key.size() <= kShownMax;
}

}  // namespace

void append_key(std::string& path, std::string_view key) {
  if (is_plain(key)) {
    path += '.';
    path += key;
  } else {
    path += "[\"" + printable(key, kShownMax) + "\"]";
  }
}

void append_index(std::string& path, std::size_t index) {
  path += '[' + std::to_string(index) + ']';
}

std::string_view name_of(Value::Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
      return "an integer";
    case Kind::kDouble:
      return "a double";
    case Kind::kText:
      return "text";
    case Kind::kBytes:
      return "bytes";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "nothing";
}

std::string describe_found(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kNull:
      return value.to_json();
    case Kind::kInteger:
      return "integer " + value.to_json();
    case Kind::kDouble:
      return "double " + value.to_json();
    case Kind::kText:
      return "text \"" + printable(*value.as_text(), kShownMax) + '"';
    case Kind::kBytes:
      return std::to_string(value.as_bytes()->bytes.size()) + " bytes";
    case Kind::kList:
    case Kind::kMap:
      break;
  }
  return std::string(name_of(value.kind()));
}

const Value* Value::find(std::string_view key) const {
  const Map* map = as_map();
  if (map == nullptr) return nullptr;
  auto found = map->find(key);
  return found == map->end() ? nullptr : &found->second;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) held_.emplace<Map>();
  Map* map = as_map();
  if (map == nullptr)
    throw std::invalid_argument("no entry " + printable(key, kShownMax) + " in " + describe_found(*this) +
                                ": only a map has entries");
  auto place = map->lower_bound(key);
  if (place == map->end() || place->first != key) place = map->emplace_hint(place, std::string(key), Value());
  return place->second;
}

bool Value::operator==(const Value& other) const {
  if (kind() != other.kind()) return false;
  if (const double* number = as_double())
    return std::bit_cast<std::uint64_t>(*number) == std::bit_cast<std::uint64_t>(*other.as_double());
  return held_ == other.held_;
}

Result<void> Value::check(std::string_view what) const {
  return Checker{what}.value(*this, nullptr, 0);
}

}  // namespace perdure
