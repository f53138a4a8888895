#include "transcript/transcripts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "store/read_page.h"
#include "store/report.h"
#include "transcript/file.h"
#include "transcript/prompts.h"
#include "transcript/run.h"
#include "transcript/tend.h"

namespace perdure::transcript {
namespace {

/// The spaces that have had a hook.
constexpr SettingsTable kSpaces("transcript-space");
constexpr unsigned kRunsAtOnce = 4;
constexpr int kLossesMax = 1'000;
/// With so many bytes of what tools answered, a page of messages is full.
constexpr std::size_t kResultBytes = std::size_t{4} << 20;
constexpr std::size_t kPromptsShown = 1'000;
/// A page of messages that belong to more prompts is cut.
constexpr std::size_t kPromptsOfPage = 2'000;
constexpr TransactOptions kHookOptions = {.body = Body::kShort};
/// Between two tries, twice as long each time.
constexpr Duration kFirstPause = std::chrono::milliseconds(200), kLongestPause = std::chrono::minutes(1);

/// The last of a range, in its order, as read_page has the first.
std::vector<Row> last_page(Reader& reader, KeyRange range, std::size_t limit) {
  std::vector<Row> page;
  for (std::size_t bytes = 0; page.size() < limit && bytes < kResultBytes;) {
    std::size_t wanted = std::min<std::size_t>(limit - page.size(), 16);
    auto rows = reader.get_range(range, {.limit = wanted, .direction = Direction::kReverse});
    for (const Row& row : rows) bytes += row.value.size();
    std::ranges::move(rows, std::back_inserter(page));
    if (rows.size() < wanted) break;
    range.end = page.back().key;
  }
  std::ranges::reverse(page);
  return page;
}

/// Finds out to which prompts they belong, and leaves out the last ones if that takes too many.
void find_prompts(Reader& reader, BytesView data, std::vector<Message>& messages) {
  if (messages.empty()) return;
  const Prompts prompts(reader, data, to_ns(messages.front().at), to_ns(messages.back().at), kPromptsOfPage);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Prompts::Prompt* prompt = prompts.of(to_ns(messages[i].at), messages[i].row);
    if (!prompt && i > 0 && !prompts.empty()) return messages.resize(i);
    if (prompt) messages[i].prompt = prompt->n;
  }
}

Error no_session(const std::string& id) {
  return {ErrorCode::kNotFound, "there is no session '" + id + "'"};
}

}  // namespace

Transcripts::Transcripts(Store& store, Queue& queue, Debouncers& debouncers, TranscriptsOptions options)
    : StorePart(store, "the transcripts of this node"),
      queue_(queue),
      debouncers_(debouncers),
      options_(std::move(options)),
      clock_(store_),
      looks_(scheduler_, [roots = options_.roots](const std::string& path) { return check_path(path, roots); }),
      loop_(
          *this, bell(), [this](Transaction& txn, WallTime now) { return look_after(txn, now); },
          DueLoop<Transcripts>::kOptions, [this](const Error& error) { could_not_look(error); }),
      follower_(std::make_shared<SettingsFollower>(
          store_, kSpaces, [this](const std::vector<SettingsTable::Setting>& spaces) { serve(spaces); })) {}

void Transcripts::start() {
  follower_->start();
  loop_.start();
}

void Transcripts::stop() {
  follower_->stop();
  std::set<std::string> served;
  {
    MutexLock lock(mutex_);
    served.swap(served_);
  }
  for (const std::string& space : served) queue_.in(space).stop_working(kDebouncer);
  abandon();
}

void Transcripts::release() {
  held_ = false;
  loop_.wake();
}

DueTurn Transcripts::look_after(Transaction& txn, WallTime now) {
  if (held_) return {};
  DueTurn turn = tend(txn, now, [this](BytesView key) {
    complain("a row that cannot be read is passed over, and goes when it is old: " + printable(key), "", "");
  });
  turn.committed = [this, say = std::move(turn.committed)] {
    could_not_.clear();
    if (say) say();
  };
  return turn;
}

