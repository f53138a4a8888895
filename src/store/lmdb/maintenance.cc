// Verify and backup: both read the whole store from one snapshot while others go on.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "store/lmdb/errors.h"
#include "store/lmdb/lmdb_engine.h"
#include "store/lmdb/page_walk.h"
#include "store/lmdb/row.h"

namespace perdure::lmdb {
namespace {

/// How often to begin again when commits overtake the reading of the meta page.
constexpr int kMetaAttempts = 100;

std::optional<std::string> check_row(BytesView key, BytesView row) {
  if (row_is_whole(key, row)) return std::nullopt;
  return "its checksum does not match";
}

Result<void> sync_and_rename(int fd, const std::string& partial, const std::string& path) {
  if (fsync(fd) != 0) return std::unexpected(errno_error(errno, "cannot sync " + partial));
  // A file that somebody made meanwhile is not replaced.
  if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0)
    return std::unexpected(errno_error(errno, "cannot give the backup its name " + path));
  std::string directory = std::filesystem::absolute(path).parent_path();
  int directory_fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool synced = directory_fd >= 0 && fsync(directory_fd) == 0;
  int code = errno;
  if (directory_fd >= 0) close(directory_fd);
  if (!synced) return std::unexpected(errno_error(code, "cannot sync " + directory));
  return {};
}

}  // namespace

Result<VerifyReport> LmdbEngine::verify(const std::function<void(double)>& progress) {
  int fd = open(environment_->path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::unexpected(errno_error(errno, "cannot open " + environment_->path));
  Result<WalkReport> walked = fail(ErrorCode::kUnavailable, "commits came too fast to begin to verify; try again");
  VerifyReport report;
  std::shared_lock gate(resize_gate_);
  for (int attempt = 0; attempt < kMetaAttempts && !walked && walked.error().code == ErrorCode::kUnavailable;
       ++attempt) {
    auto txn = begin_read();
    if (!txn) {
      walked = std::unexpected(std::move(txn.error()));
      break;
    }
    auto meta = read_meta(fd, environment_->path, mdb_txn_id(*txn));
    auto visit = [&report](BytesView key, BytesView row) {
      report.bytes += key.size() + row.size();
      return check_row(key, row);
    };
    WalkOptions options;
    if (progress)
      options.progress = [&](std::uint64_t done, std::uint64_t total) {
        progress(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
      };
    if (meta)
      walked = walk(fd, environment_->path, *meta, visit, options);
    else
      walked = std::unexpected(std::move(meta.error()));
    mdb_txn_abort(*txn);
  }
  close(fd);
  if (!walked) return std::unexpected(std::move(walked.error()));
  report.rows = walked->rows;
  report.problem_count = walked->damage_count;
  report.problems = std::move(walked->damage);
  return report;
}

Result<void> LmdbEngine::backup(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0)
    return fail(ErrorCode::kInvalidArgument, path + " exists already; a backup never replaces a file, name another");
  std::string partial = path + ".partial";
  int fd = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return std::unexpected(errno_error(errno, "cannot make " + partial));
  std::shared_lock gate(resize_gate_);
  // Not compacted: a compacted copy begins to count its commits anew, and this one can be opened as it is.
  int code = mdb_env_copyfd(environment_->env, fd);
  auto done = code ? std::unexpected(lmdb_error(code, "cannot write " + partial)) : sync_and_rename(fd, partial, path);
  close(fd);
  if (!done) unlink(partial.c_str());
  return done;
}

}  // namespace perdure::lmdb
