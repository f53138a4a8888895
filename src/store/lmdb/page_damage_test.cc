// Damage at known places: each kind is found, and named with the page and the node where it is.
#include <gtest/gtest.h>

#include <algorithm>

#include "store/lmdb/lmdb_test_file.h"
#include "store/lmdb/page_walk.h"

namespace perdure::lmdb {
namespace {

class DamagedFile : public ::testing::Test {
 protected:
  DamagedFile() : image_(varied_image(2000, 8)), txnid_(image_.newest_txnid()) {
    meta_ = read_meta(image_.fd(), "data.mdb", txnid_).value();
  }

  std::uint64_t at(PageNumber page) const { return page * meta_.page_bytes; }
  std::uint64_t meta_at() const { return at(txnid_ % 2) + 16; }
  std::uint64_t node_at(PageNumber page, std::size_t index) const {
    return at(page) + image_.read_number<std::uint16_t>(at(page) + 16 + 2 * index);
  }
  PageNumber child(PageNumber page, std::size_t index) const {
    return image_.read_number<std::uint32_t>(node_at(page, index));
  }
  /// The leaf that holds the first row; keys there are "big/...", so that its values are outside.
  PageNumber first_leaf() const {
    PageNumber page = meta_.main_db.root;
    while (image_.read_number<std::uint16_t>(at(page) + 10) == 1) page = child(page, 0);
    return page;
  }
  std::uint64_t overflow_link_at(std::size_t index) const {
    auto node = node_at(first_leaf(), index);
    return node + 8 + image_.read_number<std::uint16_t>(node + 6);
  }

  /// One of the findings contains all of `parts`.
  void expect_named(std::initializer_list<std::string> parts) {
    auto report = judge(image_, txnid_).report;
    bool named = std::ranges::any_of(report.damage, [&](const std::string& finding) {
      return std::ranges::all_of(parts, [&](const std::string& part) { return finding.contains(part); });
    });
    std::string all;
    for (const auto& finding : report.damage) all += "\n  " + finding;
    EXPECT_TRUE(named) << "looked for " << *parts.begin() << " in:" << all;
  }
  static std::string page(PageNumber number) { return "page " + std::to_string(number) + ": "; }