void Transcripts::could_not_look(const Error& error) {
  // It is tried again and again.
  if (std::exchange(could_not_, error.message) != error.message)
    complain("sessions could not be looked after: " + error.message, "", "");
}

void Transcripts::serve(const std::vector<SettingsTable::Setting>& spaces) {
  for (const auto& each : spaces) {
    {
      MutexLock lock(mutex_);
      if (served_.contains(each.space)) continue;
    }
    if (options_.set_marker) set_marker(each.space, kFirstPause);
    const Duration timeout = options_.marker.run.timeout;
    const Duration at_most = std::min(options_.reads_at_most, timeout / 4 * 3);
    RunSetting setting{
        debouncers_,
        options_.roots,
        {.reads_for = std::min(options_.reads_for, timeout / 2), .at_most = at_most, .ahead = at_most / 6},
        [this] { return clock_.now(); },
        [this, space = each.space](const auto& why, const auto& session) { complain(why, space, session); }};
    auto handler = [this, space = each.space, setting = std::move(setting)](Job& job) {
      auto done = run_alone(space, job, setting);
      if (done) return done;
      complain("Worker error: " + done.error().message, space, job.event().modifier);
      done.error().message.insert(0, "Worker failed: ");
      return done;
    };
    auto begun =
        queue_.in(each.space).work(kDebouncer, std::move(handler), {.concurrency = kRunsAtOnce, .timeout = timeout});
    if (begun) {
      MutexLock lock(mutex_);
      served_.insert(each.space);
    } else if (begun.error().code != ErrorCode::kClosed) {
      complain("transcripts of this space are not read: " + begun.error().message, each.space, "");
    }
  }
}

Result<Value> Transcripts::run_alone(const std::string& space, Job& job, const RunSetting& setting) {
  const std::pair session(space, job.event().modifier);
  {
    MutexLock lock(mutex_);
    // Nothing ends a read of a file system that does not answer. It keeps its thread, and no other may follow it there
    // with every attempt, until there is none for other sessions.
    if (!reading_.insert(session).second)
      return fail(ErrorCode::kUnavailable, "the run before this one still waits for the file system of the transcript");
  }
  struct Reads {
    Transcripts& transcripts;
    const std::pair<std::string, std::string>& session;
    ~Reads() {
      MutexLock lock(transcripts.mutex_);
      transcripts.reading_.erase(session);
    }
  } reads{*this, session};
  return run(store_, job, setting);
}

void Transcripts::set_marker(const std::string& space, Duration pause) {
  auto set = [this, space](Transaction& txn) { debouncers_.in(space).set(txn, kDebouncer, options_.marker.settings); };
  auto answered = [this, space, pause](const Result<void>& done, Receipt) {
    if (done || done.error().code == ErrorCode::kClosed) return;
    complain("how long hooks are gathered could not be set, and stays as it was: " + done.error().message, space, "");
    at(scheduler_.now() + pause,
       [this, space, pause] { set_marker(space, std::min<Duration>(2 * pause, kLongestPause)); });
  };
  transact(std::move(set), std::move(answered), kHookOptions);
}

void Transcripts::complain(const std::string& message, std::string_view space, std::string_view session) const {
  log(StoreAccess::impl(const_cast<Store&>(store_)).options(), LogLevel::kWarning, "transcript", message,
      {{"space", std::string(space)}, {"session", std::string(session)}});
}

// Hooks.

Hook Transcripts::read(std::string text, std::string id) const {
  Hook hook = read_hook(std::move(text), std::move(id));
  // What it says is known by now; one that is too long for the store must not be lost for the rest of it.
  const std::size_t all = hook.text.size(), beside = kBesideHook + hook.prompt.value_or("").size();
  hook.text.resize(std::min(all, store_.limits().transaction_bytes_max - beside));
  if (hook.text.size() < all)
    complain("a hook of " + std::to_string(all) + " bytes is longer than this store can keep, and is cut", "",
             hook.session);
  return hook;
}

