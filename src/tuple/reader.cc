#include <algorithm>
#include <bit>

#include "base/endian.h"
#include "perdure/tuple_reader.h"
#include "tuple/codes.h"
#include "tuple/utf8.h"

namespace perdure::tuple {
namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

std::optional<Kind> kind_of(Code code) {
  if (code >= kBigNegativeCode && code <= kBigPositiveCode) return Kind::kInteger;
  switch (code) {
    case kNullCode:
      return Kind::kNull;
    case kBytesCode:
      return Kind::kBytes;
    case kTextCode:
      return Kind::kText;
    case kTupleCode:
      return Kind::kTuple;
    case kDoubleCode:
      return Kind::kDouble;
    case kFalseCode:
    case kTrueCode:
      return Kind::kBool;
    case kUuidCode:
      return Kind::kUuid;
    case kStampCode:
      return Kind::kStamp;
    default:
      return std::nullopt;
  }
}

Code byte_at(BytesView bytes, std::size_t i) {
  return static_cast<Code>(bytes[i]);
}

}  // namespace

void Reader::fail_at(std::size_t offset, std::string what) {
  if (error_) return;
  error_ = Error{ErrorCode::kInvalidArgument,
                 "not the packed tuple that was expected: " + std::move(what) + " at byte " + std::to_string(offset)};
}

Kind Reader::peek() {
  if (error_) return Kind::kEnd;
  if (position_ == packed_.size()) {
    if (depth_ > 0) fail_at(position_, "a nested tuple is cut short");
    return Kind::kEnd;
  }
  Code code = byte_at(packed_, position_);
  if (depth_ > 0 && code == kNullCode) return rest().substr(1).starts_with(kEscape) ? Kind::kNull : Kind::kEnd;
  if (auto kind = kind_of(code)) return *kind;
  fail_at(position_, "no element starts with " + printable(rest().substr(0, 1)));
  return Kind::kEnd;
}

bool Reader::expect(Kind kind) {
  Kind found = peek();
  if (ok() && found != kind)
    fail_at(position_, std::string(name_of(found)) + " instead of " + std::string(name_of(kind)));
  return ok();
}

void Reader::next_null() {
  if (expect(Kind::kNull)) position_ += depth_ > 0 ? 2 : 1;
}

BytesView Reader::next_bytes() {
  return expect(Kind::kBytes) ? take_string(Kind::kBytes) : BytesView();
}

std::string_view Reader::next_text() {
  return expect(Kind::kText) ? take_string(Kind::kText) : std::string_view();
}

/// A zero byte is a UTF-8 character of its own, so each piece between two of them can be checked by itself, and an
/// error has the offset of the input even where zeros are escaped.
BytesView Reader::take_string(Kind kind) {
  Bytes* unescaped = nullptr;
  for (std::size_t start = position_ + 1;;) {
    std::size_t zero = packed_.find('\0', start);
    if (zero == BytesView::npos) break;
    BytesView piece = packed_.substr(start, zero - start);
    if (auto bad = kind == Kind::kText ? find_invalid_utf8(piece) : std::nullopt) {
      fail_at(start + *bad, "text that is not UTF-8");
      return {};
    }
    bool escaped = packed_.substr(zero + 1).starts_with(kEscape);
    if (escaped && !unescaped) unescaped = &unescaped_.emplace_front();
    if (unescaped) unescaped->append(piece);
    if (!escaped) {
      position_ = zero + 1;
      return unescaped ? BytesView(*unescaped) : piece;
    }
    unescaped->push_back('\0');
    start = zero + 2;
  }
  fail_at(position_, std::string(name_of(kind)) + " without an end");
  return {};
}

/// The `size` bytes that follow the code and whatever else is in the header. Empty after an error.
BytesView Reader::take_fixed(std::size_t header_size, std::size_t size, Kind kind) {
  BytesView element = rest();
  if (element.size() < header_size + size) {
    fail_at(position_, std::string(name_of(kind)) + " cut short");
    return {};
  }
  position_ += header_size + size;
  return element.substr(header_size, size);
}

double Reader::next_double() {
  if (!expect(Kind::kDouble)) return 0;
  BytesView bytes = take_fixed(1, sizeof(std::uint64_t), Kind::kDouble);
  if (!ok()) return 0;
  auto bits = load_big<std::uint64_t>(bytes.data());
  return std::bit_cast<double>((bits & kSignBit) ? bits & ~kSignBit : ~bits);
}

bool Reader::next_bool() {
  return expect(Kind::kBool) && byte_at(packed_, position_++) == kTrueCode;
}

Uuid Reader::next_uuid() {
  Uuid uuid;
  if (!expect(Kind::kUuid)) return uuid;
  BytesView bytes = take_fixed(1, uuid.bytes.size(), Kind::kUuid);
  std::copy(bytes.begin(), bytes.end(), uuid.bytes.begin());
  return uuid;
}

Stamp Reader::next_stamp() {
  if (!expect(Kind::kStamp)) return {};
  return Stamp::decode(take_fixed(1, Stamp::kSize, Kind::kStamp)).value_or(Stamp{});
}