  FileImage image_;
  std::uint64_t txnid_;
  Meta meta_;
};

TEST_F(DamagedFile, UndamagedItIsClean) {
  EXPECT_TRUE(judge(image_, txnid_).clean());
}

TEST_F(DamagedFile, FlippedBranchPointerIsNamed) {
  auto root = meta_.main_db.root;
  image_.write_number<std::uint32_t>(node_at(root, 1), 999'999);
  expect_named({page(root), "node 1 points to page 999999, which is beyond the last page"});
}

TEST_F(DamagedFile, BranchPointerToASiblingIsNamed) {
  auto root = meta_.main_db.root;
  image_.write_number(node_at(root, 2), static_cast<std::uint32_t>(child(root, 1)));
  expect_named({page(root), "node 2 points to page", "is in use elsewhere too"});
}

TEST_F(DamagedFile, BranchPointerToItselfEndsTheWalk) {
  auto root = meta_.main_db.root;
  image_.write_number(node_at(root, 0), static_cast<std::uint32_t>(root));
  expect_named({page(root), "node 0 points to page", "is in use elsewhere too"});
}

TEST_F(DamagedFile, SwappedChildrenAreOutsideTheirSeparators) {
  auto root = meta_.main_db.root;
  auto one = child(root, 1), two = child(root, 2);
  image_.write_number(node_at(root, 1), static_cast<std::uint32_t>(two));
  image_.write_number(node_at(root, 2), static_cast<std::uint32_t>(one));
  expect_named({page(one), "key 0 is outside of the bounds"});
  expect_named({page(two), "key 0 is outside of the bounds"});
}

TEST_F(DamagedFile, KeysOutOfOrderAreNamed) {
  auto leaf = child(meta_.main_db.root, 1);
  auto offsets = image_.read(at(leaf) + 16, 4);
  image_.write(at(leaf) + 16, offsets.substr(2) + offsets.substr(0, 2));
  expect_named({page(leaf), "key 1 is not above key 0"});
}

TEST_F(DamagedFile, EqualKeysAreNamed) {
  auto leaf = child(meta_.main_db.root, 1);
  image_.write(at(leaf) + 16, image_.read(at(leaf) + 18, 2));
  expect_named({page(leaf), "key 1 is not above key 0"});
}

TEST_F(DamagedFile, PageAtTheWrongPlaceIsNamed) {
  auto leaf = child(meta_.main_db.root, 1), other = child(meta_.main_db.root, 2);
  image_.write(at(leaf), image_.read(at(other), meta_.page_bytes));
  expect_named({page(leaf), "says that it is page " + std::to_string(other)});
}

TEST_F(DamagedFile, ZeroedPageIsNamedAndTheOthersAreStillVisited) {
  auto leaf = child(meta_.main_db.root, 1);
  auto rows_there = (image_.read_number<std::uint16_t>(at(leaf) + 12) - 16u) / 2;
  image_.write(at(leaf), Bytes(meta_.page_bytes, '\0'));
  auto report = judge(image_, txnid_).report;
  ASSERT_EQ(report.damage_count, 1u);
  EXPECT_EQ(report.damage[0], page(leaf) + "the page says that it is page 0");
  EXPECT_EQ(report.rows, meta_.main_db.entries - rows_there);
}

TEST_F(DamagedFile, DamagedHeaderSizesOffsetsAndFlagsAreNamed) {
  auto leaf = child(meta_.main_db.root, 1);
  Bytes sound = image_.read(at(leaf), meta_.page_bytes);
  auto with = [&](std::uint64_t offset, std::uint16_t value, const std::string& what) {
    image_.write_number(at(leaf) + offset, value);
    expect_named({page(leaf), what});
    image_.write(at(leaf), sound);
  };
  with(10, 0x42, "neither a branch nor a leaf");
  with(12, 15, "free space");
  with(12, 16, "no keys");
  with(12, 40'000, "free space");
  with(14, 4098, "free space");
  with(16, 4096, "node 0 starts at the impossible offset 4096");
  with(16, 4090, "node 0 starts at the impossible offset 4090");
  with(16, 16, "node 0 starts at the impossible offset 16");
  auto node = node_at(leaf, 0) - at(leaf);
  with(node + 6, 512, "node 0 has a key of 512 bytes");
  with(node + 6, 0, "node 0 has a key of 0 bytes");
  with(node + 4, 4, "node 0 has the flags 0x4");
  with(node, 5000, "node 0 has a value of 5000 bytes");
  with(node, 2, "its nodes take");
}

TEST_F(DamagedFile, LeafAtTheWrongDepthIsNamed) {
  auto root = meta_.main_db.root;
  auto leaf = child(root, 1);
  // The leaf becomes a branch with two children, one of which is a leaf below the others.
  image_.write_number<std::uint16_t>(at(leaf) + 10, 1);
  image_.write_number<std::uint32_t>(node_at(leaf, 0), static_cast<std::uint32_t>(child(root, 2)));
  image_.write_number<std::uint16_t>(node_at(leaf, 0) + 4, 0);
  expect_named({page(child(root, 2)), "it is a leaf at depth 3, but others are at depth 2"});
}

TEST_F(DamagedFile, WrongOverflowLinksAreNamed) {
  auto leaf = first_leaf();
  auto other = image_.read_number<std::uint64_t>(overflow_link_at(1));
  auto mine = image_.read_number<std::uint64_t>(overflow_link_at(0));
  image_.write_number(overflow_link_at(0), std::uint64_t{1} << 60);
  expect_named({page(leaf), "node 0 has its value at page", "beyond the last page"});
  image_.write_number(overflow_link_at(0), std::uint64_t{0});
  expect_named({page(leaf), "node 0 has its value at page 0, which is a meta page"});
  image_.write_number(overflow_link_at(0), leaf);
  expect_named({page(leaf), "node 0", "it is not an overflow page"});
  image_.write_number(overflow_link_at(0), other);
  expect_named({page(leaf), "node 1 has its value at page", "is in use elsewhere too"});
  image_.write_number(overflow_link_at(0), mine);
  image_.write_number(at(mine) + 12, 0x7fffffffu);
  expect_named({page(leaf), "node 0", "pages go beyond the last page"});
  image_.write_number<std::uint32_t>(at(mine) + 12, 1);
  expect_named({page(leaf), "node 0", "are too few for 9000 bytes"});
}

TEST_F(DamagedFile, DamagedValueIsLeftToTheVisitorAndNamedWithItsKey) {
  auto value = image_.read_number<std::uint64_t>(overflow_link_at(0));
  image_.write(at(value) + 8000, "?");
  expect_named({page(first_leaf()), "row 0 (big/3): its checksum is wrong"});
}

TEST_F(DamagedFile, CountsThatDifferFromTheMetaAreNamed) {
  image_.write_number(meta_at() + 24 + 48 + 32, meta_.main_db.entries + 1);
  expect_named({"the main tree should have " + std::to_string(meta_.main_db.entries + 1) + " rows"});
  image_.write_number<std::uint16_t>(meta_at() + 24 + 48 + 6, 9);
  expect_named({"the main tree should have 9 levels"});
  image_.write_number<std::uint64_t>(meta_at() + 24 + 48 + 24, 0);
  expect_named({"the main tree should have 0 overflow pages"});
  image_.write_number<std::uint64_t>(meta_at() + 24 + 32, 77);
  expect_named({"the freelist should have 77 rows"});
}

TEST_F(DamagedFile, FreePageThatIsInUseIsNamed) {
  auto list_page = meta_.free_db.root;
  ASSERT_EQ(image_.read_number<std::uint16_t>(at(list_page) + 10), 2u);
  auto first = node_at(list_page, 0) + 8 + 8;
  ASSERT_GE(image_.read_number<std::uint64_t>(first), 1u);
  auto used = child(meta_.main_db.root, 0);
  auto count = image_.read_number<std::uint64_t>(first);
  image_.write_number(first, std::uint64_t{1});
  image_.write_number(first + 8, used);
  expect_named({page(meta_.main_db.root), "node 0 points to page", "is listed as free"});
  image_.write_number(first, count + 100);
  expect_named({page(list_page), "list 0: it should hold"});
  image_.write_number(first, std::uint64_t{1});
  image_.write_number(first + 8, list_page);
  expect_named({page(list_page), "list 0", "is in use"});
  image_.write_number(node_at(list_page, 0) + 8, txnid_ + 1);
  expect_named({page(list_page), "list 0 is of transaction"});
}

TEST_F(DamagedFile, ListsOfImpossibleFreePagesAreNamed) {
  auto list_page = meta_.free_db.root;
  // Node, then key, then count, then the pages.
  auto one = node_at(list_page, 0) + 8 + 8 + 8, two = node_at(list_page, 1) + 8 + 8 + 8;
  ASSERT_GE(image_.read_number<std::uint64_t>(one - 8), 2u);
  ASSERT_GE(image_.read_number<std::uint64_t>(two - 8), 2u);
  Bytes sound = image_.read(at(list_page), meta_.page_bytes);
  auto highest = image_.read_number<std::uint64_t>(one);
  image_.write(one, sound.substr(one + 8 - at(list_page), 8) + sound.substr(one - at(list_page), 8));
  expect_named({page(list_page), "list 0: page " + std::to_string(highest) + " comes after page"});
  image_.write(at(list_page), sound);
  for (std::uint64_t wrong : {meta_.last_page + 1, std::uint64_t{1}}) {
    image_.write_number(one, wrong);
    expect_named({page(list_page), "list 0: page " + std::to_string(wrong) + " cannot be free"});
  }
  image_.write(at(list_page), sound);
  image_.write_number(two - 8, std::uint64_t{1});
  image_.write_number(two, highest);
  expect_named({page(list_page), "list 1: it lists a page, but page", "is listed elsewhere too"});
}

TEST_F(DamagedFile, BranchWithASingleChildIsNamed) {
  auto root = meta_.main_db.root;
  auto node = image_.read(node_at(root, 0), 8);
  image_.write_number<std::uint16_t>(at(root) + 12, 18);
  image_.write_number<std::uint16_t>(at(root) + 14, 4088);
  image_.write_number<std::uint16_t>(at(root) + 16, 4088);
  image_.write(at(root) + 4088, node);
  expect_named({page(root), "it is a branch with a single child"});
}

TEST_F(DamagedFile, FindingsAreBoundedButAllAreCounted) {
  auto meta = read_meta(image_.fd(), "data.mdb", txnid_).value();
  auto complain = [](BytesView, BytesView) { return std::optional<std::string>("no"); };
  auto report = walk(image_.fd(), "data.mdb", meta, complain, {.damage_max = 3}).value();
  EXPECT_EQ(report.damage.size(), 3u);
  EXPECT_EQ(report.damage_count, meta.main_db.entries);
}

TEST_F(DamagedFile, ValueAboveTheLimitIsNamedAndNotVisited) {
  auto meta = read_meta(image_.fd(), "data.mdb", txnid_).value();
  std::size_t largest = 0;
  auto visit = [&](BytesView, BytesView value) {
    largest = std::max(largest, value.size());
    return std::optional<std::string>();
  };
  auto report = walk(image_.fd(), "data.mdb", meta, visit, {.value_bytes_max = 8999}).value();
  EXPECT_EQ(report.damage_count, 5u);
  EXPECT_LT(largest, 8999u);
}

TEST_F(DamagedFile, WalkAndCheckAgreeOnWhatIsTruncated) {
  auto visit = [](BytesView, BytesView) { return std::optional<std::string>(); };
  int accepted = 0, refused = 0;
  for (PageNumber pages = meta_.last_page; pages > kMetaPages; --pages) {
    image_.truncate(at(pages) + 100);
    auto report = walk(image_.fd(), "data.mdb", meta_, visit).value();
    bool complete = check_file_size(image_.fd(), "data.mdb").has_value();
    EXPECT_EQ(complete, report.sound()) << pages;
    EXPECT_EQ(complete,
              std::ranges::none_of(report.damage, [](auto& finding) { return finding.contains("truncated"); }));
    ++(complete ? accepted : refused);
  }
  EXPECT_GT(accepted, 5);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace perdure::lmdb
