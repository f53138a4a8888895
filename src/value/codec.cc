// Value::encode and Value::decode.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/endian.h"
#include "perdure/value.h"
#include "tuple/utf8.h"
#include "value/format.h"

namespace perdure {
namespace {

using namespace value_format;

/// Items that a list gets room for before they are read: a list that claims more than it has costs no more than this.
constexpr std::uint64_t kReservedMax = 64;

std::size_t string_size(std::string_view string) {
  return varint_size(string.size()) + string.size();
}

void put_string(Bytes& out, std::string_view string) {
  put_varint(out, string.size());
  out += string;
}

/// Takes values from the front of the input. The first error sticks, and ends all loops.
class Decoder {
 public:
  explicit Decoder(BytesView input) : size_(input.size()), rest_(input) {}

  Value take(std::size_t depth) {
    std::size_t start = offset();
    if (rest_.empty()) return refuse("a value is missing", start);
    auto tag = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    switch (tag) {
      case kNull:
        return {};
      case kFalse:
        return false;
      case kTrue:
        return true;
      case kInteger:
        return unzigzag(take_number());
      case kDouble:
        return take_double(start);
      case kText:
        return std::string(take_text("text"));
      case kBytes:
        return Blob{Bytes(take_string())};
      case kList:
      case kMap:
        if (depth == Value::kMaxDepth) return refuse("lists and maps nested more than 64 deep", start);
        return tag == kList ? take_list(depth) : take_map(depth);
      default:
        return refuse("no value starts with " + printable(BytesView(reinterpret_cast<const char*>(&tag), 1)), start);
    }
  }

  Result<Value> take_all() {
    Value value = take(0);
    if (!error_ && !rest_.empty()) refuse("more bytes than the value has", offset());
    if (error_) return std::unexpected(std::move(*error_));
    return value;
  }

 private:
  std::size_t offset() const { return size_ - rest_.size(); }

  Value refuse(const std::string& what, std::size_t at) {
    if (!error_)
      error_ = Error{ErrorCode::kInvalidArgument,
                     "not an encoded value of perdure: " + what + " at byte " + std::to_string(at)};
    rest_ = {};
    return {};
  }

  std::uint64_t take_number() {
    std::uint64_t number = 0;
    if (take_varint(rest_, number)) return number;
    refuse("a number that is cut short, too large or not in its shortest form", offset());
    return 0;
  }

  Value take_double(std::size_t start) {
    if (rest_.size() < sizeof(double)) return refuse("a double cut short", start);
    auto bits = load_little<std::uint64_t>(rest_.data());
    rest_.remove_prefix(sizeof(double));
    return std::bit_cast<double>(bits);
  }

  std::string_view take_string() {
    std::size_t start = offset();
    std::uint64_t size = take_number();
    if (size > rest_.size()) {
      refuse("a length that is more than what follows", start);
      return {};
    }
    std::string_view string = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return string;
  }

  std::string_view take_text(std::string_view name) {
    std::string_view text = take_string();
    if (auto wrong = find_invalid_utf8(text)) {
      refuse(std::string(name) + " that is not UTF-8", offset() - text.size() + *wrong);
      return {};
    }
    return text;
  }

  /// Each item takes at least `each` bytes, so a count that cannot be true is refused before anything is done about it.
  std::uint64_t take_count(std::size_t each) {
    std::size_t start = offset();
    std::uint64_t count = take_number();
    if (count <= rest_.size() / each) return count;
    refuse("a count that is more than what follows", start);
    return 0;
  }

  Value take_list(std::size_t depth) {
    std::uint64_t count = take_count(1);
    Value::List list;
    list.reserve(std::min(count, kReservedMax));
    for (; count > 0 && !error_; --count) list.push_back(take(depth + 1));
    return list;
  }

  Value take_map(std::size_t depth) {
    std::uint64_t count = take_count(2);
    Value::Map map;
    for (; count > 0 && !error_; --count) {
      std::size_t start = offset();
      std::string_view key = take_text("a key");
      if (!map.empty() && key <= std::prev(map.end())->first && !error_)
        return refuse("a key that is not behind the one before it", start);
      auto place = map.emplace_hint(map.end(), std::string(key), Value());
      place->second = take(depth + 1);
    }
    return map;
  }

  std::size_t size_;
  BytesView rest_;
  std::optional<Error> error_;
};

}  // namespace

std::size_t Value::encoded_size() const {
  switch (kind()) {
    case Kind::kNull:
    case Kind::kBool:
      return 1;
    case Kind::kInteger:
      return 1 + varint_size(zigzag(*as_integer()));
    case Kind::kDouble:
      return 1 + sizeof(double);
    case Kind::kText:
      return 1 + string_size(*as_text());
    case Kind::kBytes:
      return 1 + string_size(as_bytes()->bytes);
    case Kind::kList:
    case Kind::kMap:
      break;
  }
  std::size_t size = 1;
  if (const List* list = as_list()) {
    size += varint_size(list->size());
    for (const Value& item : *list) size += item.encoded_size();
  } else {
    const Map& map = *as_map();
    size += varint_size(map.size());
    for (const auto& [key, entry] : map) size += string_size(key) + entry.encoded_size();
  }
  return size;
}

void Value::encode_onto(Bytes& out) const {
  auto put_tag = [&](Tag tag) { out.push_back(static_cast<char>(tag)); };
  switch (kind()) {
    case Kind::kNull:
      return put_tag(value_format::kNull);
    case Kind::kBool:
      return put_tag(*as_bool() ? kTrue : kFalse);
    case Kind::kInteger:
      put_tag(value_format::kInteger);
      return put_varint(out, zigzag(*as_integer()));
    case Kind::kDouble: {
      char bytes[sizeof(double)];
      store_little(bytes, std::bit_cast<std::uint64_t>(*as_double()));
      put_tag(value_format::kDouble);
      out.append(bytes, sizeof bytes);
      return;
    }
    case Kind::kText:
      put_tag(value_format::kText);
      return put_string(out, *as_text());
    case Kind::kBytes:
      put_tag(value_format::kBytes);
      return put_string(out, as_bytes()->bytes);
    case Kind::kList:
      put_tag(value_format::kList);
      put_varint(out, as_list()->size());
      for (const Value& item : *as_list()) item.encode_onto(out);
      return;
    case Kind::kMap:
      put_tag(value_format::kMap);
      put_varint(out, as_map()->size());
      for (const auto& [key, entry] : *as_map()) {
        put_string(out, key);
        entry.encode_onto(out);
      }
      return;
  }
}

Bytes Value::encode() const {
  Bytes out;
  out.reserve(encoded_size());
  encode_onto(out);
  return out;
}

Result<Value> Value::decode(BytesView encoded) {
  return Decoder(encoded).take_all();
}

}  // namespace perdure
