#include <bit>

#include "base/endian.h"
#include "perdure/tuple.h"
#include "tuple/codes.h"

namespace perdure::tuple::internal {
namespace {

void push(Bytes& out, Code code) {
  out.push_back(static_cast<char>(code));
}

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

}  // namespace

void Encoder::put_null() {
  push(out_, kNullCode);
  if (depth_ > 0) out_.push_back(kEscape);  // A bare zero would end the nested tuple.
}

void Encoder::put_string(unsigned char code, BytesView bytes) {
  push(out_, code);
  for (std::size_t zero; (zero = bytes.find('\0')) != BytesView::npos; bytes.remove_prefix(zero + 1)) {
    out_.append(bytes.substr(0, zero + 1));
    out_.push_back(kEscape);
  }
  out_.append(bytes);
  out_.push_back(kTerminator);
}

void Encoder::put_text(std::string_view text) {
  put_string(kTextCode, text);
}

void Encoder::put_bytes(BytesView bytes) {
  put_string(kBytesCode, bytes);
}

void Encoder::put_int(std::int64_t value) {
  auto bits = static_cast<std::uint64_t>(value);
  put_magnitude(value < 0 ? Sign::kNegative : Sign::kPositive, value < 0 ? 0 - bits : bits);
}

void Encoder::put_uint(std::uint64_t value) {
  put_magnitude(Sign::kPositive, value);
}

void Encoder::put_magnitude(Sign sign, std::uint64_t magnitude) {
  auto size = static_cast<std::size_t>(std::bit_width(magnitude) + 7) / 8;
  bool negative = sign == Sign::kNegative;
  char bytes[sizeof magnitude];
  store_big(bytes, negative ? ~magnitude : magnitude);
  push(out_, static_cast<Code>(negative ? kZeroCode - size : kZeroCode + size));
  out_.append(bytes + sizeof bytes - size, size);
}

void Encoder::put_integer(const Integer& value) {
  BytesView magnitude = value.magnitude();
  bool negative = value.sign() == Sign::kNegative;
  auto flip = static_cast<Code>(negative ? 0xff : 0x00);
  auto size = static_cast<Code>(magnitude.size());
  if (magnitude.size() <= kSmallMagnitude) {
    push(out_, static_cast<Code>(negative ? kZeroCode - size : kZeroCode + size));
  } else {
    push(out_, negative ? kBigNegativeCode : kBigPositiveCode);
    push(out_, size ^ flip);
  }
  for (char byte : magnitude) push(out_, static_cast<Code>(byte) ^ flip);
}

void Encoder::put_double(double value) {
  // As an integer, the bits of a positive double sort as the doubles do; those of a negative one the other way round.
  auto bits = std::bit_cast<std::uint64_t>(value);
  char bytes[sizeof bits];
  store_big(bytes, (bits & kSignBit) ? ~bits : bits | kSignBit);
  push(out_, kDoubleCode);
  out_.append(bytes, sizeof bytes);
}

void Encoder::put_bool(bool value) {
  push(out_, value ? kTrueCode : kFalseCode);
}

void Encoder::put_uuid(const Uuid& value) {
  push(out_, kUuidCode);
  out_.append(value.bytes.begin(), value.bytes.end());
}

void Encoder::put_stamp(Stamp value) {
  push(out_, kStampCode);
  auto bytes = value.encode();
  out_.append(bytes.data(), bytes.size());
}

void Encoder::put_hole(IncompleteStamp value) {
  push(out_, kStampCode);
  hole_at_ = out_.size();
  hole_order_ = value.order;
}

void Encoder::open_tuple() {
  push(out_, kTupleCode);
  ++depth_;
}

void Encoder::close_tuple() {
  out_.push_back(kTerminator);
  --depth_;
}

void Encoder::put_element(const Element& element) {
  auto put_value = [this](const auto& value) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, Tuple>) {
      open_tuple();
      for (const Element& inner : value) put_element(inner);
      close_tuple();
    } else {
      put(value);
    }
  };
  std::visit(put_value, element.value);
}

Stamped Encoder::take_stamped() {
  Bytes after = out_.substr(hole_at_);
  out_.resize(hole_at_);
  return {std::move(out_), std::move(after), hole_order_};
}

}  // namespace perdure::tuple::internal
