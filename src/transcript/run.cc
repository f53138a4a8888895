// One run: the transcript of a session from where it was left, batch by batch.
//
// While one batch is being committed, the next is read. Each is refused if the run has lost its claim: somebody else
// has it then, and goes on from what was stored. If there is much to read, uuids are booked ahead, see uuids.h. A run
// that has read for long touches its own key together with a batch, and ends: the next run goes on behind it. It does
// so where a stretch that was booked ends, as the next run could only cancel what is left of the bookings; unless that
// takes too long as well.
#include "transcript/run.h"

#include "base/time_math.h"
#include "queue/settle.h"
#include "runtime/latch.h"
#include "store/store_access.h"
#include "transcript/hook.h"
#include "transcript/ingest.h"
#include "transcript/prompts.h"

namespace perdure::transcript {
namespace {

/// A commit that is under way.
using Pending = std::shared_ptr<Promise<Result<void>>>;

constexpr std::uint64_t kBytesAtOnce = std::uint64_t{64} << 20;
/// A uuid that is booked takes less than this, in its row and in the list.
constexpr std::size_t kBookedBytes = 1'000;
/// More transactions than this are not made before there is a message.
constexpr std::size_t kBookingsMax = 20;
/// From so much on it is worth reading twice.
constexpr std::uint64_t kLongBytes = std::uint64_t{8} << 20;

class Reading {
 public:
  Reading(Store& store, Job& job, std::string id, const SessionRow& session, const ProgressRow& progress,
          const RunSetting& setting, SteadyTime begun)
      : store_(store),
        job_(job),
        id_(std::move(id)),
        session_(session),
        setting_(setting),
        until_(plus(begun, setting.times.reads_for)),
        last_moment_(plus(begun, setting.times.at_most)),
        entries_(progress.entries) {}

  /// Of a run that has died, or of a file that has changed under it. Nothing may be under way.
  Result<void> cancel_old_bookings() {
    for (bool more = true; more;) {
      auto done = store_.transact([&](Transaction& txn) {
        SystemAccess access(txn);
        held_claim(txn, job_.event().space, claim_);
        more = cancel_bookings(txn, job_.event().space, session_.number);
      });
      if (!done) return done;
    }
    return {};
  }

  /// Those whose hooks have come since the last run.
  Result<void> see_to_prompts() {
    for (bool more = true; more;) {
      auto done = store_.transact([&](Transaction& txn) {
        SystemAccess access(txn);
        held_claim(txn, job_.event().space, claim_);
        more = see_to_texts(txn, data_key(job_.event().space, session_.number), session_.prompts);
      });
      if (!done) return done;
    }
    return {};
  }

  Result<Value> read(LineReader& lines) {
    EntryReader entries;
    std::uint64_t counted = 0;
    for (;;) {
      auto booked = book_ahead(lines);
      if (!booked) return leave(std::move(booked.error()));
      auto batch = std::make_shared<Batch>(store_.limits().transaction_bytes_max);
      batch->before = entries_;
      batch->ahead = ahead_;
      bool end = false;
      const std::uint64_t begun = lines.bytes_read(), too_long = lines.long_lines();
      // A place is stored now and then also while there is nothing to keep, and the loss of the claim is noticed.
      do {
        auto line = lines.next();
        if (!line) return leave(std::move(line.error()));
        end = !*line;
        if (end) break;
        Entry entry = entries.read(**line);
        malformed_ += entry.why == kMalformed;
        batch->add(std::move(entry));
      } while (!batch->full() && lines.bytes_read() - begun < kBytesAtOnce && !is_past(last_moment_));
      too_long_ += lines.long_lines() - too_long;
      batch->position = lines.position();
      batch->bytes_read = lines.bytes_read() - std::exchange(counted, lines.bytes_read());
      entries_ += batch->entries.size();
      if (auto stored = wait(); !stored) return std::unexpected(std::move(stored.error()));
      if (job_.cancel_signal().cancelled()) return fail(ErrorCode::kStaleToken, "the run has lost its session");
      const bool leaves_the_rest = !end && (is_past(last_moment_) || (is_past(until_) && !is_within_stretch(lines)));
      store(std::move(batch), leaves_the_rest ? Rest::kForAnother : Rest::kMine);
      if (end || leaves_the_rest) break;
    }
    if (auto stored = wait(); !stored) return std::unexpected(std::move(stored.error()));
    return Value::Map{{"bytes", lines.bytes_read()}};
  }

