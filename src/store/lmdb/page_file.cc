#include "store/lmdb/page_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/assert.h"

namespace perdure::lmdb {
namespace {

std::string describe(int error_number) {
  return std::generic_category().message(error_number);
}

std::unexpected<Complaint> complain(std::string what) {
  return std::unexpected(std::move(what));
}

}  // namespace

std::expected<std::size_t, int> read_at(int fd, std::uint64_t offset, char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    ssize_t got = ::pread(fd, to + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Error read_error(BytesView path, int error_number) {
  return {ErrorCode::kStoreFailed, "reading " + std::string(path) + " failed: " + describe(error_number) +
                                       "; check the disk and the rights to the file"};
}

Result<std::uint64_t> file_bytes(int fd, BytesView path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return std::unexpected(read_error(path, errno));
  return static_cast<std::uint64_t>(status.st_size);
}

PageFile::PageFile(int fd, const Meta& meta, std::uint64_t bytes)
    : fd_(fd),
      page_bytes_(meta.page_bytes),
      last_page_(meta.last_page),
      present_pages_(std::min(bytes / meta.page_bytes, meta.page_count())) {}

Parsed<void> PageFile::check_run(PageNumber first, std::uint64_t count) const {
  if (first < kMetaPages) return complain("a meta page");
  if (first > last_page_ || count > last_page_ + 1 - first)
    return complain("beyond the last page " + std::to_string(last_page_));
  if (first + count > present_pages_) return complain("beyond the end of the file");
  return {};
}

Parsed<void> PageFile::read(PageNumber page, std::uint64_t offset, char* to, std::size_t size) const {
  check(page < present_pages_, "a read beyond the end of the file");
  auto got = read_at(fd_, page * page_bytes_ + offset, to, size);
  if (!got) return complain("it cannot be read: " + describe(got.error()));
  // Nobody shortens an LMDB file while it is open, but a damaged disk or an eager administrator may.
  if (*got != size) return complain("the file ended while it was read");
  return {};
}

bool PageSet::contains(PageNumber page) const {
  return page < present_.size() ? present_[page] : beyond_.contains(page);
}

bool PageSet::insert(PageNumber page) {
  if (contains(page)) return false;
  if (page < present_.size())
    present_[page] = true;
  else
    beyond_.insert(page);
  ++size_;
  return true;
}

Parsed<void> PageOwners::use(PageNumber first, std::uint64_t count) {
  for (PageNumber page = first; page < first + count; ++page) {
    if (free_.contains(page)) return complain("page " + std::to_string(page) + " is listed as free");
    if (!used_.insert(page)) return complain("page " + std::to_string(page) + " is in use elsewhere too");
  }
  return {};
}

Parsed<void> PageOwners::free(PageNumber page) {
  if (used_.contains(page)) return complain("page " + std::to_string(page) + " is in use");
  if (!free_.insert(page)) return complain("page " + std::to_string(page) + " is listed elsewhere too");
  return {};
}

void Findings::add(PageNumber page, const std::string& what) {
  add("page " + std::to_string(page) + ": " + what);
}

void Findings::add(std::string what) {
  ++count_;
  if (kept_.size() < max_) kept_.push_back(std::move(what));
}

}  // namespace perdure::lmdb
