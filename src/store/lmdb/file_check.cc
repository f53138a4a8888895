#include "store/lmdb/file_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "store/lmdb/free_list.h"
#include "store/lmdb/page_file.h"

namespace perdure::lmdb {
namespace {

constexpr std::size_t kMetaReadBytes = kPageHeaderBytes + kMetaBytes;
constexpr int kAttemptsMax = 100;

using MetaPair = std::array<Meta, 2>;

std::unexpected<Error> corrupt(BytesView path, const std::string& what) {
  return fail(ErrorCode::kCorrupt, std::string(path) + " " + what + "; restore it from a backup");
}

std::unexpected<Error> truncated(BytesView path, std::uint64_t bytes, std::uint64_t complete_bytes) {
  return corrupt(path, "is truncated: " + std::to_string(bytes) + " bytes, but its last page ends at " +
                           std::to_string(complete_bytes));
}

// The meta at `offset`, of which only what identifies it has been checked.
Result<Meta> read_meta_page(int fd, BytesView path, unsigned index, std::uint64_t offset) {
  std::array<char, kMetaReadBytes> bytes;
  auto got = read_at(fd, offset, bytes.data(), bytes.size());
  if (!got) return std::unexpected(read_error(path, got.error()));
  std::string meta_page = "its meta page " + std::to_string(index);
  if (*got < bytes.size()) return corrupt(path, "is truncated: it ends before or in " + meta_page);

  BytesView page(bytes.data(), bytes.size());
  auto identity = meta_identity(page);
  if (!identity.is_meta || identity.magic != kMagic)
    return corrupt(path, "is not an LMDB file or is damaged: " + meta_page + " does not start as one");
  if (identity.version != kDataVersion)
    return fail(ErrorCode::kUnsupportedFormat, std::string(path) + " has version " + std::to_string(identity.version) +
                                                   " of LMDB's data format, but only version " +
                                                   std::to_string(kDataVersion) +
                                                   " can be read; open it with the program that wrote it");
  auto meta = decode_meta(page);
  if (!plausible_page_bytes(meta.page_bytes))
    return corrupt(path, "is damaged: " + meta_page + " states the impossible page size of " +
                             std::to_string(meta.page_bytes) + " bytes");
  return meta;
}

Result<MetaPair> read_meta_pair_once(int fd, BytesView path) {
  auto first = read_meta_page(fd, path, 0, 0);
  if (!first) return std::unexpected(first.error());
  auto second = read_meta_page(fd, path, 1, first->page_bytes);
  if (!second) return std::unexpected(second.error());
  if (first->page_bytes != second->page_bytes) return corrupt(path, "is damaged: its metas differ in their page size");
  return MetaPair{*first, *second};
}

// A read can meet a commit that is writing its meta and see half of it; two reads that agree saw no such thing, as
// transaction numbers never come back.
Result<MetaPair> read_meta_pair(int fd, BytesView path) {
  auto last = read_meta_pair_once(fd, path);
  for (int i = 0; i < kAttemptsMax && last; ++i) {
    auto again = read_meta_pair_once(fd, path);
    if (again && *again == *last) return again;
    last = std::move(again);
  }
  if (!last) return last;
  return fail(ErrorCode::kUnavailable, std::string(path) + " is being written too fast to be read; try again");
}

const Meta& newest(const MetaPair& metas) {
  return metas[0].txnid < metas[1].txnid ? metas[1] : metas[0];
}

// Transaction N writes meta N % 2 and the other one is of N - 1, or nothing has been written yet. A damaged number
// would otherwise make LMDB silently go back to the older snapshot.
bool numbers_fit(const MetaPair& metas) {
  auto low = std::min(metas[0].txnid, metas[1].txnid), high = std::max(metas[0].txnid, metas[1].txnid);
  if (high == 0) return true;
  return high - low == 1 && metas[high % 2].txnid == high;
}

Result<void> check_newest(BytesView path, const MetaPair& metas) {
  if (!numbers_fit(metas))
    return corrupt(path, "is damaged: its metas are of the transactions " + std::to_string(metas[0].txnid) + " and " +
                             std::to_string(metas[1].txnid) + ", which cannot follow each other");
  if (auto ok = check_meta(newest(metas)); !ok) return corrupt(path, "is damaged: " + ok.error());
  return {};
}

bool missing_pages_are_free(int fd, const Meta& meta, std::uint64_t bytes) {
  PageFile file(fd, meta, bytes);
  PageOwners owners(file);
  Findings findings(0);
  walk_free_list(file, meta, owners, findings);
  return findings.count() == 0 && owners.free().beyond_end() == file.missing_pages();
}

// One look at the file; nothing if a commit came between, so that what was seen may not belong together.
Result<std::optional<FileCheck>> check_once(int fd, BytesView path) {
  auto metas = read_meta_pair(fd, path);
  if (!metas) return std::unexpected(metas.error());
  if (auto ok = check_newest(path, *metas); !ok) return std::unexpected(ok.error());
  const Meta& meta = newest(*metas);
  // The size is taken after the metas: commits only ever lengthen the file, and do it before they write their meta.
  auto bytes = file_bytes(fd, path);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes >= meta.file_bytes()) return FileCheck{FileState::kComplete, meta.file_bytes()};

  // The pages of the newest snapshot, its freelist's among them, are not overwritten before the next one is committed.
  bool sound = missing_pages_are_free(fd, meta, *bytes);
  auto after = read_meta_pair(fd, path);
  if (!after) return std::unexpected(after.error());
  if (newest(*after).txnid != meta.txnid) return std::nullopt;
  if (!sound) return truncated(path, *bytes, meta.file_bytes());
  return FileCheck{FileState::kShort, meta.file_bytes()};
}

}  // namespace

Result<FileCheck> check_file_size(int fd, BytesView path) {
  auto bytes = file_bytes(fd, path);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes == 0) return FileCheck{};
  for (int i = 0; i < kAttemptsMax; ++i) {
    auto seen = check_once(fd, path);
    if (!seen) return std::unexpected(seen.error());
    if (*seen) return **seen;
  }
  return fail(ErrorCode::kUnavailable, std::string(path) + " is being written too fast to be checked; try again");
}

Result<Meta> read_meta(int fd, BytesView path, std::uint64_t txnid) {
  auto metas = read_meta_pair(fd, path);
  if (!metas) return std::unexpected(metas.error());
  if (auto ok = check_newest(path, *metas); !ok) return std::unexpected(ok.error());
  const Meta& meta = (*metas)[txnid % 2];
  if (meta.txnid != txnid)
    return fail(ErrorCode::kUnavailable, "the snapshot " + std::to_string(txnid) + " of " + std::string(path) +
                                             " was replaced by later commits; begin to read again");
  if (auto ok = check_meta(meta); !ok) return corrupt(path, "is damaged: " + ok.error());
  return meta;
}

}  // namespace perdure::lmdb