  /// Of the lines that it could not make sense of, for the log; empty if there were none.
  std::string passed_over() const {
    if (malformed_ + too_long_ == 0) return {};
    return "lines were passed over: " + std::to_string(malformed_) + " malformed, " + std::to_string(too_long_) +
           " longer than 16 MiB";
  }

 private:
  /// Who goes on behind a batch.
  enum class Rest { kMine, kForAnother };

  Scheduler& scheduler() const { return StoreAccess::impl(store_).scheduler(); }
  bool is_past(SteadyTime time) const { return scheduler().now() >= time; }
  /// Whether what follows is in the stretch that was booked last.
  bool is_within_stretch(const LineReader& lines) const {
    return ahead_ && lines.restarts() == ahead_restarts_ && lines.position().offset < ahead_->end;
  }
  /// The event of the run, which must still be its own.
  static queue::Found held_claim(Transaction& txn, std::string_view space, const queue::Claim& claim) {
    SystemAccess access(txn);
    auto found = queue::find_claim(txn, space, claim);
    if (found.standing != queue::Standing::kHeld) access.refuse(queue::stale_claim(claim.id));
    return found;
  }

  /// Books the uuids of the next stretch, if it is a long one and the one before is stored.
  Result<void> book_ahead(LineReader& lines) {
    const Position here = lines.position();
    const std::uint64_t restarts = lines.restarts();
    if (is_within_stretch(lines)) return {};
    if (auto closed = close_stretch(); !closed) return closed;
    if (lines.left() < kLongBytes) return {};
    if (auto stored = wait(); !stored) return stored;
    const std::size_t at_once = store_.limits().transaction_bytes_max / kBookedBytes;
    const SteadyTime until = plus(scheduler().now(), setting_.times.ahead);
    auto enough = [&] { return is_past(until) || job_.cancel_signal().cancelled(); };
    auto stretch = read_ahead(lines, entries_, kBookingsMax * at_once, oldest_kept(session_, setting_.now()), enough);
    if (!stretch) return std::unexpected(std::move(stretch.error()));
    lines.go_back(here);
    // It is of a file that is another one by now.
    if (lines.restarts() != restarts) return {};
    ahead_ = std::make_shared<const Stretch>(std::move(*stretch));
    ahead_restarts_ = restarts;
    const auto order = ahead_->sorted();
    // Those that are not booked in time have their rows written one by one.
    for (std::size_t i = 0; i < order.size() && !enough(); i += at_once) {
      auto which = std::span(order).subspan(i, std::min(at_once, order.size() - i));
      // While one is being committed, the next is made.
      auto before = std::exchange(pending_, start_booking({which.begin(), which.end()}, i));
      if (auto done = before ? before->take() : Result<void>(); !done) return done;
    }
    return wait();
  }

  /// Reading is behind the stretch. If the file has changed since it was read ahead, and had fewer entries there, the
  /// list of what was booked is still there, and would be written over by the next.
  Result<void> close_stretch() {
    auto ahead = std::exchange(ahead_, nullptr);
    if (!ahead || entries_ >= ahead->last()) return {};
    if (auto stored = wait(); !stored) return stored;
    return cancel_old_bookings();
  }

  Pending start_booking(std::vector<std::uint32_t> which, std::size_t place) {
    auto body = [space = job_.event().space, claim = claim_, number = session_.number, ahead = ahead_,
                 which = std::move(which), place](Transaction& txn) {
      SystemAccess access(txn);
      held_claim(txn, space, claim);
      book(txn, space, number, *ahead, which, place);
    };
    return start(std::move(body));
  }

  template <class Body>
  Pending start(Body body) {
    auto pending = std::make_shared<Promise<Result<void>>>();
    store_.transact_async(std::move(body), [pending](Result<void> done) { pending->set(std::move(done)); });
    return pending;
  }

