// A walk over one B+tree of an LMDB file, the freelist or the main tree, that believes nothing.
//
// Each page is checked by itself, against the link that led to it, and against the separators above it; then its
// children or rows are visited. A damaged page or node is reported and left out, and the walk goes on beside it. Since
// a page is entered only once (PageOwners) and never below kDepthMax, the walk ends on any input, and it holds one page
// for each level.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perdure/bytes.h"
#include "store/lmdb/page_file.h"
#include "store/lmdb/page_format.h"

namespace perdure::lmdb {

enum class TreeKind {
  kFreelist,  ///< Keys are 8-byte transaction numbers in numeric order.
  kMain,      ///< Keys are bytes in the order of unsigned bytes.
};

/// The value of a row, in its leaf or in overflow pages that were found sound. Valid while its row is handled.
class StoredValue {
 public:
  StoredValue(const PageFile& file, const Node& node) : file_(file), node_(node) {}

  std::uint64_t size() const { return node_.value_bytes; }
  /// The bytes [offset, offset + size) of the value, which must be inside of it.
  Parsed<void> read(std::uint64_t offset, char* to, std::size_t size) const;

 private:
  const PageFile& file_;
  const Node& node_;
};

/// A row and where it was found.
struct Row {
  PageNumber page;
  std::size_t index;
  BytesView key;
  const StoredValue& value;
};

struct TreeHooks {
  std::function<void(const Row&)> on_row;
  std::function<void()> on_page = [] {};
};

class TreeWalk {
 public:
  /// `file`, `owners` and `findings` outlive the walk.
  TreeWalk(TreeKind kind, const PageFile& file, PageOwners& owners, Findings& findings, TreeHooks hooks);

  /// Walks the tree once and compares what was met with what the record says.
  void run(const DbRecord& record);

  /// What was met, as a meta would state it.
  const DbRecord& counted() const { return counted_; }

 private:
  /// The keys that a page may hold, low <= key < high, as the separators above it say. They point into the pages of
  /// the levels above, which stay in pages_ meanwhile.
  struct Bounds {
    std::optional<BytesView> low;
    std::optional<BytesView> high;
  };
  /// The node that refers to a page; the root's link comes from the meta and has no node.
  struct Link {
    PageNumber from = 0;
    std::optional<std::size_t> node;
  };

  void descend(const Link& link, PageNumber to, unsigned depth, const Bounds& bounds);
  void visit(PageNumber number, unsigned depth, const Bounds& bounds);
  void visit_branch(PageNumber number, const PageView& page, unsigned depth, const Bounds& bounds);
  void visit_leaf(PageNumber number, const PageView& page, unsigned depth);
  void check_nodes(PageNumber number, const PageView& page);
  void check_keys(PageNumber number, const PageView& page, const Bounds& bounds);
  bool check_overflow(const Link& link, const Node& node);
  void compare_counts(const DbRecord& record);

  int compare(BytesView a, BytesView b) const;
  void report(const Link& link, const std::string& what);
  std::string name() const;

  const TreeKind kind_;
  const PageFile& file_;
  PageOwners& owners_;
  Findings& findings_;
  const TreeHooks hooks_;
  DbRecord counted_;
  std::vector<std::vector<char>> pages_;  ///< The page that is being visited at each depth, from 1.
};

}  // namespace perdure::lmdb
