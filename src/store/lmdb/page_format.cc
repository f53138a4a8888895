#include "store/lmdb/page_format.h"

#include <bit>
#include <limits>

#include "base/assert.h"
#include "base/endian.h"

namespace perdure::lmdb {
namespace {

constexpr std::uint16_t kBranchPage = 0x01;
constexpr std::uint16_t kLeafPage = 0x02;
constexpr std::uint16_t kOverflowPage = 0x04;
constexpr std::uint16_t kMetaPage = 0x08;

constexpr std::uint16_t kBigValue = 0x01;

constexpr std::uint16_t kIntegerKeys = 0x0008;  // Always set for the freelist.
constexpr std::uint16_t kNoSubdir = 0x4000;     // A flag of the environment that LMDB keeps in the freelist's record.

constexpr std::size_t kDbRecordBytes = 48;

template <std::unsigned_integral T>
T load(BytesView bytes, std::size_t offset) {
  check(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, "a read outside of a page");
  return load_little<T>(bytes.data() + offset);
}

DbRecord decode_db(BytesView bytes) {
  return {.pad = load<std::uint32_t>(bytes, 0),
          .flags = load<std::uint16_t>(bytes, 4),
          .depth = load<std::uint16_t>(bytes, 6),
          .branch_pages = load<std::uint64_t>(bytes, 8),
          .leaf_pages = load<std::uint64_t>(bytes, 16),
          .overflow_pages = load<std::uint64_t>(bytes, 24),
          .entries = load<std::uint64_t>(bytes, 32),
          .root = load<std::uint64_t>(bytes, 40)};
}

std::string hex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  do out.insert(out.begin(), kDigits[value & 15]);
  while (value >>= 4);
  return "0x" + out;
}

std::unexpected<Complaint> complain(std::string what) {
  return std::unexpected(std::move(what));
}

Parsed<void> check_root(const DbRecord& db, PageNumber last_page, std::string_view tree) {
  if (db.root == kNoPage || (db.root >= kMetaPages && db.root <= last_page)) return {};
  return complain("the root of its " + std::string(tree) + " is page " + std::to_string(db.root) +
                  ", but its last page is " + std::to_string(last_page));
}

// A page stores its own number, so that a page that was written or read at the wrong place shows.
Parsed<void> check_number(BytesView header, PageNumber number) {
  auto own = load<std::uint64_t>(header, 0);
  if (own == number) return {};
  return complain("the page says that it is page " + std::to_string(own));
}

}  // namespace

MetaIdentity meta_identity(BytesView page) {
  return {.is_meta = (load<std::uint16_t>(page, 10) & kMetaPage) != 0,
          .magic = load<std::uint32_t>(page, kPageHeaderBytes),
          .version = load<std::uint32_t>(page, kPageHeaderBytes + 4)};
}

Meta decode_meta(BytesView page) {
  // After magic and version come an address and the size of the map, which depend on who opens the file, not on it.
  BytesView meta = page.substr(kPageHeaderBytes, kMetaBytes);
  Meta out;
  out.free_db = decode_db(meta.substr(24, kDbRecordBytes));
  out.main_db = decode_db(meta.substr(24 + kDbRecordBytes, kDbRecordBytes));
  out.page_bytes = out.free_db.pad;
  out.last_page = load<std::uint64_t>(meta, 24 + 2 * kDbRecordBytes);
  out.txnid = load<std::uint64_t>(meta, 24 + 2 * kDbRecordBytes + 8);
  return out;
}

bool plausible_page_bytes(std::uint32_t page_bytes) {
  return std::has_single_bit(page_bytes) && page_bytes >= kPageBytesMin && page_bytes <= kPageBytesMax;
}

Parsed<void> check_meta(const Meta& meta) {
  if (!plausible_page_bytes(meta.page_bytes))
    return complain("its page size of " + std::to_string(meta.page_bytes) + " bytes is impossible");
  constexpr auto kFileBytesMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (meta.last_page + 1 < kMetaPages || meta.last_page >= kFileBytesMax / meta.page_bytes)
    return complain("its last page " + std::to_string(meta.last_page) + " is impossible");
  if ((meta.free_db.flags & ~kNoSubdir) != kIntegerKeys)
    return complain("its freelist has the flags " + hex(meta.free_db.flags));
  if (meta.main_db.flags != 0)
    return complain("its main tree has the flags " + hex(meta.main_db.flags) + ", and perdure uses none");
  if (auto ok = check_root(meta.free_db, meta.last_page, "freelist"); !ok) return ok;
  return check_root(meta.main_db, meta.last_page, "main tree");
}

