#include "store/lmdb/tree_walk.h"

#include <cstring>

#include "base/assert.h"
#include "base/endian.h"

namespace perdure::lmdb {
namespace {

constexpr std::size_t kTxnidBytes = 8;

std::string number_text(std::uint64_t value) {
  return std::to_string(value);
}

}  // namespace

Parsed<void> StoredValue::read(std::uint64_t offset, char* to, std::size_t size) const {
  check(offset <= node_.value_bytes && size <= node_.value_bytes - offset, "a read outside of a value");
  if (size == 0) return {};
  if (node_.overflow != kNoPage) return file_.read(node_.overflow, kPageHeaderBytes + offset, to, size);
  std::memcpy(to, node_.inline_value.data() + offset, size);
  return {};
}

TreeWalk::TreeWalk(TreeKind kind, const PageFile& file, PageOwners& owners, Findings& findings, TreeHooks hooks)
    : kind_(kind),
      file_(file),
      owners_(owners),
      findings_(findings),
      hooks_(std::move(hooks)),
      pages_(std::size_t{kDepthMax} + 1) {}

void TreeWalk::run(const DbRecord& record) {
  auto damage_before = findings_.count();
  if (record.root != kNoPage) descend({}, record.root, 1, {});
  // Where a part was left out the counts differ for that reason alone, and saying so would only be noise.
  if (findings_.count() == damage_before) compare_counts(record);
}

void TreeWalk::descend(const Link& link, PageNumber to, unsigned depth, const Bounds& bounds) {
  std::string target = "points to page " + number_text(to);
  if (auto ok = file_.check_run(to, 1); !ok) return report(link, target + ", which is " + ok.error());
  if (auto ok = owners_.use(to, 1); !ok) return report(link, target + ", but " + ok.error());
  if (depth > kDepthMax)
    return report(link, target + ", which makes the tree deeper than " + number_text(kDepthMax) + " pages");
  hooks_.on_page();
  visit(to, depth, bounds);
}

void TreeWalk::visit(PageNumber number, unsigned depth, const Bounds& bounds) {
  auto& bytes = pages_[depth];
  bytes.resize(file_.page_bytes());
  if (auto ok = file_.read(number, 0, bytes.data(), bytes.size()); !ok) return findings_.add(number, ok.error());
  auto page = PageView::parse({bytes.data(), bytes.size()}, number);
  if (!page) return findings_.add(number, page.error());
  check_nodes(number, *page);
  check_keys(number, *page, bounds);
  if (page->kind() == PageKind::kBranch)
    visit_branch(number, *page, depth, bounds);
  else
    visit_leaf(number, *page, depth);
}

void TreeWalk::visit_branch(PageNumber number, const PageView& page, unsigned depth, const Bounds& bounds) {
  ++counted_.branch_pages;
  // LMDB asserts two children everywhere but in the freelist, which it changes while it walks it.
  if (page.node_count() < 2 && kind_ == TreeKind::kMain) findings_.add(number, "it is a branch with a single child");
  for (std::size_t i = 0; i < page.node_count(); ++i) {
    auto node = page.node(i);
    if (!node) continue;
    Bounds below = bounds;
    if (i > 0) below.low = node->key;
    if (i + 1 < page.node_count())
      if (auto next = page.node(i + 1)) below.high = next->key;
    descend({number, i}, node->child, depth + 1, below);
  }
}

void TreeWalk::visit_leaf(PageNumber number, const PageView& page, unsigned depth) {
  ++counted_.leaf_pages;
  if (counted_.depth == 0) counted_.depth = static_cast<std::uint16_t>(depth);
  if (depth != counted_.depth)
    findings_.add(number, "it is a leaf at depth " + number_text(depth) + ", but others are at depth " +
                              number_text(counted_.depth));
  for (std::size_t i = 0; i < page.node_count(); ++i) {
    auto node = page.node(i);
    if (!node) continue;
    ++counted_.entries;
    if (node->overflow != kNoPage && !check_overflow({number, i}, *node)) continue;
    hooks_.on_row({number, i, node->key, StoredValue(file_, *node)});
  }
}

// Each node by itself, and that they share the page without overlap: LMDB keeps them packed.
void TreeWalk::check_nodes(PageNumber number, const PageView& page) {
  std::size_t stored = 0;
  bool all_sound = true;
  for (std::size_t i = 0; i < page.node_count(); ++i) {
    auto node = page.node(i);
    if (!node) {
      findings_.add(number, node.error());
      all_sound = false;
    } else {
      stored += node->stored_bytes;
    }
  }
  if (all_sound && stored != page.node_area_bytes())
    findings_.add(number, "its nodes take " + number_text(stored) + " bytes, but there should be " +
                              number_text(page.node_area_bytes()) + ", so that some overlap or are lost");
}

void TreeWalk::check_keys(PageNumber number, const PageView& page, const Bounds& bounds) {
  // The first key of a branch stands for everything below the second one, and LMDB never looks at it.
  std::size_t first = page.kind() == PageKind::kBranch ? 1 : 0;
  std::optional<BytesView> previous;
  bool told = false;
  for (std::size_t i = first; i < page.node_count(); ++i) {
    auto node = page.node(i);
    if (!node) continue;
    BytesView key = node->key;
    if (kind_ == TreeKind::kFreelist && key.size() != kTxnidBytes)
      findings_.add(number, "key " + number_text(i) + " is not a transaction number");
    if (previous && compare(key, *previous) <= 0)
      findings_.add(number, "key " + number_text(i) + " is not above key " + number_text(i - 1));
    bool outside = (bounds.low && compare(key, *bounds.low) < 0) || (bounds.high && compare(key, *bounds.high) >= 0);
    // One such key says it: after a damaged separator all keys below are outside.
    if (outside && !told) {
      findings_.add(number, "key " + number_text(i) + " is outside of the bounds that the page's parent gives");
      told = true;
    }
    previous = key;
  }
}

bool TreeWalk::check_overflow(const Link& link, const Node& node) {
  std::string target = "has its value at page " + number_text(node.overflow);
  auto refuse = [&](const std::string& why) {
    report(link, target + ", " + why);
    return false;
  };
  if (auto ok = file_.check_run(node.overflow, 1); !ok) return refuse("which is " + ok.error());
  char header[kPageHeaderBytes];
  if (auto ok = file_.read(node.overflow, 0, header, sizeof header); !ok) return refuse("but " + ok.error());
  auto pages = parse_overflow_header({header, sizeof header}, node.overflow);
  if (!pages) return refuse("but " + pages.error());
  if (auto ok = file_.check_run(node.overflow, *pages); !ok)
    return refuse("whose " + number_text(*pages) + " pages go " + ok.error());
  // A value that shrank within its transaction keeps its pages, so there may be more of them than needed.
  if (*pages * file_.page_bytes() < kPageHeaderBytes + node.value_bytes)
    return refuse("whose " + number_text(*pages) + " pages are too few for " + number_text(node.value_bytes) +
                  " bytes");
  if (auto ok = owners_.use(node.overflow, *pages); !ok) return refuse("but " + ok.error());
  counted_.overflow_pages += *pages;
  hooks_.on_page();
  return true;
}

void TreeWalk::compare_counts(const DbRecord& record) {
  auto same = [&](std::string_view what, std::uint64_t stated, std::uint64_t counted) {
    if (stated != counted)
      findings_.add(name() + " should have " + number_text(stated) + " " + std::string(what) + " and has " +
                    number_text(counted));
  };
  same("rows", record.entries, counted_.entries);
  same("levels", record.depth, counted_.depth);
  same("branch pages", record.branch_pages, counted_.branch_pages);
  same("leaf pages", record.leaf_pages, counted_.leaf_pages);
  same("overflow pages", record.overflow_pages, counted_.overflow_pages);
}

int TreeWalk::compare(BytesView a, BytesView b) const {
  if (kind_ == TreeKind::kMain || a.size() != kTxnidBytes || b.size() != kTxnidBytes) return a.compare(b);
  auto x = load_little<std::uint64_t>(a.data());
  auto y = load_little<std::uint64_t>(b.data());
  return x < y ? -1 : x > y;
}

void TreeWalk::report(const Link& link, const std::string& what) {
  if (link.node)
    findings_.add(link.from, "node " + number_text(*link.node) + " " + what);
  else
    findings_.add("the root of " + name() + " " + what);
}

std::string TreeWalk::name() const {
  return kind_ == TreeKind::kMain ? "the main tree" : "the freelist";
}

}  // namespace perdure::lmdb
