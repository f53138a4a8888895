#include "store/etcd/etcd_read.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "runtime/latch.h"

namespace perdure::etcd {
namespace {

constexpr std::size_t kOpsPerTxn = 100;
static_assert(kOpsPerTxn <= kOpsMax);
constexpr int kAttempts = 3;

/// What one answer should have at most.
constexpr std::size_t kAnswerBytes = 4 << 20;
/// What rows are taken for before any was seen: 64 of them make an answer.
constexpr std::size_t kRowBytesAtFirst = 64 << 10;
/// What they are taken for at least, where most of what is asked for is not there; and once that was too slow.
constexpr std::size_t kRowBytesMin = 16, kRowBytesMinWhenSlow = 16 << 10;
/// Four of them make an answer, however slow it comes: there are hardly larger ones.
constexpr std::size_t kRowBytesMinAtMost = 1 << 20;
/// Of one range in one Txn.
constexpr std::size_t kPageRowsMax = 1'000;
/// No page has more than so many times the rows of the one before: those that follow may be larger.
constexpr std::size_t kGrowth = 32;
/// Of a range without a limit, such as the log after what is known of it, not many are expected.
constexpr std::size_t kUnlimitedRowsAtFirst = 16;
/// For a reverse order the server looks at the whole range each time, so a longer one is read forward and turned over.
constexpr std::size_t kReverseRowsMax = 1'000;
constexpr Duration kSlowFor = std::chrono::seconds(30);

std::size_t bytes_of(const RangeAnswer& page) {
  std::size_t bytes = 0;
  for (const KeyValue& row : page.rows) bytes += row.key.size() + row.value.size();
  return bytes;
}

/// One of the reads, and how far it has come.
class Progress {
 public:
  explicit Progress(const Range& wanted) : wanted_(wanted), rest_(wanted) {
    if (wanted.limit == 0) page_rows_max_ = kUnlimitedRowsAtFirst;
    turned_ = wanted.direction == Direction::kReverse && (wanted.limit == 0 || wanted.limit > kReverseRowsMax);
    if (!turned_) return;
    rest_.direction = Direction::kForward;
    rest_.limit = 0;
  }

  bool done() const { return done_; }
  /// How large its rows are, going by its last page; nothing before the first.
  std::optional<std::size_t> row_bytes() const { return row_bytes_; }
  /// How many rows may be asked for next.
  std::size_t rows_max() const {
    if (rest_.end.empty()) return 1;
    return rest_.limit > 0 ? std::min(rest_.limit, page_rows_max_) : page_rows_max_;
  }

  /// The next `rows` of it.
  Range next(Revision revision, std::size_t rows) const {
    Range range = rest_;
    range.revision = revision;
    range.limit = rest_.end.empty() ? 0 : rows;
    return range;
  }

  void take(RangeAnswer& page) {
    const std::size_t count = page.rows.size();
    if (count > 0) row_bytes_ = bytes_of(page) / count;
    page_rows_max_ = std::min(count * kGrowth, kPageRowsMax);
    std::ranges::move(page.rows, std::back_inserter(got_.rows));
    const bool limited = rest_.limit > 0;
    if (limited) rest_.limit -= std::min(rest_.limit, count);
    if (!page.more || count == 0 || (limited && rest_.limit == 0)) return finish(page.more);
    if (rest_.direction == Direction::kForward)
      rest_.key = got_.rows.back().key + '\0';
    else
      rest_.end = got_.rows.back().key;
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
  /// What is still to be read. Without a limit it is 0.
  Range rest_;
  RangeAnswer got_;
  std::optional<std::size_t> row_bytes_;
  std::size_t page_rows_max_ = kPageRowsMax;
  bool turned_ = false;
  bool done_ = false;
};

/// One Txn for the first of the reads that are open.
class Request {
 public:
  /// `row_bytes` is for those of which nothing was seen.
  Request(const std::vector<Progress*>& open, Revision revision, std::size_t row_bytes, std::size_t row_bytes_min) {
    std::size_t room = kAnswerBytes;
    for (Progress* each : open) {
      const std::size_t size = std::max(each->row_bytes().value_or(row_bytes), row_bytes_min);
      if (parts_.size() == kOpsPerTxn || (!parts_.empty() && room < size)) break;
      const std::size_t rows = std::min(each->rows_max(), std::max<std::size_t>(room / size, 1));
      room -= std::min(room, rows * size);
      rows_ += rows;
      parts_.push_back(each);
      txn_.then.emplace_back(each->next(revision, rows));
    }
  }

  const Txn& txn() const { return txn_; }
  std::size_t parts() const { return parts_.size(); }
  /// Hands out the answers. Returns how large a row was, on an average over those that were asked for.
  std::size_t take(std::vector<RangeAnswer>& answers) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      bytes += bytes_of(answers[i]);
      parts_[i]->take(answers[i]);
    }
    return bytes / rows_;
  }

 private:
  std::vector<Progress*> parts_;
  Txn txn_;
  std::size_t rows_ = 0;
};

/// Nothing if the revision went away meanwhile.
Result<std::optional<std::vector<RangeAnswer>>> attempt(const Ask& ask, Pace& pace, const std::vector<Range>& reads) {
  std::vector<Progress> all(reads.begin(), reads.end());
  std::vector<Progress*> open;
  for (Progress& each : all) open.push_back(&each);
  const std::size_t row_bytes_min = pace.row_bytes_min();
  std::size_t row_bytes = kRowBytesAtFirst;
  for (Revision revision = 0; !open.empty();) {
    Request request(open, revision, row_bytes, row_bytes_min);
    const SteadyTime asked = steady_now();
    auto answer = ask(request.txn());
    if (!answer) {
      if (answer.error().code == ErrorCode::kUnavailable) pace.failed(row_bytes_min, steady_now() - asked);
      return std::unexpected(std::move(answer.error()));
    }
    if (answer->compacted) return std::nullopt;
    if (answer->answers.size() != request.parts())
      return fail(ErrorCode::kUnavailable, "etcd answers a part only of what it was asked");
    if (revision == 0) revision = answer->revision;
    row_bytes = std::max(request.take(answer->answers), row_bytes / kGrowth);
    std::erase_if(open, [](Progress* each) { return each->done(); });
  }
  std::vector<RangeAnswer> answers;
  for (Progress& each : all) answers.push_back(std::move(each.answer()));
  return answers;
}

}  // namespace

std::size_t Pace::row_bytes_min() {
  MutexLock lock(mutex_);
  if (steady_now() >= slow_until_) row_bytes_min_ = kRowBytesMin;
  return row_bytes_min_;
}

void Pace::failed(std::size_t row_bytes_min, Duration took) {
  if (took < late_after_) return;
  MutexLock lock(mutex_);
  // Of several that fail together, one counts.
  row_bytes_min_ = std::max(row_bytes_min_, std::clamp(4 * row_bytes_min, kRowBytesMinWhenSlow, kRowBytesMinAtMost));
  slow_until_ = steady_now() + kSlowFor;
}

Result<std::vector<RangeAnswer>> read_at_once(const Ask& ask, Pace& pace, const std::vector<Range>& reads) {
  for (int i = 0; i < kAttempts; ++i) {
    auto answers = attempt(ask, pace, reads);
    if (!answers) return std::unexpected(std::move(answers.error()));
    if (*answers) return std::move(**answers);
  }
  return fail(ErrorCode::kUnavailable,
              "etcd is compacted faster than it can be read; compact less often, or keep some revisions");
}

}  // namespace perdure::etcd
