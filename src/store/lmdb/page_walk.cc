#include "store/lmdb/page_walk.h"

#include "store/lmdb/free_list.h"
#include "store/lmdb/page_file.h"
#include "store/lmdb/tree_walk.h"

namespace perdure::lmdb {
namespace {

constexpr std::uint64_t kPagesPerProgress = 256;

std::uint64_t pages_of(const DbRecord& tree) {
  return tree.branch_pages + tree.leaf_pages + tree.overflow_pages;
}

class SnapshotWalk {
 public:
  SnapshotWalk(const PageFile& file, const Meta& meta, const RowVisitor& visit, const WalkOptions& options)
      : file_(file), meta_(meta), visit_(visit), options_(options), owners_(file), findings_(options.damage_max) {}

  WalkReport run() {
    WalkReport report;
    // The freelist goes first, so that a page that is both free and in use is reported with the place that uses it.
    report.freelist_pages = pages_of(walk_free_list(file_, meta_, owners_, findings_));
    check_missing();
    TreeWalk tree(TreeKind::kMain, file_, owners_, findings_,
                  {.on_row = [&](const Row& row) { visit_row(row); }, .on_page = [&] { progress(); }});
    tree.run(meta_.main_db);
    if (options_.progress) options_.progress(pages_done(), meta_.page_count());

    report.rows = tree.counted().entries;
    report.tree_pages = pages_of(tree.counted());
    report.free_pages = owners_.free().size();
    report.lost_pages = meta_.page_count() - pages_done();
    report.damage_count = findings_.count();
    report.damage = findings_.take();
    return report;
  }

 private:
  void check_missing() {
    auto lost = file_.missing_pages() - owners_.free().beyond_end();
    if (lost > 0)
      findings_.add("the file is truncated: its last page should be " + std::to_string(file_.last_page()) + ", and " +
                    std::to_string(lost) + " pages beyond its end are not listed as free");
  }

  void visit_row(const Row& row) {
    auto report = [&](const std::string& what) {
      findings_.add(row.page, "row " + std::to_string(row.index) + " (" + printable(row.key) + "): " + what);
    };
    if (row.value.size() > options_.value_bytes_max)
      return report("its value of " + std::to_string(row.value.size()) + " bytes is larger than any can be");
    value_.resize(row.value.size());
    if (auto ok = row.value.read(0, value_.data(), value_.size()); !ok) return report(ok.error());
    if (auto wrong = visit_(row.key, value_)) report(*wrong);
  }

  void progress() {
    if (options_.progress && ++pages_since_progress_ >= kPagesPerProgress) {
      pages_since_progress_ = 0;
      options_.progress(pages_done(), meta_.page_count());
    }
  }

  std::uint64_t pages_done() const { return kMetaPages + owners_.used().size() + owners_.free().size(); }

  const PageFile& file_;
  const Meta& meta_;
  const RowVisitor& visit_;
  const WalkOptions& options_;
  PageOwners owners_;
  Findings findings_;
  Bytes value_;  // Of the row that is visited; kept so that its memory is.
  std::uint64_t pages_since_progress_ = 0;
};

}  // namespace

Result<WalkReport> walk(int fd, BytesView path, const Meta& meta, const RowVisitor& visit, WalkOptions options) {
  if (auto ok = check_meta(meta); !ok)
    return fail(ErrorCode::kInvalidArgument,
                "the snapshot of " + std::string(path) + " cannot be walked: " + ok.error());
  auto bytes = file_bytes(fd, path);
  if (!bytes) return std::unexpected(bytes.error());
  PageFile file(fd, meta, *bytes);
  return SnapshotWalk(file, meta, visit, options).run();
}

}  // namespace perdure::lmdb
