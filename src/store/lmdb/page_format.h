// How LMDB 0.9 lays out its file, as far as perdure needs to know it in order to distrust it.
//
// The file is an array of pages of one size. Pages 0 and 1 are metas: transaction N writes its meta to page N % 2, so
// that the newest two snapshots can always be found. A meta names the roots of two B+trees, the freelist (keys are
// transaction numbers, values are lists of pages that the transaction freed) and the main tree (our rows). A branch or
// leaf page is a header, an array of 2-byte node offsets that grows upwards, and nodes that are packed against the end
// of the page. A value that is too large for a leaf lies in a run of overflow pages of which only the first has a
// header. All numbers are little-endian.
//
// Everything here takes bytes of unknown origin: no accessor reads a byte that it has not checked to be there, and
// what is wrong is said in words ("key 3 is not above key 2") that the caller prefixes with the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "perdure/bytes.h"

namespace perdure::lmdb {

using PageNumber = std::uint64_t;

inline constexpr PageNumber kNoPage = ~PageNumber{0};  ///< The root of an empty tree.
inline constexpr PageNumber kMetaPages = 2;            ///< The first pages of the file; trees start after them.
inline constexpr std::size_t kPageHeaderBytes = 16;
inline constexpr std::size_t kNodeHeaderBytes = 8;
inline constexpr std::size_t kPageBytesMin = 512;
inline constexpr std::size_t kPageBytesMax = 32768;
inline constexpr std::size_t kMetaBytes = 136;    ///< Without the page header in front of it.
inline constexpr std::size_t kKeyBytesMax = 511;  ///< What Debian's LMDB is built with.
inline constexpr unsigned kDepthMax = 32;         ///< A deeper tree overruns the cursors of LMDB.

/// What is wrong with some bytes, for a person; the caller knows where they are.
using Complaint = std::string;
template <class T>
using Parsed = std::expected<T, Complaint>;

/// One tree, as a meta describes it.
struct DbRecord {
  std::uint32_t pad = 0;
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t branch_pages = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint64_t entries = 0;
  PageNumber root = kNoPage;

  friend bool operator==(const DbRecord&, const DbRecord&) = default;
};

/// One snapshot: everything that is needed to walk it, even after its meta page was overwritten.
struct Meta {
  std::uint32_t page_bytes = 0;
  PageNumber last_page = 0;
  std::uint64_t txnid = 0;
  DbRecord free_db;
  DbRecord main_db;

  std::uint64_t page_count() const { return last_page + 1; }
  std::uint64_t file_bytes() const { return page_count() * page_bytes; }

  friend bool operator==(const Meta&, const Meta&) = default;
};

/// What identifies a meta page, before anything else in it is believed.
struct MetaIdentity {
  bool is_meta = false;
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
};

inline constexpr std::uint32_t kMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kDataVersion = 1;

/// Both need kPageHeaderBytes + kMetaBytes bytes from the start of the page.
MetaIdentity meta_identity(BytesView page);
Meta decode_meta(BytesView page);

/// Why this meta cannot be used to address pages, or nothing. Counts are not judged: only a walk can do that.
Parsed<void> check_meta(const Meta& meta);

bool plausible_page_bytes(std::uint32_t page_bytes);

enum class PageKind { kBranch, kLeaf };

/// A node of a branch page (a separator and a child) or of a leaf page (a key and a value, in the page or outside).
struct Node {
  BytesView key;
  PageNumber child = kNoPage;     ///< Branch: the page below.
  std::uint64_t value_bytes = 0;  ///< Leaf: the size of the value, wherever it is.
  BytesView inline_value;         ///< Leaf, if overflow == kNoPage.
  PageNumber overflow = kNoPage;  ///< Leaf: first page of the run that holds the value.
  std::size_t stored_bytes = 0;   ///< What the node takes in its page.
};

/// A branch or leaf page whose header is sound. Points into the caller's bytes.
class PageView {
 public:
  /// `bytes` is the whole page that was found under `number`.
  static Parsed<PageView> parse(BytesView bytes, PageNumber number);

  PageKind kind() const { return kind_; }
  std::size_t node_count() const { return node_count_; }

  /// Node `index` < node_count(), wholly inside of the page.
  Parsed<Node> node(std::size_t index) const;

  /// The bytes between the node offsets' end and the page's end that nodes may take. LMDB keeps them packed, so nodes
  /// that take more overlap, and nodes that take less have lost one.
  std::size_t node_area_bytes() const { return bytes_.size() - upper_; }

 private:
  Parsed<Node> branch_node(std::size_t offset) const;
  Parsed<Node> leaf_node(std::size_t offset) const;

  BytesView bytes_;
  PageKind kind_ = PageKind::kLeaf;
  std::size_t node_count_ = 0;
  std::size_t upper_ = 0;
};

/// The number of pages in the overflow run that starts with this header (kPageHeaderBytes bytes).
Parsed<std::uint64_t> parse_overflow_header(BytesView header, PageNumber number);

}  // namespace perdure::lmdb