void Transcripts::take_in(Transaction& txn, std::string_view space, const Hook& hook, Taken& taken) {
  bool is_known = kSpaces.read(txn, space, kDebouncer).has_value();
  auto debouncer = is_known ? debouncers_.in(std::string(space)).get(txn, kDebouncer) : Result<DebouncerInfo>();
  // Somebody may have removed it.
  if (!is_known || (!debouncer && debouncer.error().code == ErrorCode::kNotFound))
    debouncers_.in(std::string(space)).set(txn, kDebouncer, options_.marker.settings);
  if (!is_known) {
    kSpaces.write(txn, space, kDebouncer, Bytes());
    // Processes that die again and again are no reason to leave a transcript unread.
    queue_.in(std::string(space)).configure(txn, kDebouncer, WorkerSettings{.losses_max = kLossesMax});
  }
  taken = take_hook(txn, space, hook, debouncers_, clock_.now());
}

void Transcripts::look_at(Hook hook, std::move_only_function<void(Hook)> looked) {
  if (!hook.transcript_path) return looked(std::move(hook));
  std::string path = *hook.transcript_path;
  looks_.look(std::move(path), [hook = std::move(hook), looked = std::move(looked)](const auto& found) mutable {
    note_look(found, hook);
    looked(std::move(hook));
  });
}

void Transcripts::complain_of(const Hook& hook, std::string_view space) const {
  if (!hook.problem.empty()) complain("a hook was refused: " + hook.problem, space, hook.session);
}

Result<void> Transcripts::take(std::string_view space, std::vector<Hook> hooks) {
  auto use = enter();
  if (!use) return std::unexpected(closed_error());
  for (Hook& hook : hooks) {
    auto looked = std::make_shared<Promise<Hook>>();
    look_at(std::move(hook), [looked](Hook at) { looked->set(std::move(at)); });
    hook = looked->take();
    complain_of(hook, space);
  }
  return transact_now(
      [this, space, &hooks](Transaction& txn) {
        Taken taken;
        for (const Hook& hook : hooks) take_in(txn, space, hook, taken);
      },
      kHookOptions);
}

void Transcripts::take_async(std::string space, Hook hook, Done done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  // None that comes later overtakes it.
  if (!hook.came) hook.came = clock_.now();
  look_at(std::move(hook), [this, use = std::move(use), space = std::move(space),
                            done = std::move(done)](Hook looked) mutable {
    complain_of(looked, space);
    transact(
        [this, space = std::move(space), hook = std::move(looked)](Transaction& txn) {
          Taken taken = Taken::kNew;
          take_in(txn, space, hook, taken);
          return taken;
        },
        [done = std::move(done)](Result<Taken> taken, Receipt) mutable { done(std::move(taken)); }, kHookOptions);
  });
}

Clocks Transcripts::clocks() {
  const WallTime store = clock_.now();
  // Read behind it: if the two are the same, none that came is put later by the time between.
  return {clock_.stands_still() ? store : scheduler_.wall_now(), store};
}

// What is there.

std::vector<ProjectRow> Transcripts::projects(Reader& reader, std::string_view space, std::string_view after,
                                              std::size_t limit) const {
  SystemAccess access(reader);
  KeyRange range = tuple::extensions(projects_key(space));
  if (!after.empty()) range.begin = next_key(project_key(space, after));
  std::vector<ProjectRow> projects;
  for (const Row& row : read_page(reader, range, limit))
    projects.push_back(in_txn(reader, decode<ProjectRow>(row.value)));
  return projects;
}

std::vector<std::pair<std::string, SessionRow>> Transcripts::sessions(Reader& reader, std::string_view space,
                                                                      const SessionQuery& query) const {
  SystemAccess access(reader);
  Bytes prefix = sessions_key(space);
  KeyRange range = tuple::extensions(prefix);
  if (!query.after.empty()) range.begin = next_key(session_key(space, query.after));
  std::vector<std::pair<std::string, SessionRow>> found;
  while (found.size() < query.limit) {
    auto rows = read_page(reader, range, query.limit);
    if (rows.empty()) break;
    range.begin = next_key(rows.back().key);
    for (const Row& row : rows) {
      auto id = tuple::unpack_after<std::string>(prefix, row.key);
      SessionRow session = in_txn(reader, decode<SessionRow>(row.value));
      bool fits = (query.project.empty() || session.project == query.project) &&
                  (query.status.empty() || name_of(session.status) == query.status);
      if (id && fits && found.size() < query.limit) found.emplace_back(std::move(std::get<0>(*id)), std::move(session));
    }
  }
  return found;
}