/// Only the shortest form of each number is accepted: no leading zeros, and a length byte only where the code has no
/// room for the length.
std::optional<Reader::IntegerBytes> Reader::take_integer() {
  if (!expect(Kind::kInteger)) return std::nullopt;
  std::size_t offset = position_;
  Code code = byte_at(packed_, offset);
  IntegerBytes integer{.sign = code < kZeroCode ? Sign::kNegative : Sign::kPositive, .bytes = {}};
  auto flip = static_cast<Code>(integer.sign == Sign::kNegative ? 0xff : 0x00);
  if (code == kBigNegativeCode || code == kBigPositiveCode) {
    BytesView size = rest().substr(1, 1);
    integer.bytes = take_fixed(2, size.empty() ? 0 : byte_at(size, 0) ^ flip, Kind::kInteger);
    if (integer.bytes.size() <= kSmallMagnitude) fail_at(offset, "an integer that is not in its shortest form");
  } else {
    integer.bytes = take_fixed(1, code < kZeroCode ? kZeroCode - code : code - kZeroCode, Kind::kInteger);
  }
  if (!integer.bytes.empty() && byte_at(integer.bytes, 0) == flip)
    fail_at(offset, "an integer that is not in its shortest form");
  if (!ok()) return std::nullopt;
  return integer;
}

/// The magnitude of an integer of at most eight bytes.
std::uint64_t Reader::IntegerBytes::small() const {
  auto flip = static_cast<Code>(sign == Sign::kNegative ? 0xff : 0x00);
  std::uint64_t magnitude = 0;
  for (char byte : bytes) magnitude = magnitude << 8 | static_cast<Code>(static_cast<Code>(byte) ^ flip);
  return magnitude;
}

void Reader::refuse_range(std::size_t offset, std::string_view type) {
  fail_at(offset, "an integer that does not fit " + std::string(type));
}

std::int64_t Reader::next_int() {
  std::size_t offset = position_;
  auto integer = take_integer();
  if (!integer) return 0;
  if (integer->bytes.size() <= kSmallMagnitude) {
    std::uint64_t magnitude = integer->small();
    if (integer->sign == Sign::kNegative && magnitude <= kSignBit) return static_cast<std::int64_t>(0 - magnitude);
    if (integer->sign == Sign::kPositive && magnitude < kSignBit) return static_cast<std::int64_t>(magnitude);
  }
  refuse_range(offset, "64 bits with a sign");
  return 0;
}

std::uint64_t Reader::next_uint() {
  std::size_t offset = position_;
  auto integer = take_integer();
  if (!integer) return 0;
  if (integer->sign == Sign::kPositive && integer->bytes.size() <= kSmallMagnitude) return integer->small();
  refuse_range(offset, "64 bits without a sign");
  return 0;
}

Integer Reader::next_integer() {
  auto integer = take_integer();
  if (!integer) return {};
  Bytes magnitude(integer->bytes);
  if (integer->sign == Sign::kNegative)
    for (char& byte : magnitude) byte = static_cast<char>(~byte);
  return Integer::from_magnitude(integer->sign, magnitude).value();  // 255 bytes at most: the length is one byte.
}

void Reader::enter_tuple() {
  if (!expect(Kind::kTuple)) return;
  if (depth_ == kMaxDepth) {
    fail_at(position_, "tuples nested deeper than " + std::to_string(kMaxDepth) + " levels");
    return;
  }
  ++depth_;
  ++position_;
}

void Reader::leave_tuple() {
  if (!expect(Kind::kEnd)) return;
  if (depth_ == 0) {
    fail_at(position_, "no nested tuple to leave");
    return;
  }
  --depth_;
  ++position_;
}

Tuple Reader::take_tuple() {
  Tuple tuple;
  enter_tuple();
  while (!at_end()) tuple.push_back(next_element());
  leave_tuple();
  return tuple;
}

Element Reader::next_element() {
  switch (peek()) {
    case Kind::kBytes:
      return BlobView{next_bytes()};
    case Kind::kText:
      return next_text();
    case Kind::kTuple:
      return Element::nested(take_tuple());
    case Kind::kInteger:
      return next_integer();
    case Kind::kDouble:
      return next_double();
    case Kind::kBool:
      return next_bool();
    case Kind::kUuid:
      return next_uuid();
    case Kind::kStamp:
      return next_stamp();
    case Kind::kNull:
      next_null();
      return {};
    case Kind::kIncompleteStamp:
    case Kind::kEnd:
      break;
  }
  fail_at(position_, "the end of the tuple instead of an element");
  return {};
}

void Reader::skip_prefix(BytesView prefix) {
  if (error_) return;
  if (depth_ > 0 || !rest().starts_with(prefix)) {
    fail_at(position_, "the prefix " + printable(prefix) + " is not there");
    return;
  }
  position_ += prefix.size();
}

Result<void> Reader::finish() {
  if (depth_ > 0) fail_at(position_, "a nested tuple that was not left");
  expect(Kind::kEnd);
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace perdure::tuple
