#include "transcript/ingest.h"

#include <algorithm>
#include <map>
#include <optional>

#include "store/system_access.h"

namespace perdure::transcript {
namespace {

constexpr std::string_view kTodoTool = "TodoWrite";
/// A call or an answer takes no more than this besides its texts.
constexpr std::size_t kToolBytes = 500;
/// A message takes no more than this besides its texts, with the row of its uuid.
constexpr std::size_t kEntryBytes = 1'000;
/// Holds as much as batches are made for.
constexpr std::size_t kUsualTransaction = std::size_t{10} << 20;
constexpr std::size_t kNameCharacters = 200;
/// A prompt is noted when its hook comes, a moment after the transcript has it.
constexpr Duration kHookLate = std::chrono::seconds(10);

/// Cuts a text to what is left of `room`, and takes that away from it.
bool cut_to(std::string& text, std::size_t& room) {
  std::size_t size = first_bytes(text, room).size();
  bool cut = size < text.size();
  text.resize(size);
  room -= size;
  return cut;
}

MessageRow row_of(const Entry& entry, std::uint64_t prompt, std::size_t room) {
  MessageRow row{
      .uuid = entry.uuid, .is_user = entry.is_user, .body = entry.body, .thinking = entry.thinking, .prompt = prompt};
  row.cut = cut_to(row.body, room);
  row.cut |= cut_to(row.thinking, room);
  for (const ToolCall& tool : entry.tools) {
    ToolRow made{tool.id, tool.name, tool.input};
    // Half of it would not be JSON.
    if (kToolBytes + made.input.size() > room) made.input = "null", row.cut = true;
    if (kToolBytes + made.input.size() > room) break;
    room -= kToolBytes + made.input.size();
    row.tools.push_back(std::move(made));
  }
  return row;
}

/// Stores the messages of one batch.
class Storing {
 public:
  /// Messages with a time before `oldest` would go at once, and are left out.
  Storing(Transaction& txn, std::string_view space, std::uint64_t number, WallTime now, WallTime oldest)
      : txn_(txn), space_(space), data_(data_key(space, number)), number_(number), now_(now), oldest_(oldest) {
    progress_ = read<ProgressRow>(txn, progress_key(data_)).value_or(ProgressRow{});
    before_ = progress_.messages;
  }

  /// The prompts that entries of such times may belong to.
  void find_prompts(const std::vector<Entry>& entries) {
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const Entry& entry : entries) {
      first = std::min(first, to_ns(entry.at.value_or(now_)));
      last = std::max(last, to_ns(entry.at.value_or(now_)));
    }
    last = std::min(last, INT64_MAX - to_ns(WallTime(kHookLate))) + to_ns(WallTime(kHookLate));
    Reader snapshot = txn_.snapshot();
    const Bytes prefix = prompt_times_key(data_);
    const KeyRange all = tuple::extensions(prefix);
    auto end_of = [&](std::int64_t at) { return tuple::extensions(tuple::pack_onto(prefix, at)).end; };
    auto before = snapshot.get_range({all.begin, end_of(first)}, {.limit = 1, .direction = Direction::kReverse});
    KeyRange range = {before.empty() ? all.begin : before[0].key, end_of(last)};
    auto rows = range.begin < range.end ? snapshot.get_range(range) : std::vector<Row>();
    // What was said before the first prompt belongs to it.
    if (rows.empty()) rows = snapshot.get_range(all, {.limit = 1});
    for (const Row& row : rows)
      if (auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(prefix, row.key))
        prompts_.push_back({std::get<1>(*place), std::get<0>(*place), row.value});
  }

  void store(const Entry& entry, std::size_t bytes_max) {
    if (entry.at.value_or(now_) <= oldest_) return;
    for (const ToolResult& result : entry.results) keep_result(result);
    if (entry.body.empty() && entry.thinking.empty() && entry.tools.empty()) return;
    Bytes uuid = uuid_key(space_, entry.uuid);
    if (is_known(uuid)) return;
    std::int64_t at = to_ns(entry.at.value_or(now_));
    MessageRow row = row_of(entry, prompt_of(entry), bytes_max);
    Bytes key = tuple::pack_onto(messages_key(data_), at, ++progress_.messages);
    if (std::ranges::any_of(row.tools, [](const ToolRow& tool) { return tool.name == kTodoTool; })) replace_todo(key);
    txn_.set(uuid, tuple::pack(number_, at, progress_.messages));
    txn_.set(key, encode(row));
    if (entry.is_user) last_said_[row.prompt] = row.body;
  }

  /// Prompts that came without a text get what the user said last; answers how many messages are new.
  std::uint64_t finish(const Batch& batch) {
    for (const Prompt& prompt : prompts_) {
      auto said = last_said_.find(prompt.n);
      if (!prompt.mark.empty() || said == last_said_.end()) continue;
      write_prompt(txn_, data_, prompt.n, {said->second, prompt.at});
    }
    progress_.device = batch.position.device;
    progress_.inode = batch.position.inode;
    progress_.offset = batch.position.offset;
    progress_.tail = batch.position.tail;
    progress_.bytes_read += batch.bytes_read;
    txn_.set(progress_key(data_), encode(progress_));
    return progress_.messages - before_;
  }
  std::uint64_t last() const { return progress_.messages; }
  bool has_prompt() const { return !prompts_.empty(); }
  /// Whether a tool has answered, of which that was not known.
  bool has_answers() const { return has_answers_; }

