#include "store/postgres/binary.h"

#include "base/endian.h"

namespace perdure::postgres {
namespace {

// From pg_type.dat; they never change.
constexpr std::uint32_t kByteaOid = 17, kInt8Oid = 20;

void put_32(Bytes& to, std::uint32_t value) {
  char bytes[4];
  store_big(bytes, value);
  to.append(bytes, sizeof bytes);
}

Bytes encoded(std::uint64_t value) {
  Bytes bytes(8, '\0');
  store_big(bytes.data(), value);
  return bytes;
}

/// One dimension, no nulls; an empty array has no dimension.
Bytes array_header(std::uint32_t element, std::size_t size) {
  Bytes header;
  put_32(header, size > 0 ? 1 : 0);
  put_32(header, 0);
  put_32(header, element);
  if (size == 0) return header;
  put_32(header, static_cast<std::uint32_t>(size));
  put_32(header, 1);
  return header;
}

}  // namespace

Parameters& Parameters::add(const char* value, std::size_t size) {
  values_.push_back(value);
  lengths_.push_back(static_cast<int>(size));
  formats_.push_back(1);
  return *this;
}

Parameters& Parameters::own(Bytes value) {
  owned_.push_back(std::move(value));
  return add(owned_.back().data(), owned_.back().size());
}

Parameters& Parameters::number(std::uint64_t value) {
  return own(encoded(value));
}

Parameters& Parameters::bytes(BytesView value) {
  return add(value.data() ? value.data() : "", value.size());
}

Parameters& Parameters::null() {
  return add(nullptr, 0);
}

Parameters& Parameters::bytes_array(std::span<const BytesView> values) {
  Bytes array = array_header(kByteaOid, values.size());
  std::size_t size = array.size();
  for (BytesView value : values) size += 4 + value.size();
  array.reserve(size);
  for (BytesView value : values) {
    put_32(array, static_cast<std::uint32_t>(value.size()));
    array.append(value);
  }
  return own(std::move(array));
}

Parameters& Parameters::number_array(std::span<const std::uint64_t> values) {
  Bytes array = array_header(kInt8Oid, values.size());
  for (std::uint64_t value : values) {
    put_32(array, 8);
    array.append(encoded(value));
  }
  return own(std::move(array));
}

BytesView Answer::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::uint64_t Answer::number(int row, int column) const {
  BytesView value = bytes(row, column);
  if (value.size() == 8) return load_big<std::uint64_t>(value.data());
  return value.size() == 4 ? load_big<std::uint32_t>(value.data()) : 0;
}

}  // namespace perdure::postgres
