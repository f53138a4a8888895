#include "transcript/ingest.h"

#include <algorithm>
#include <map>
#include <optional>

#include "store/system_access.h"

namespace perdure::transcript {
namespace {

constexpr std::string_view kTodoTool = "TodoWrite";
constexpr std::size_t kMessageBytesMax = 1'000'000;
/// A call or an answer takes no more than this besides its texts.
constexpr std::size_t kToolBytes = 500;
/// What tools answered in one entry: it is stored in one transaction, with what is in the same batch.
constexpr std::size_t kOutputsBytesMax = std::size_t{4} << 20;
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

MessageRow row_of(const Entry& entry, std::uint64_t prompt) {
  MessageRow row{
      .uuid = entry.uuid, .is_user = entry.is_user, .body = entry.body, .thinking = entry.thinking, .prompt = prompt};
  std::size_t room = kMessageBytesMax;
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
  Storing(Transaction& txn, std::string_view space, std::uint64_t number, WallTime now)
      : txn_(txn), space_(space), data_(data_key(space, number)), number_(number), now_(now) {
    Reader snapshot = txn.snapshot();
    Bytes prompts = prompts_key(data_);
    for (const Row& row : snapshot.get_range(tuple::extensions(prompts))) {
      auto n = tuple::unpack_after<std::uint64_t>(prompts, row.key);
      auto prompt = in_txn(txn, decode<PromptRow>(row.value));
      if (n) prompts_.push_back({std::get<0>(*n), std::move(prompt)});
    }
    std::ranges::stable_sort(prompts_, {}, [](const auto& each) { return each.second.at; });
    progress_ = read<ProgressRow>(txn, progress_key(data_)).value_or(ProgressRow{});
    before_ = progress_.messages;
  }

  void store(const Entry& entry) {
    for (const ToolResult& result : entry.results)
      txn_.set(result_key(data_, result.id), encode(ResultRow{result.output, result.is_error, result.cut}));
    if (entry.body.empty() && entry.thinking.empty() && entry.tools.empty()) return;
    Bytes uuid = uuid_key(space_, entry.uuid);
    if (is_known(uuid)) return;
    std::int64_t at = to_ns(entry.at.value_or(now_));
    MessageRow row = row_of(entry, prompt_of(entry));
    Bytes key = tuple::pack_onto(messages_key(data_), at, ++progress_.messages);
    if (std::ranges::any_of(row.tools, [](const ToolRow& tool) { return tool.name == kTodoTool; })) replace_todo(key);
    txn_.set(uuid, tuple::pack(number_, at, progress_.messages));
    txn_.set(key, encode(row));
    if (entry.is_user) last_said_[row.prompt] = row.body;
  }

  /// Prompts that came without a text get what the user said last; answers how many messages are new.
  std::uint64_t finish(const Batch& batch) {
    for (const auto& [n, prompt] : prompts_) {
      auto said = last_said_.find(n);
      if (!prompt.text.empty() || said == last_said_.end()) continue;
      txn_.set(tuple::pack_onto(prompts_key(data_), n), encode(PromptRow{said->second, prompt.at}));
    }
    progress_.device = batch.position.device;
    progress_.inode = batch.position.inode;
    progress_.offset = batch.position.offset;
    progress_.bytes_read += batch.bytes_read;
    txn_.set(progress_key(data_), encode(progress_));
    return progress_.messages - before_;
  }
  std::uint64_t last() const { return progress_.messages; }
  bool has_prompt() const { return !prompts_.empty(); }

 private:
  /// What is left of a session that is gone knows nothing.
  bool is_known(const Bytes& uuid) {
    std::uint64_t owner = owner_of(txn_.get(uuid));
    return owner == number_ || (owner != 0 && txn_.get(alive_key(data_key(space_, owner))));
  }

  /// The prompt that it belongs to, by time: the last that was made before it.
  std::uint64_t prompt_of(const Entry& entry) const {
    WallTime at = entry.at.value_or(now_);
    auto after = std::ranges::upper_bound(prompts_, to_ns(at), {}, [](const auto& each) { return each.second.at; });
    if (after == prompts_.begin()) return prompts_.front().first;
    bool is_next = entry.is_user && after != prompts_.end() && after->second.text == entry.body &&
                   from_ns(after->second.at) <= at + kHookLate;
    return is_next ? after->first : std::prev(after)->first;
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
  const WallTime now_;
  std::vector<std::pair<std::uint64_t, PromptRow>> prompts_;
  ProgressRow progress_;
  std::uint64_t before_ = 0;
  /// By prompt.
  std::map<std::uint64_t, std::string> last_said_;
};

}  // namespace

void Batch::add(Entry entry) {
  if (entry.kind == Entry::Kind::kTitle) title = std::move(entry.title);
  if (entry.kind != Entry::Kind::kMessage) return;
  std::size_t room = kOutputsBytesMax;
  std::size_t kept = 0;
  for (; kept < entry.results.size() && room > kToolBytes; ++kept) {
    room -= kToolBytes;
    entry.results[kept].cut |= cut_to(entry.results[kept].output, room);
  }
  entry.results.resize(kept);
  bytes_ += entry.body.size() + entry.thinking.size() + 200 + (kOutputsBytesMax - room);
  for (const ToolCall& tool : entry.tools) bytes_ += tool.input.size();
  entries.push_back(std::move(entry));
}

void store_batch(Transaction& txn, std::string_view space, const std::string& id, std::uint64_t number,
                 const Batch& batch, WallTime now) {
  SystemAccess access(txn);
  if (!txn.get(alive_key(data_key(space, number))))
    access.refuse({ErrorCode::kNotFound, "the session " + id + " is gone"});
  Storing storing(txn, space, number, now);
  if (!storing.has_prompt()) access.refuse({ErrorCode::kNotFound, "the session " + id + " has no prompt"});
  for (const Entry& entry : batch.entries) storing.store(entry);
  std::uint64_t added = storing.finish(batch);
  if (added == 0 && batch.title.empty()) return;
  // Hooks write it all the time: only who changes it has to see it as it is.
  Reader snapshot = txn.snapshot();
  auto session = read<SessionRow>(batch.title.empty() ? snapshot : txn, session_key(space, id));
  if (!session) return;
  if (!batch.title.empty()) {
    session->name = first_characters(batch.title, kNameCharacters);
    write_session(txn, space, id, *session);
    note_status(txn, space, id, *session, now);
  }
  if (added > 0) note_messages(txn, space, id, *session, added, storing.last(), now);
}

}  // namespace perdure::transcript