Result<SessionView> Transcripts::session(Reader& reader, std::string_view space, const std::string& id) const {
  SystemAccess access(reader);
  auto row = transcript::read<SessionRow>(reader, session_key(space, id));
  if (!row) return std::unexpected(no_session(id));
  Bytes data = data_key(space, row->number), prompts = prompts_key(data);
  SessionView view{id, std::move(*row), {}, {}};
  view.progress = transcript::read<ProgressRow>(reader, progress_key(data)).value_or(ProgressRow{});
  for (const Row& each : last_page(reader, tuple::extensions(prompts), kPromptsShown))
    if (auto n = tuple::unpack_after<std::uint64_t>(prompts, each.key))
      view.prompts.emplace_back(std::get<0>(*n), in_txn(reader, decode<PromptRow>(each.value)));
  return view;
}

Result<std::vector<Message>> Transcripts::messages(Reader& reader, std::string_view space, const std::string& id,
                                                   Place after, std::size_t limit) const {
  SystemAccess access(reader);
  auto session = transcript::read<SessionRow>(reader, session_key(space, id));
  if (!session) return std::unexpected(no_session(id));
  Bytes data = data_key(space, session->number), prefix = messages_key(data);
  KeyRange range = tuple::extensions(prefix);
  if (after.number > 0) range.begin = next_key(tuple::pack_onto(prefix, after.at, after.number));
  std::vector<Message> messages;
  std::size_t bytes = 0;
  for (const Row& row : read_page(reader, range, limit)) {
    auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(prefix, row.key);
    if (!place) continue;
    Message message{.number = std::get<1>(*place),
                    .at = from_ns(std::get<0>(*place)),
                    .row = in_txn(reader, decode<MessageRow>(row.value)),
                    .results = {}};
    for (const ToolRow& tool : message.row.tools) {
      std::uint64_t n = answer_of(reader, data, tool);
      auto& result = message.results.emplace_back(transcript::read<ResultRow>(reader, result_key(data, n)));
      if (result) bytes += result->output.size();
    }
    messages.push_back(std::move(message));
    if (bytes > kResultBytes) break;
  }
  find_prompts(reader, data, messages);
  return messages;
}

Result<void> Transcripts::set_favourite(Transaction& txn, std::string_view space, const std::string& id,
                                        bool favourite) {
  SystemAccess access(txn);
  auto session = transcript::read<SessionRow>(txn, session_key(space, id));
  if (!session) return std::unexpected(no_session(id));
  session->favourite = favourite;
  // It is looked after at once, as what is kept has changed.
  session->due = std::chrono::floor<std::chrono::milliseconds>(clock_.now().time_since_epoch()).count();
  write_session(txn, space, id, *session);
  note_favourite(txn, space, id, *session, clock_.now());
  return {};
}

Result<void> Transcripts::remove(Transaction& txn, std::string_view space, const std::string& id) {
  SystemAccess access(txn);
  auto session = transcript::read<SessionRow>(txn, session_key(space, id));
  if (!session) return std::unexpected(no_session(id));
  remove_session(txn, space, id, *session, clock_.now());
  return {};
}

// Time.

std::optional<WallTime> Transcripts::next_due(Reader& reader) {
  return held_ ? std::nullopt : transcript::next_due(reader);
}

bool Transcripts::has_work(Reader& reader, WallTime now) {
  if (held_) return false;
  // What a hook has brought about is work for somebody only once its space is served.
  auto is_served = [this](const SettingsTable::Setting& each) {
    MutexLock lock(mutex_);
    return served_.contains(each.space);
  };
  if (!std::ranges::all_of(kSpaces.all(reader), is_served)) return true;
  auto due = transcript::next_due(reader);
  return has_gone(reader) || (due && *due <= now);
}

}  // namespace perdure::transcript