  void store(std::shared_ptr<Batch> batch, Rest rest) {
    const std::string& space = job_.event().space;
    auto body = [space, claim = claim_, batch, id = id_, number = session_.number, now = setting_.now(), rest,
                 debouncers = setting_.debouncers.in(space)](Transaction& txn) mutable {
      SystemAccess access(txn);
      auto found = held_claim(txn, space, claim);
      store_batch(txn, space, id, number, *batch, now);
      // If somebody has removed the debouncer, the next hook brings it back, and touches it.
      if (rest == Rest::kForAnother && debouncers.get(txn, kDebouncer)) debouncers.touch(txn, kDebouncer, id);
      // A run that gets on is not what its process died of, however often that has happened.
      if (found.event->row.losses == 0 || batch->entries.empty()) return;
      found.event->row.losses = 0;
      txn.set(found.event->key, found.event->row.encode_as_it_is());
    };
    pending_ = start(std::move(body));
  }

  Result<void> wait() {
    if (!pending_) return {};
    return std::exchange(pending_, nullptr)->take();
  }
  /// What is under way is not left alone.
  Result<Value> leave(Error error) {
    (void)wait();
    return std::unexpected(std::move(error));
  }

  Store& store_;
  Job& job_;
  const std::string id_;
  const SessionRow session_;
  const RunSetting& setting_;
  const SteadyTime until_, last_moment_;
  const queue::Claim claim_{job_.id(), job_.token().stamp};
  /// How many are in what was read.
  std::uint64_t entries_;
  std::shared_ptr<const Stretch> ahead_;
  /// Of the reader, when it was read.
  std::uint64_t ahead_restarts_ = 0;
  Pending pending_;
  std::uint64_t malformed_ = 0, too_long_ = 0;
};

}  // namespace

Result<Value> run(Store& store, Job& job, const RunSetting& setting) {
  const SteadyTime begun = StoreAccess::impl(store).scheduler().now();
  auto debounced = DebounceRun::of(job);
  if (!debounced) return std::unexpected(std::move(debounced.error()));
  const std::string& id = debounced->key();
  if (debounced->debouncer() != kDebouncer)
    return fail(ErrorCode::kInvalidArgument, "the worker transcripts is for the debouncer of that name alone");
  struct Known {
    SessionRow session;
    ProgressRow progress;
    bool has_bookings;
  };
  auto known = store.read([&](Reader& reader) -> std::optional<Known> {
    SystemAccess access(reader);
    auto session = read<SessionRow>(reader, session_key(job.event().space, id));
    if (!session) return std::nullopt;
    Bytes data = data_key(job.event().space, session->number);
    bool has_bookings = !reader.get_range(tuple::extensions(booked_key(data)), {.limit = 1}).empty();
    return Known{*session, read<ProgressRow>(reader, progress_key(data)).value_or(ProgressRow{}), has_bookings};
  });
  if (!known) return std::unexpected(std::move(known.error()));
  // Nothing of this will be otherwise the next time: the touch is used up, and the next hook brings another.
  auto nothing = [&](const std::string& why) -> Result<Value> {
    setting.say(why, id);
    return Value();
  };
  if (!*known) return nothing("there is no such session any more");
  const auto& [session, progress, has_bookings] = **known;
  if (session.transcript_path.empty()) return nothing("the session has no transcript");
  if (session.prompts == 0) return nothing("the session has no prompt");
  auto file = open_transcript(session.transcript_path, setting.roots);
  // The machine is short of something, which it will have again.
  if (!file && file.error().code == ErrorCode::kUnavailable) return std::unexpected(std::move(file.error()));
  if (!file) return nothing(file.error().message);
  const Position from{progress.device, progress.inode, progress.offset, progress.tail, progress.inside};
  LineReader lines(std::move(*file), from);
  Reading reading(store, job, id, session, progress, setting, begun);
  // Before there are messages, no prompt has a text of them.
  if (progress.messages > 0 && progress.prompts < session.prompts)
    if (auto seen = reading.see_to_prompts(); !seen) return std::unexpected(std::move(seen.error()));
  if (has_bookings)
    if (auto cancelled = reading.cancel_old_bookings(); !cancelled) return std::unexpected(cancelled.error());
  auto read = reading.read(lines);
  if (std::string lines_passed = reading.passed_over(); !lines_passed.empty()) setting.say(lines_passed, id);
  return read;
}

}  // namespace perdure::transcript