 private:
  struct Prompt {
    std::uint64_t n;
    std::int64_t at;
    /// See text_mark.
    Bytes mark;
  };

  void keep_result(const ToolResult& result) {
    Bytes row = encode(ResultRow{result.output, result.is_error, result.cut});
    std::uint64_t n = result_number(txn_, data_, result.id);
    if (n != 0 && txn_.get(result_key(data_, n)) == row) return;
    if (n == 0) txn_.set(result_number_key(data_, result.id), tuple::pack(n = ++progress_.results));
    txn_.set(result_key(data_, n), row);
    has_answers_ = true;
  }

  /// What is left of a session that is gone knows nothing.
  bool is_known(const Bytes& uuid) {
    std::uint64_t owner = owner_of(txn_.get(uuid));
    return owner == number_ || (owner != 0 && txn_.get(alive_key(data_key(space_, owner))));
  }

  /// The prompt that it belongs to, by time: the last that was made before it.
  std::uint64_t prompt_of(const Entry& entry) const {
    WallTime at = entry.at.value_or(now_);
    auto after = std::ranges::upper_bound(prompts_, to_ns(at), {}, &Prompt::at);
    if (after == prompts_.begin()) return prompts_.front().n;
    bool is_next = entry.is_user && after != prompts_.end() && after->mark == text_mark(entry.body) &&
                   from_ns(after->at) <= at + kHookLate;
    return is_next ? after->n : std::prev(after)->n;
  }

  /// A session has one list of things to do: that of before goes when there is a new one.
  void replace_todo(const Bytes& key) {
    Bytes todo = todo_key(data_);
    if (auto old = txn_.get(todo)) {
      if (auto row = read<MessageRow>(txn_, *old)) {
        std::erase_if(row->tools, [](const ToolRow& tool) { return tool.name == kTodoTool; });
        if (row->tools.empty() && row->body.empty() && row->thinking.empty()) {
          txn_.clear(*old);
          txn_.set(tuple::pack_onto(replaced_key(data_), key_text(row->uuid)), {});
        } else {
          txn_.set(*old, encode(*row));
        }
      }
    }
    txn_.set(todo, key);
  }

  Transaction& txn_;
  const std::string_view space_;
  const Bytes data_;
  const std::uint64_t number_;
  const WallTime now_, oldest_;
  /// By time.
  std::vector<Prompt> prompts_;
  bool has_answers_ = false;
  ProgressRow progress_;
  std::uint64_t before_ = 0;
  /// By prompt.
  std::map<std::uint64_t, std::string> last_said_;
};

}  // namespace

/// A batch that is not quite full, the outputs and the texts of one more entry, and a message that is written anew
/// because of it fit into a transaction.
Batch::Batch(std::size_t transaction_bytes_max) {
  if (transaction_bytes_max >= kUsualTransaction) return;
  full_bytes_ = transaction_bytes_max / 8;
  outputs_bytes_max_ = transaction_bytes_max * 3 / 10;
  message_bytes_max_ = transaction_bytes_max / 4;
}

void Batch::add(Entry entry) {
  if (entry.kind == Entry::Kind::kTitle) title = std::move(entry.title);
  if (entry.kind != Entry::Kind::kMessage) return;
  std::size_t room = outputs_bytes_max_;
  std::size_t kept = 0;
  for (; kept < entry.results.size() && room > kToolBytes; ++kept) {
    room -= kToolBytes;
    entry.results[kept].cut |= cut_to(entry.results[kept].output, room);
  }
  entry.results.resize(kept);
  bytes_ += entry.body.size() + entry.thinking.size() + kEntryBytes + (outputs_bytes_max_ - room);
  for (const ToolCall& tool : entry.tools) bytes_ += kToolBytes + tool.input.size();
  entries.push_back(std::move(entry));
}

void store_batch(Transaction& txn, std::string_view space, const std::string& id, std::uint64_t number,
                 const Batch& batch, WallTime now) {
  SystemAccess access(txn);
  if (!txn.get(alive_key(data_key(space, number))))
    access.refuse({ErrorCode::kNotFound, "the session " + id + " is gone"});
  // Hooks write it all the time: only who changes it has to see it as it is.
  Reader snapshot = txn.snapshot();
  auto session = read<SessionRow>(batch.title.empty() ? snapshot : txn, session_key(space, id));
  if (!session) return;
  bool all = session->favourite || from_ns(session->created) + kMessagesKept > now;
  Storing storing(txn, space, number, now, all ? WallTime::min() : now - kMessagesKept);
  storing.find_prompts(batch.entries);
  if (!storing.has_prompt()) access.refuse({ErrorCode::kNotFound, "the session " + id + " has no prompt"});
  for (const Entry& entry : batch.entries) storing.store(entry, batch.message_bytes_max());
  std::uint64_t added = storing.finish(batch);
  if (!batch.title.empty()) {
    session->name = first_characters(batch.title, kNameCharacters);
    write_session(txn, space, id, *session);
    note_status(txn, space, id, *session, now);
  }
  if (added > 0 || storing.has_answers()) note_messages(txn, space, id, *session, added, storing.last(), now);
}

}  // namespace perdure::transcript
