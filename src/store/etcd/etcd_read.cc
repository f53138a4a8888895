#include "store/etcd/etcd_read.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace perdure::etcd {
namespace {

constexpr std::size_t kOpsPerTxn = 100;
static_assert(kOpsPerTxn <= kOpsMax);
constexpr int kAttempts = 3;
/// A first page of unknown rows must come in time even if all of them are large; later ones go by what was seen.
constexpr std::size_t kFirstPageRows = 128, kPageRowsMin = 8, kPageRowsMax = 1'000, kPageBytes = 8 << 20;

/// One of the reads, and how far it has come.
class Progress {
 public:
  explicit Progress(const Range& wanted) : wanted_(wanted), next_(wanted) {
    const bool bounded = wanted.limit > 0 && wanted.limit <= kPageRowsMax;
    if (!bounded) next_.limit = kFirstPageRows;
    if (wanted.end.empty()) next_.limit = 0;
    // For a reverse order the server looks at the whole range each time, so a long one is read forward and turned over.
    turned_ = wanted.direction == Direction::kReverse && !bounded;
    if (turned_) next_.direction = Direction::kForward;
  }

  bool done() const { return done_; }
  Range next(Revision revision) const {
    Range range = next_;
    range.revision = revision;
    return range;
  }

  void take(RangeAnswer& page) {
    for (KeyValue& row : page.rows) bytes_ += row.key.size() + row.value.size();
    std::ranges::move(page.rows, std::back_inserter(got_.rows));
    const bool bounded = wanted_.limit > 0 && !turned_;
    if (!page.more || got_.rows.empty() || (bounded && got_.rows.size() >= wanted_.limit)) {
      finish(page.more);
      return;
    }
    next_.key = got_.rows.back().key + '\0';
    next_.limit = std::clamp(kPageBytes * got_.rows.size() / (bytes_ + 1), kPageRowsMin, kPageRowsMax);
    if (bounded) next_.limit = std::min(next_.limit, wanted_.limit - got_.rows.size());
  }

  RangeAnswer& answer() { return got_; }

 private:
  void finish(bool more) {
    done_ = true;
    got_.more = more;
    if (!turned_) return;
    std::ranges::reverse(got_.rows);
    got_.more = wanted_.limit > 0 && got_.rows.size() > wanted_.limit;
    if (got_.more) got_.rows.resize(wanted_.limit);
  }

  const Range& wanted_;
  Range next_;
  RangeAnswer got_;
  std::size_t bytes_ = 0;
  bool turned_ = false;
  bool done_ = false;
};

/// Nothing if the revision went away meanwhile.
Result<std::optional<std::vector<RangeAnswer>>> attempt(Client& client, const std::vector<Range>& reads) {
  std::vector<Progress> all(reads.begin(), reads.end());
  std::vector<Progress*> open;
  for (Progress& each : all) open.push_back(&each);
  for (Revision revision = 0; !open.empty();) {
    const std::size_t count = std::min(open.size(), kOpsPerTxn);
    Txn txn;
    for (std::size_t i = 0; i < count; ++i) txn.then.emplace_back(open[i]->next(revision));
    auto answer = client.read(txn);
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (answer->compacted) return std::nullopt;
    if (answer->answers.size() != count)
      return fail(ErrorCode::kUnavailable, "etcd answers a part only of what it was asked");
    if (revision == 0) revision = answer->revision;
    for (std::size_t i = 0; i < count; ++i) open[i]->take(answer->answers[i]);
    std::erase_if(open, [](Progress* each) { return each->done(); });
  }
  std::vector<RangeAnswer> answers;
  for (Progress& each : all) answers.push_back(std::move(each.answer()));
  return answers;
}

}  // namespace

Result<std::vector<RangeAnswer>> read_at_once(Client& client, const std::vector<Range>& reads) {
  for (int i = 0; i < kAttempts; ++i) {
    auto answers = attempt(client, reads);
    if (!answers) return std::unexpected(std::move(answers.error()));
    if (*answers) return std::move(**answers);
  }
  return fail(ErrorCode::kUnavailable,
              "etcd is compacted faster than it can be read; compact less often, or keep some revisions");
}

}  // namespace perdure::etcd
