// Folding: one transaction that writes rows and trims the log, in two round trips if it is small.
#include <algorithm>
#include <utility>

#include "store/postgres/postgres_server.h"
#include "store/postgres/schema.h"

namespace perdure::postgres {
namespace {

using remote::Fold;
using remote::FoldedRow;

/// What is sent at once, so that neither side has to hold a large fold in its memory.
constexpr std::size_t kChunkBytes = 4 << 20;

/// Gathers rows into statements, and statements into round trips.
class FoldWriter {
 public:
  explicit FoldWriter(Connection& connection) : connection_(connection) {}

  Result<void> add(const FoldedRow& row) {
    if (row.row) {
      keys_.push_back(row.key);
      versions_.push_back(row.row->version.number);
      values_.push_back(row.row->value);
      bytes_ += row.row->value.size();
    } else {
      erased_.push_back(row.key);
    }
    bytes_ += row.key.size() + 16;
    return bytes_ < kChunkBytes ? Result<void>() : send();
  }

  void add(Request request) {
    gather_rows();
    requests_.push_back(std::move(request));
  }

  Result<void> send() {
    gather_rows();
    bytes_ = 0;
    std::vector<Request> requests = std::exchange(requests_, {});
    auto answers = connection_.run(requests);
    if (!answers) return std::unexpected(std::move(answers.error()));
    return {};
  }

 private:
  void gather_rows() {
    if (!keys_.empty()) {
      Parameters parameters;
      parameters.bytes_array(keys_).number_array(versions_).bytes_array(values_);
      requests_.push_back(prepared(kPutRows, std::move(parameters)));
    }
    if (!erased_.empty()) {
      Parameters parameters;
      parameters.bytes_array(erased_);
      requests_.push_back(prepared(kEraseRows, std::move(parameters)));
    }
    keys_.clear(), versions_.clear(), values_.clear(), erased_.clear();
  }

  Connection& connection_;
  std::vector<BytesView> keys_, values_, erased_;
  std::vector<std::uint64_t> versions_;
  std::size_t bytes_ = 0;
  std::vector<Request> requests_;
};

/// Whether it is for us to fold: nobody else has done so or is about to, and the log has what is folded.
Result<bool> lock_fold(Connection& connection, const Fold& fold) {
  Parameters parameters;
  parameters.number(fold.from.number).number(fold.to.version.number).number(fold.to.link);
  std::vector<Request> requests;
  requests.push_back(prepared(kBegin));
  requests.push_back(prepared(kLockFold, std::move(parameters)));
  auto answers = connection.run(requests);
  if (!answers) return std::unexpected(std::move(answers.error()));
  return answers->back().rows() == 1;
}

Result<void> write_fold(Connection& connection, const Fold& fold) {
  // In the order of the index, which touches its pages once.
  std::vector<const FoldedRow*> rows;
  for (const FoldedRow& row : fold.rows) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const FoldedRow* row) { return BytesView(row->key); });
  FoldWriter writer(connection);
  for (const FoldedRow* row : rows)
    if (auto added = writer.add(*row); !added) return added;
  Parameters trim, state;
  trim.number(fold.trim.number);
  state.number(fold.to.version.number).number(fold.trim.number);
  writer.add(prepared(kTrimLog, std::move(trim)));
  writer.add(prepared(kSetFold, std::move(state)));
  writer.add(prepared(kCommit));
  return writer.send();
}

}  // namespace

Result<bool> fold_on(Connection& connection, const Fold& fold) {
  auto locked = lock_fold(connection, fold);
  if (locked && !*locked) {
    if (!connection.run(prepared(kRollback))) connection.abandon();
    return false;
  }
  Result<void> written;
  if (locked) written = write_fold(connection, fold);
  if (locked && written) return true;
  connection.abandon();  // The server rolls back what it has of the transaction.
  return std::unexpected(locked ? std::move(written.error()) : std::move(locked.error()));
}

}  // namespace perdure::postgres
