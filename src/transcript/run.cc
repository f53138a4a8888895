// One run: the transcript of a session from where it was left, batch by batch.
//
// While one batch is being committed, the next is read. Each is refused if the run has lost its claim: somebody else
// has it then, and goes on from what was stored.
#include "transcript/run.h"

#include "queue/settle.h"
#include "runtime/latch.h"
#include "store/report.h"
#include "transcript/ingest.h"

namespace perdure::transcript {
namespace {

/// A commit that is under way.
using Pending = std::shared_ptr<Promise<Result<void>>>;

constexpr std::uint64_t kBytesAtOnce = std::uint64_t{64} << 20;

class Reading {
 public:
  Reading(Store& store, Job& job, std::string session, std::uint64_t number, const RunClock& now)
      : store_(store), job_(job), session_(std::move(session)), number_(number), now_(now) {}

  Result<Value> read(LineReader& lines) {
    EntryReader entries;
    std::uint64_t counted = 0;
    for (;;) {
      auto batch = std::make_shared<Batch>(store_.limits().transaction_bytes_max);
      bool end = false;
      // A place is stored now and then also while there is nothing to keep, and the loss of the claim is noticed.
      while (!end && !batch->full() && lines.bytes_read() - counted < kBytesAtOnce) {
        auto line = lines.next();
        if (!line) return leave(std::move(line.error()));
        end = !*line;
        if (!end) batch->add(entries.read(**line));
      }
      batch->position = lines.position();
      batch->bytes_read = lines.bytes_read() - std::exchange(counted, lines.bytes_read());
      if (auto stored = wait(); !stored) return std::unexpected(std::move(stored.error()));
      if (job_.cancel_signal().cancelled()) return fail(ErrorCode::kStaleToken, "the run has lost its session");
      store(std::move(batch));
      if (end) break;
    }
    if (auto stored = wait(); !stored) return std::unexpected(std::move(stored.error()));
    return Value::Map{{"bytes", lines.bytes_read()}};
  }

 private:
  void store(std::shared_ptr<Batch> batch) {
    pending_ = std::make_shared<Promise<Result<void>>>();
    const std::string& space = job_.event().space;
    queue::Claim claim{job_.id(), job_.token().stamp};
    auto body = [space, claim, batch, id = session_, number = number_, now = now_()](Transaction& txn) {
      SystemAccess access(txn);
      auto found = queue::find_claim(txn, space, claim);
      if (found.standing != queue::Standing::kHeld) access.refuse(queue::stale_claim(claim.id));
      store_batch(txn, space, id, number, *batch, now);
      // A run that gets on is not what its process died of, however often that has happened.
      if (found.event->row.losses == 0 || batch->entries.empty()) return;
      found.event->row.losses = 0;
      txn.set(found.event->key, found.event->row.encode_as_it_is());
    };
    store_.transact_async(std::move(body), [pending = pending_](Result<void> done) { pending->set(std::move(done)); });
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
  const std::string session_;
  const std::uint64_t number_;
  const RunClock& now_;
  Pending pending_;
};

}  // namespace

Result<Value> run(Store& store, Job& job, const std::vector<std::string>& roots, const RunClock& now, const Say& say) {
  auto debounced = DebounceRun::of(job);
  if (!debounced) return std::unexpected(std::move(debounced.error()));
  const std::string& id = debounced->key();
  struct Known {
    SessionRow session;
    ProgressRow progress;
  };
  auto known = store.read([&](Reader& reader) -> std::optional<Known> {
    SystemAccess access(reader);
    auto session = read<SessionRow>(reader, session_key(job.event().space, id));
    if (!session) return std::nullopt;
    Bytes data = data_key(job.event().space, session->number);
    return Known{*session, read<ProgressRow>(reader, progress_key(data)).value_or(ProgressRow{})};
  });
  if (!known) return std::unexpected(std::move(known.error()));
  // Nothing of this will be otherwise the next time: the touch is used up, and the next hook brings another.
  auto nothing = [&](const std::string& why) -> Result<Value> {
    say(why, id);
    return Value();
  };
  if (!*known) return nothing("there is no such session any more");
  const auto& [session, progress] = **known;
  if (session.transcript_path.empty()) return nothing("the session has no transcript");
  if (session.prompts == 0) return nothing("the session has no prompt");
  auto file = open_transcript(session.transcript_path, roots);
  // The machine is short of something, which it will have again.
  if (!file && file.error().code == ErrorCode::kUnavailable) return std::unexpected(std::move(file.error()));
  if (!file) return nothing(file.error().message);
  LineReader lines(std::move(*file), {progress.device, progress.inode, progress.offset, progress.tail});
  return Reading(store, job, id, session.number, now).read(lines);
}

}  // namespace perdure::transcript