Parsed<PageView> PageView::parse(BytesView bytes, PageNumber number) {
  check(bytes.size() >= kPageBytesMin && bytes.size() <= kPageBytesMax, "a page of an impossible size");
  if (auto ok = check_number(bytes, number); !ok) return std::unexpected(ok.error());
  auto flags = load<std::uint16_t>(bytes, 10);
  if (flags != kBranchPage && flags != kLeafPage)
    return complain("it is neither a branch nor a leaf, its flags are " + hex(flags));
  auto lower = load<std::uint16_t>(bytes, 12);
  auto upper = load<std::uint16_t>(bytes, 14);
  if (lower < kPageHeaderBytes || lower % 2 != 0 || lower > upper || upper > bytes.size())
    return complain("its free space from " + std::to_string(lower) + " to " + std::to_string(upper) + " is impossible");

  PageView page;
  page.bytes_ = bytes;
  page.kind_ = flags == kBranchPage ? PageKind::kBranch : PageKind::kLeaf;
  page.node_count_ = (lower - kPageHeaderBytes) / 2;
  page.upper_ = upper;
  if (page.node_count_ == 0) return complain("it has no keys");
  return page;
}

Parsed<Node> PageView::node(std::size_t index) const {
  check(index < node_count_, "a node beyond the last of its page");
  std::size_t offset = load<std::uint16_t>(bytes_, kPageHeaderBytes + 2 * index);
  // LMDB pads nodes to even sizes, so an odd offset cannot be one of its own.
  if (offset < upper_ || offset % 2 != 0 || bytes_.size() - kNodeHeaderBytes < offset)
    return complain("node " + std::to_string(index) + " starts at the impossible offset " + std::to_string(offset));
  auto node = kind_ == PageKind::kBranch ? branch_node(offset) : leaf_node(offset);
  if (!node) return complain("node " + std::to_string(index) + " " + node.error());
  node->stored_bytes += node->stored_bytes % 2;
  return node;
}

// A node's header is 32 bits of value size, or 48 bits of child page, whose upper 16 are the flags of a leaf's node,
// and 16 bits of key size.
Parsed<Node> PageView::branch_node(std::size_t offset) const {
  std::size_t key_bytes = load<std::uint16_t>(bytes_, offset + 6);
  std::size_t room = bytes_.size() - offset - kNodeHeaderBytes;
  if (key_bytes > kKeyBytesMax || key_bytes > room)
    return complain("has a key of " + std::to_string(key_bytes) + " bytes, and there is no room for it");
  Node node;
  node.key = bytes_.substr(offset + kNodeHeaderBytes, key_bytes);
  node.child = load<std::uint32_t>(bytes_, offset) | static_cast<PageNumber>(load<std::uint16_t>(bytes_, offset + 4))
                                                         << 32;
  node.stored_bytes = kNodeHeaderBytes + key_bytes;
  return node;
}

Parsed<Node> PageView::leaf_node(std::size_t offset) const {
  auto flags = load<std::uint16_t>(bytes_, offset + 4);
  std::size_t key_bytes = load<std::uint16_t>(bytes_, offset + 6);
  std::size_t room = bytes_.size() - offset - kNodeHeaderBytes;
  if (flags != 0 && flags != kBigValue) return complain("has the flags " + hex(flags) + ", and perdure writes no such");
  if (key_bytes == 0 || key_bytes > kKeyBytesMax || key_bytes > room)
    return complain("has a key of " + std::to_string(key_bytes) + " bytes, which is impossible here");
  Node node;
  node.key = bytes_.substr(offset + kNodeHeaderBytes, key_bytes);
  node.value_bytes = load<std::uint32_t>(bytes_, offset);
  std::uint64_t in_page = flags == kBigValue ? sizeof(PageNumber) : node.value_bytes;
  if (in_page > room - key_bytes)
    return complain("has a value of " + std::to_string(in_page) + " bytes, which runs over the end of the page");
  if (flags == kBigValue)
    node.overflow = load<std::uint64_t>(bytes_, offset + kNodeHeaderBytes + key_bytes);
  else
    node.inline_value = bytes_.substr(offset + kNodeHeaderBytes + key_bytes, in_page);
  node.stored_bytes = kNodeHeaderBytes + key_bytes + in_page;
  return node;
}

Parsed<std::uint64_t> parse_overflow_header(BytesView header, PageNumber number) {
  if (auto ok = check_number(header, number); !ok) return std::unexpected(ok.error());
  if (auto flags = load<std::uint16_t>(header, 10); flags != kOverflowPage)
    return complain("it is not an overflow page, its flags are " + hex(flags));
  return load<std::uint32_t>(header, 12);
}

}  // namespace perdure::lmdb
