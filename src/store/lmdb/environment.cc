#include "store/lmdb/environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/assert.h"
#include "base/endian.h"
#include "store/lmdb/errors.h"
#include "store/lmdb/file_check.h"
#include "store/lmdb/row.h"

namespace perdure::lmdb {
namespace {

/// More than this many transactions cannot read at one time, all processes together.
constexpr unsigned kReadersMax = 8192;

/// A file descriptor that closes itself.
struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

Result<void> sync_directory(const std::string& directory) {
  File file{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (file.fd < 0 || fsync(file.fd) != 0) return std::unexpected(errno_error(errno, "cannot sync " + directory));
  return {};
}

/// File systems of other machines: their locks and their shared memory are not what LMDB relies on.
bool is_remote(long type) {
  constexpr long kNfs = 0x6969, kSmb = 0x517B, kSmb2 = 0xFE534D42, kCifs = 0xFF534D42, kAfs = 0x5346414F,
                 kCeph = 0x00C36400, k9p = 0x01021997;
  for (long remote : {kNfs, kSmb, kSmb2, kCifs, kAfs, kCeph, k9p})
    if (type == remote) return true;
  return false;
}

Result<std::string> prepare_directory(const std::string& wanted) {
  if (wanted.find('\0') != std::string::npos)
    return fail(ErrorCode::kInvalidArgument,
                "the name of the store directory " + printable(wanted, PATH_MAX) + " holds a zero byte; name another");
  bool made = mkdir(wanted.c_str(), 0700) == 0;
  if (!made && errno == ENOENT)
    return fail(ErrorCode::kInvalidArgument,
                "cannot make the store directory " + wanted + ": the directory above it does not exist");
  if (!made && errno != EEXIST) return std::unexpected(errno_error(errno, "cannot make the store directory " + wanted));
  struct stat status = {};
  if (stat(wanted.c_str(), &status) != 0) return std::unexpected(errno_error(errno, "cannot look at " + wanted));
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::kInvalidArgument, wanted + " is a file; a store needs a directory, name another");
  char absolute[PATH_MAX];
  if (!realpath(wanted.c_str(), absolute)) return std::unexpected(errno_error(errno, "cannot resolve " + wanted));
  struct statfs system = {};
  if (statfs(absolute, &system) == 0 && is_remote(system.f_type))
    return fail(ErrorCode::kUnavailable, std::string(absolute) +
                                             " is on a network file system, where LMDB loses data; "
                                             "put the store on a local disk");
  if (made)
    if (auto synced = sync_directory(std::string(absolute) + "/.."); !synced)
      return std::unexpected(std::move(synced.error()));
  return std::string(absolute);
}

/// Whether the file is what a power cut may leave of a store that was just being made: LMDB's first two pages, each
/// unwritten or the meta page of an empty tree. Anything else is somebody's data, and not ours to remove.
bool is_unfinished(int fd, off_t bytes) {
  constexpr std::size_t kPage = 4096, kMagicAt = 16, kRootAt = 128;
  constexpr std::uint32_t kMagic = 0xBEEFC0DE;
  char pages[2 * kPage] = {};
  if (bytes > static_cast<off_t>(sizeof pages) || pread(fd, pages, sizeof pages, 0) != bytes) return false;
  for (const char* page : {pages, pages + kPage}) {
    bool unwritten = BytesView(page, kPage).find_first_not_of('\0') == BytesView::npos;
    bool empty_tree = load_little<std::uint32_t>(page + kMagicAt) == kMagic &&
                      load_little<std::uint64_t>(page + kRootAt) == UINT64_MAX;
    if (!unwritten && !empty_tree) return false;
  }
  return true;
}

/// Before LMDB maps the file: it would trust it.
Result<void> check_data_file(const Environment& environment, const std::string& marker) {
  File file{open(environment.path.c_str(), O_RDWR | O_CLOEXEC)};
  struct stat status = {};
  bool missing = file.fd < 0 && errno == ENOENT;
  if (file.fd < 0 && !missing) return std::unexpected(errno_error(errno, "cannot open " + environment.path));
  if (!missing && fstat(file.fd, &status) != 0)
    return std::unexpected(errno_error(errno, "cannot look at " + environment.path));
  bool finished = access(marker.c_str(), F_OK) == 0;
  bool empty = missing || status.st_size == 0;
  if (empty && finished)
    return fail(ErrorCode::kCorrupt, environment.path + " is " + (missing ? "missing" : "empty") +
                                         ", though a store was made here; restore it from a backup");
  if (empty) return {};
  auto checked = check_file_size(file.fd, environment.path);
  // Nobody was told of a store whose making was cut short: begin again.
  if (!checked && !finished && is_unfinished(file.fd, status.st_size)) {
    if (unlink(environment.path.c_str()) != 0)
      return std::unexpected(errno_error(errno, "cannot remove the unfinished " + environment.path));
    return {};
  }
  if (!checked) return std::unexpected(std::move(checked.error()));
  if (checked->state == FileState::kShort && ftruncate(file.fd, static_cast<off_t>(checked->complete_bytes)) != 0)
    return std::unexpected(errno_error(errno, "cannot extend " + environment.path));
  return {};
}

/// Programs that are started later must not inherit the files, and with them their locks. LMDB 0.9.24 forgets that for
/// one of its descriptors and does not say which number it has, so they are found by what they name.
void close_on_exec(const std::string& path) {
  struct stat wanted = {};
  if (stat(path.c_str(), &wanted) != 0) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    int fd = std::atoi(entry.path().filename().c_str());
    struct stat status = {};
    if (fstat(fd, &status) == 0 && status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino)
      fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

Result<void> open_lmdb(Environment& environment, const StoreOptions& options) {
  std::string what = "cannot open the store in " + environment.directory;
  if (int code = mdb_env_create(&environment.env)) return std::unexpected(lmdb_error(code, what));
  // LMDB would print them.
  mdb_env_set_assert(environment.env, [](MDB_env*, const char* why) { die(why); });
  mdb_env_set_mapsize(environment.env, options.map_bytes);
  mdb_env_set_maxreaders(environment.env, kReadersMax);
  // MDB_NOTLS: read transactions move between the threads of the pool.
  if (int code = mdb_env_open(environment.env, environment.directory.c_str(), MDB_NOTLS, 0600))
    return std::unexpected(lmdb_error(code, what));
  close_on_exec(environment.path);
  int dead = 0;
  mdb_reader_check(environment.env, &dead);
  return {};
}

Result<void> put_number(MDB_txn* txn, MDB_dbi rows, BytesView key, std::uint64_t number) {
  char value[8], row[kRowHeader + 8];
  store_little(value, number);
  encode_row(row, key, Version{}, BytesView(value, sizeof value));
  MDB_val lmdb_key = to_val(key), lmdb_row = to_val(BytesView(row, sizeof row));
  if (int code = mdb_put(txn, rows, &lmdb_key, &lmdb_row, 0))
    return std::unexpected(lmdb_error(code, "cannot write the format of the store"));
  return {};
}

/// Writes the format into a new store, refuses one that is not of this format.
Result<void> check_format(Environment& environment, MDB_txn* txn) {
  if (int code = mdb_dbi_open(txn, nullptr, 0, &environment.rows))
    return std::unexpected(lmdb_error(code, "cannot open the rows of " + environment.path));
  MDB_stat status;
  mdb_stat(txn, environment.rows, &status);
  if (status.ms_entries == 0) {
    environment.was_new = true;
    if (auto put = put_number(txn, environment.rows, kFormatKey, kFormat); !put) return put;
    return put_number(txn, environment.rows, kVersionKey, 0);
  }
  MDB_val key = to_val(kFormatKey), row;
  int code = mdb_get(txn, environment.rows, &key, &row);
  if (code == MDB_NOTFOUND)
    return fail(ErrorCode::kUnsupportedFormat, environment.path + " is an LMDB file, but not a store of perdure");
  if (code) return std::unexpected(lmdb_error(code, "cannot read the format of " + environment.path));
  if (!row_is_whole(kFormatKey, to_view(row)) || row.mv_size != kRowHeader + 8)
    return fail(ErrorCode::kCorrupt, "the format row of " + environment.path + " is damaged; restore it from a backup");
  auto format = load_little<std::uint64_t>(row_value(to_view(row)).data());
  if (format != kFormat)
    return fail(ErrorCode::kUnsupportedFormat, environment.path + " has store format " + std::to_string(format) +
                                                   "; this perdure knows format " + std::to_string(kFormat) +
                                                   ", use the version that made it");
  return {};
}

/// Under the writer lock: whatever the last commit left unsynced, because its process died within it, is synced before
/// anybody here can see it.
Result<void> settle(Environment& environment) {
  MDB_txn* txn;
  if (int code = mdb_txn_begin(environment.env, nullptr, 0, &txn))
    return std::unexpected(lmdb_error(code, "cannot begin a transaction on " + environment.path));
  auto checked = check_format(environment, txn);
  if (!checked) {
    mdb_txn_abort(txn);
    return checked;
  }
  std::uint64_t epoch = mdb_txn_id(txn);
  environment.bulletin->start_listening();
  if (int code = mdb_env_sync(environment.env, 1)) {
    mdb_txn_abort(txn);
    return std::unexpected(lmdb_error(code, "cannot sync " + environment.path));
  }
  environment.bulletin->raise_durable(epoch - 1);
  // With nothing written this changes nothing on disk.
  if (int code = mdb_txn_commit(txn)) return std::unexpected(lmdb_error(code, "cannot write " + environment.path));
  MDB_envinfo info;
  mdb_env_info(environment.env, &info);
  if (info.me_last_txnid == epoch) environment.bulletin->raise_durable(epoch);
  return {};
}

Result<void> write_marker(const Environment& environment, const std::string& marker) {
  if (access(marker.c_str(), F_OK) == 0) return {};
  File file{open(marker.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  std::string text = "perdure store, format " + std::to_string(kFormat) + "\n";
  if (file.fd < 0 || write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.fd) != 0)
    return std::unexpected(errno_error(errno, "cannot write " + marker));
  return sync_directory(environment.directory);
}

}  // namespace

Environment::~Environment() {
  if (env) mdb_env_close(env);
}

Result<std::unique_ptr<Environment>> open_environment(const std::string& directory, const StoreOptions& options,
                                                      std::uint64_t life) {
  auto prepared = prepare_directory(directory);
  if (!prepared) return std::unexpected(std::move(prepared.error()));
  auto environment = std::make_unique<Environment>();
  environment->directory = std::move(*prepared);
  environment->path = environment->directory + "/data.mdb";
  std::string marker = environment->directory + "/FORMAT";

  auto bulletin = Bulletin::join(environment->directory, life);
  if (!bulletin) return std::unexpected(std::move(bulletin.error()));
  environment->bulletin = std::move(*bulletin);
  // Others at work have checked the file, and move it under our eyes.
  Result<void> done;
  if (environment->bulletin->was_first()) done = check_data_file(*environment, marker);
  if (done) done = open_lmdb(*environment, options);
  if (done) done = settle(*environment);
  if (done) done = write_marker(*environment, marker);
  if (!done) return std::unexpected(std::move(done.error()));
  environment->bulletin->finish_opening();
  return environment;
}

}  // namespace perdure::lmdb
