#include "store/remote/batch.h"

#include <algorithm>

#include "base/endian.h"
#include "base/hash.h"
#include "store/row_checksum.h"

namespace perdure::remote {
namespace {

constexpr char kFormat = 2;
constexpr std::size_t kChecksum = sizeof(Link);
constexpr std::size_t kHeader = 1 + sizeof(Link);
constexpr std::size_t kRowChecksum = 4;

void append_number(Bytes& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

/// Takes things off the front; what is not there makes it fail for good.
class Input {
 public:
  explicit Input(BytesView bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    failed_ = true;
    return 0;
  }
  BytesView bytes(std::uint64_t size) {
    if (size > rest_.size()) {
      failed_ = true;
      return {};
    }
    BytesView taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool failed() const { return failed_; }
  bool at_end() const { return !failed_ && rest_.empty(); }

 private:
  BytesView rest_;
  bool failed_ = false;
};

std::size_t shared_prefix(BytesView a, BytesView b) {
  std::size_t most = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first - a.begin());
}

std::unexpected<Error> damaged(Version version) {
  return fail(ErrorCode::kCorrupt, "entry " + std::to_string(version.number) +
                                       " of the log is damaged: its checksum does not match; restore from a backup");
}

}  // namespace

Link link_before(BytesView batch) {
  return batch.size() < kHeader ? 0 : load_little<Link>(batch.data() + 1);
}

Bytes encode_batch(const Writes& writes, Version version, Link link) {
  Bytes out(kHeader, kFormat);
  store_little(out.data() + 1, link);
  append_number(out, writes.size());
  BytesView before;
  for (const auto& [key, row] : writes) {
    std::size_t shared = shared_prefix(before, key);
    append_number(out, shared);
    append_number(out, key.size() - shared);
    out.append(key, shared);
    append_number(out, row ? row->value.size() + 1 : 0);
    if (row) {
      append_number(out, version.number - row->version.number);
      out += row->value;
    }
    before = key;
  }
  char checksum[kChecksum];
  store_little(checksum, hash64(out, version.number));
  return out.append(checksum, sizeof checksum);
}

Result<Writes> decode_batch(BytesView bytes, Version version) {
  if (bytes.size() < kHeader + kChecksum) return damaged(version);
  BytesView body = bytes.substr(0, bytes.size() - kChecksum);
  if (load_little<std::uint64_t>(bytes.data() + body.size()) != hash64(body, version.number)) return damaged(version);
  if (body.front() != kFormat)
    return fail(ErrorCode::kUnsupportedFormat,
                "entry " + std::to_string(version.number) + " of the log was written by another version of perdure");
  Input input(body.substr(kHeader));
  Writes writes;
  Bytes key;
  for (std::uint64_t left = input.number(); left > 0 && !input.failed(); --left) {
    std::uint64_t shared = input.number();
    BytesView suffix = input.bytes(input.number());
    if (shared > key.size()) return damaged(version);
    key.resize(shared);
    key += suffix;
    std::optional<Versioned> row;
    if (std::uint64_t size = input.number(); size > 0) {
      Version written{version.number - input.number()};
      row = Versioned{Bytes(input.bytes(size - 1)), written};
    }
    writes.emplace_hint(writes.end(), key, std::move(row));
  }
  if (!input.at_end()) return damaged(version);
  return writes;
}

Bytes seal_value(BytesView key, const Versioned& row) {
  char checksum[kRowChecksum];
  store_little(checksum, row_checksum(key, row.version, row.value));
  Bytes sealed;
  sealed.reserve(row.value.size() + sizeof checksum);
  return sealed.append(row.value).append(checksum, sizeof checksum);
}

Result<Versioned> open_value(BytesView key, Versioned row) {
  Bytes& value = row.value;
  std::size_t size = value.size() < kRowChecksum ? 0 : value.size() - kRowChecksum;
  if (value.size() < kRowChecksum || load_little<std::uint32_t>(value.data() + size) !=
                                         row_checksum(key, row.version, BytesView(value).substr(0, size)))
    return fail(ErrorCode::kCorrupt,
                "the row " + printable(key) +
                    " is damaged: its checksum does not match; run verify, and restore from a backup");
  value.resize(size);
  return row;
}

}  // namespace perdure::remote
