#include "store/lmdb/free_list.h"

#include <algorithm>
#include <array>

#include "base/endian.h"

namespace perdure::lmdb {
namespace {

constexpr std::size_t kNumberBytes = sizeof(PageNumber);
constexpr std::size_t kPieceNumbers = 512;

class FreeListReader {
 public:
  FreeListReader(const PageFile& file, const Meta& meta, PageOwners& owners, Findings& findings)
      : file_(file), meta_(meta), owners_(owners), findings_(findings) {}

  void row(const Row& row) {
    if (row.key.size() != kNumberBytes) return;  // The tree walk has said so.
    check_txnid(row);
    if (auto ok = list(row); !ok) findings_.add(row.page, "list " + std::to_string(row.index) + ": " + ok.error());
  }

 private:
  void check_txnid(const Row& row) {
    auto txnid = load_little<std::uint64_t>(row.key.data());
    if (txnid == 0 || txnid > meta_.txnid)
      findings_.add(row.page, "list " + std::to_string(row.index) + " is of transaction " + std::to_string(txnid) +
                                  ", but the last one is " + std::to_string(meta_.txnid));
  }

  Parsed<void> list(const Row& row) {
    auto room = row.value.size() / kNumberBytes;
    if (room == 0 || row.value.size() % kNumberBytes != 0)
      return std::unexpected(std::to_string(row.value.size()) + " bytes are not a list of pages");
    std::array<char, kNumberBytes> head;
    if (auto ok = row.value.read(0, head.data(), head.size()); !ok) return ok;
    auto count = load_little<std::uint64_t>(head.data());
    if (count >= room)
      return std::unexpected("it should hold " + std::to_string(count) + " pages, but has room for " +
                             std::to_string(room - 1));
    previous_ = kNoPage;
    for (std::uint64_t done = 0; done < count;) {
      auto numbers = std::min<std::uint64_t>(kPieceNumbers, count - done);
      if (auto ok = piece(row, 1 + done, numbers); !ok) return ok;
      done += numbers;
    }
    return {};
  }

  Parsed<void> piece(const Row& row, std::uint64_t first, std::size_t numbers) {
    if (auto ok = row.value.read(first * kNumberBytes, piece_.data(), numbers * kNumberBytes); !ok) return ok;
    for (std::size_t i = 0; i < numbers; ++i) {
      auto page = load_little<PageNumber>(piece_.data() + i * kNumberBytes);
      if (page < kMetaPages || page > file_.last_page())
        return std::unexpected("page " + std::to_string(page) + " cannot be free, the last page is " +
                               std::to_string(file_.last_page()));
      if (page >= previous_)
        return std::unexpected("page " + std::to_string(page) + " comes after page " + std::to_string(previous_));
      previous_ = page;
      if (auto ok = owners_.free(page); !ok) return std::unexpected("it lists a page, but " + ok.error());
    }
    return {};
  }

  const PageFile& file_;
  const Meta& meta_;
  PageOwners& owners_;
  Findings& findings_;
  PageNumber previous_ = kNoPage;  // In the list that is being read.
  std::array<char, kPieceNumbers * kNumberBytes> piece_;
};

}  // namespace

DbRecord walk_free_list(const PageFile& file, const Meta& meta, PageOwners& owners, Findings& findings) {
  FreeListReader reader(file, meta, owners, findings);
  TreeWalk tree(TreeKind::kFreelist, file, owners, findings, {.on_row = [&](const Row& row) { reader.row(row); }});
  tree.run(meta.free_db);
  return tree.counted();
}

}  // namespace perdure::lmdb
