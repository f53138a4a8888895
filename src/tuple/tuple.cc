#include "perdure/tuple.h"

#include "tuple/codes.h"
#include "tuple/utf8.h"

namespace perdure::tuple {
namespace {

/// Whether `tuple` may be packed, and the number of incomplete stamps in it.
Result<std::size_t> examine(const Tuple& tuple, std::size_t depth) {
  if (depth > kMaxDepth)
    return fail(ErrorCode::kInvalidArgument,
                "tuples are nested deeper than " + std::to_string(kMaxDepth) + " levels, which no key may be");
  std::size_t holes = 0;
  for (const Element& element : tuple) {
    if (auto* text = std::get_if<std::string>(&element.value)) {
      if (auto checked = check_text(*text, "a text in the tuple"); !checked) return std::unexpected(checked.error());
    } else if (auto* inner = std::get_if<Tuple>(&element.value)) {
      auto inner_holes = examine(*inner, depth + 1);
      if (!inner_holes) return inner_holes;
      holes += *inner_holes;
    } else if (element.kind() == Kind::kIncompleteStamp) {
      ++holes;
    }
  }
  return holes;
}

Result<void> require_holes(const Tuple& tuple, std::size_t wanted) {
  auto holes = examine(tuple, 0);
  if (!holes) return std::unexpected(holes.error());
  if (*holes == wanted) return {};
  return fail(ErrorCode::kInvalidArgument,
              "incomplete stamps in the tuple: " + std::to_string(*holes) + " instead of " + std::to_string(wanted));
}

}  // namespace

KeyRange extensions(BytesView packed) {
  // Every element starts with a byte below kEscape, and kEscape itself would turn a final zero into an escaped one:
  // neither end takes in a tuple that merely has a longer string in the same place.
  KeyRange range{Bytes(packed), Bytes(packed)};
  range.begin.push_back(static_cast<char>(kNullCode));
  range.end.push_back(kEscape);
  return range;
}

Result<void> append(Bytes& out, const Tuple& tuple) {
  if (auto ready = require_holes(tuple, 0); !ready) return ready;
  internal::Encoder encoder(out);
  for (const Element& element : tuple) encoder.put_element(element);
  return {};
}

Result<Bytes> pack(const Tuple& tuple) {
  Bytes out;
  if (auto packed = append(out, tuple); !packed) return std::unexpected(packed.error());
  return out;
}

Result<Stamped> pack_stamped(const Tuple& tuple) {
  if (auto ready = require_holes(tuple, 1); !ready) return std::unexpected(ready.error());
  Bytes out;
  internal::Encoder encoder(out);
  for (const Element& element : tuple) encoder.put_element(element);
  return encoder.take_stamped();
}

Result<Tuple> unpack(BytesView packed) {
  Tuple tuple;
  Reader reader(packed);
  while (!reader.at_end()) tuple.push_back(reader.next_element());
  if (auto read = reader.finish(); !read) return std::unexpected(read.error());
  return tuple;
}

Result<void> check_text(std::string_view text, std::string_view what) {
  if (auto offset = find_invalid_utf8(text))
    return fail(ErrorCode::kInvalidArgument, std::string(what) + " is not UTF-8 at byte " + std::to_string(*offset) +
                                                 ": \"" + printable(text) + "\"");
  return {};
}

}  // namespace perdure::tuple
