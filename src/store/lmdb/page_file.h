// What every walk over the pages of an LMDB file shares: reading a page, remembering which pages were met, and
// collecting what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "store/lmdb/page_format.h"

namespace perdure::lmdb {

/// Reads up to `size` bytes at `offset`; fewer only at the end of the file. Errors: the errno.
std::expected<std::size_t, int> read_at(int fd, std::uint64_t offset, char* to, std::size_t size);

/// "reading <path> failed: Input/output error; ..." as a store failure.
Error read_error(BytesView path, int error_number);

Result<std::uint64_t> file_bytes(int fd, BytesView path);

/// The pages of one snapshot in a file that may be shorter than the snapshot says. Does not own the descriptor.
class PageFile {
 public:
  PageFile(int fd, const Meta& meta, std::uint64_t bytes);

  std::uint32_t page_bytes() const { return page_bytes_; }
  PageNumber last_page() const { return last_page_; }
  /// Pages of the snapshot that are wholly in the file.
  std::uint64_t present_pages() const { return present_pages_; }
  /// Pages of the snapshot that are not: sound only if all of them are free.
  std::uint64_t missing_pages() const { return last_page_ + 1 - present_pages_; }

  /// Why a tree cannot contain the pages [first, first + count), or nothing.
  Parsed<void> check_run(PageNumber first, std::uint64_t count) const;

  /// `size` bytes from `offset` after the start of `page`; all of them or a complaint.
  Parsed<void> read(PageNumber page, std::uint64_t offset, char* to, std::size_t size) const;

 private:
  int fd_;
  std::uint32_t page_bytes_;
  PageNumber last_page_;
  std::uint64_t present_pages_;
};

/// A set of page numbers: one bit for each page of the file. Pages beyond its end, of which a sound file has few and a
/// damaged meta may promise any number, cost memory only once they are inserted.
class PageSet {
 public:
  explicit PageSet(std::uint64_t present_pages) : present_(present_pages) {}

  bool contains(PageNumber page) const;
  /// False if it was there already.
  bool insert(PageNumber page);
  std::uint64_t size() const { return size_; }
  std::uint64_t beyond_end() const { return beyond_.size(); }

 private:
  std::vector<bool> present_;
  std::unordered_set<PageNumber> beyond_;
  std::uint64_t size_ = 0;
};

/// Who refers to which page. A page has at most one owner: a tree, or the freelist as a page that may be overwritten.
class PageOwners {
 public:
  explicit PageOwners(const PageFile& file) : used_(file.present_pages()), free_(file.present_pages()) {}

  /// The pages [first, first + count), which are in the file, become part of a tree.
  Parsed<void> use(PageNumber first, std::uint64_t count);
  /// The page is listed as free.
  Parsed<void> free(PageNumber page);

  const PageSet& used() const { return used_; }
  const PageSet& free() const { return free_; }

 private:
  PageSet used_;
  PageSet free_;
};

/// What is wrong, in words, up to a limit; the rest is only counted, since one lost disk block can damage thousands.
class Findings {
 public:
  explicit Findings(std::size_t max) : max_(max) {}

  void add(PageNumber page, const std::string& what);
  void add(std::string what);

  std::uint64_t count() const { return count_; }
  std::vector<std::string> take() { return std::move(kept_); }

 private:
  std::size_t max_;
  std::uint64_t count_ = 0;
  std::vector<std::string> kept_;
};

}  // namespace perdure::lmdb
