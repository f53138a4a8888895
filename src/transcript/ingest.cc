#include "transcript/ingest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "store/system_access.h"
#include "transcript/json_text.h"
#include "transcript/prompts.h"

namespace perdure::transcript {
namespace {

constexpr std::string_view kTodoTool = "TodoWrite";
/// A call or an answer takes no more than this besides its texts.
constexpr std::size_t kToolBytes = 500;
/// A message takes no more than this besides its texts, with the row of its uuid.
constexpr std::size_t kEntryBytes = 1'000;
constexpr std::string_view kNull = "null";

/// Cuts a text to what is left of `room`, and takes that away from it.
bool cut_to(std::string& text, std::size_t& room) {
  std::size_t size = first_bytes(text, room).size();
  bool cut = size < text.size();
  text.resize(size);
  room -= size;
  return cut;
}

MessageRow row_of(const Entry& entry) {
  MessageRow row{
      .uuid = entry.uuid, .is_user = entry.is_user, .body = entry.body, .thinking = entry.thinking, .cut = entry.cut};
  for (const ToolCall& tool : entry.tools) row.tools.push_back({tool.id, tool.name, tool.input});
  return row;
}

/// Stores the messages of one batch.
class Storing {
 public:
  /// Messages with a time before `oldest` would go at once, and are left out.
  Storing(Transaction& txn, std::string_view space, std::uint64_t number, const Batch& batch, WallTime now,
          WallTime oldest)
      : txn_(txn),
        space_(space),
        number_(number),
        data_(data_key(space, number)),
        batch_(batch),
        now_(now),
        oldest_(oldest) {
    progress_ = read<ProgressRow>(txn, progress_key(data_)).value_or(ProgressRow{});
    before_ = progress_.messages;
  }

  /// The prompts that entries of such times may belong to.
  void find_prompts() {
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const Entry& entry : batch_.entries) {
      first = std::min(first, to_ns(entry.at.value_or(now_)));
      last = std::max(last, to_ns(entry.at.value_or(now_)));
    }
    Reader snapshot = txn_.snapshot();
    prompts_ = Prompts(snapshot, data_, first, last, SIZE_MAX);
  }

  /// What is asked for by ids that come in no order, all at once: across a network each would be a question of its own.
  void find_known() {
    std::vector<Bytes> keys;
    std::vector<std::string_view> uuids, calls;
    for (const Entry& entry : batch_.entries) {
      if (has_message(entry)) uuids.push_back(entry.uuid);
      for (const ToolCall& tool : entry.tools) calls.push_back(tool.id);
      for (const ToolResult& result : entry.results) calls.push_back(result.id);
    }
    for (std::string_view uuid : uuids) keys.push_back(uuid_key(space_, uuid));
    for (std::string_view call : calls) keys.push_back(result_number_key(data_, call));
    auto rows = txn_.get_many(keys);
    owners_.reserve(uuids.size());
    results_.reserve(calls.size());
    for (std::size_t i = 0; i < uuids.size(); ++i) owners_[key_text(uuids[i])] = decode_owner(rows[i]);
    for (std::size_t i = 0; i < calls.size(); ++i)
      results_[std::string(calls[i])] = decode_number(rows[uuids.size() + i]);
  }

  void store(const Entry& entry) {
    ++progress_.entries;
    bool stored = keep(entry);
    // The file is another than the one that was read ahead, or the entry is too old by now, or another was first.
    std::string_view booked = batch_.ahead ? batch_.ahead->uuid_of(progress_.entries) : std::string_view();
    if (booked.empty() || (stored && booked == key_text(entry.uuid))) return;
    clear_owned(txn_, space_, {{std::string(booked)}}, number_, progress_.entries - 1);
    if (auto cleared = owners_.find(std::string(booked)); cleared != owners_.end() && cleared->second == this_entry())
      cleared->second.reset();
  }

  /// Prompts that came without a text get what the user said last, whichever run has stored that; answers how many
  /// messages are new.
  std::uint64_t finish() {
    if (batch_.ahead && progress_.entries >= batch_.ahead->last() &&
        progress_.entries - batch_.entries.size() < batch_.ahead->last())
      close_bookings(txn_, space_, number_);
    for (const auto& [n, last] : last_said_) {
      auto bytes = txn_.get(tuple::pack_onto(prompts_key(data_), n));
      // One that cannot be read is written anew.
      auto row = bytes ? decode<PromptRow>(*bytes) : PromptRow();
      if (row && row->said > last.at) continue;
      write_prompt(txn_, data_, n, {last.text, last.prompt_at, last.at});
    }
    progress_.device = batch_.position.device;
    progress_.inode = batch_.position.inode;
    progress_.offset = batch_.position.offset;
    progress_.tail = batch_.position.tail;
    progress_.inside = batch_.position.inside;
    progress_.bytes_read += batch_.bytes_read;
    txn_.set(progress_key(data_), encode(progress_));
    return progress_.messages - before_;
  }
  std::uint64_t messages() const { return progress_.messages; }
  std::uint64_t entries() const { return progress_.entries; }
  bool has_prompt() const { return !prompts_.empty(); }
  /// Whether a tool has answered, of which that was not known.
  bool has_answers() const { return has_answers_; }

 private:
  struct Said {
    std::int64_t at = INT64_MIN;
    std::string text = {};
    std::int64_t prompt_at = 0;
  };

  UuidOwner this_entry() const { return {number_, progress_.entries}; }
  Bytes message_key(const Entry& entry, std::uint64_t n) const {
    return tuple::pack_onto(messages_key(data_), to_ns(entry.at.value_or(now_)), n);
  }

  /// Whether its message was stored.
  bool keep(const Entry& entry) {
    if (entry.at.value_or(now_) <= oldest_) return false;
    for (const ToolResult& result : entry.results) keep_result(result);
    if (!has_message(entry)) return false;
    std::optional<UuidOwner>& owner = owners_[key_text(entry.uuid)];
    if (owner && is_known(*owner)) {
      if (owner->session == number_) see_to_answers(entry, owner->entry);
      return false;
    }
    if (owner != this_entry()) write_owner(txn_, uuid_key(space_, entry.uuid), *(owner = this_entry()));
    MessageRow row = row_of(entry);
    Bytes key = message_key(entry, progress_.entries);
    if (std::ranges::any_of(row.tools, [](const ToolRow& tool) { return tool.name == kTodoTool; })) replace_todo(key);
    for (std::size_t i = 0; i < row.tools.size(); ++i) {
      const auto& answer = entry.tools[i].answer;
      if (answer && results_[answer->id] != 0)
        keep_result(*answer);
      else if (answer)
        write_result(row.tools[i].result = ++progress_.results, *answer);
    }
    txn_.set(key, encode(row));
    if (entry.is_user) note_said(row, to_ns(entry.at.value_or(now_)));
    ++progress_.messages;
    return true;
  }

  /// It becomes the text of its prompt, if that came without one.
  void note_said(const MessageRow& row, std::int64_t at) {
    const Prompts::Prompt* prompt = prompts_.of(at, row);
    if (!prompt || !prompt->mark.empty()) return;
    Said& last = last_said_[prompt->n];
    if (last.at <= at) last = {at, row.body, prompt->at};
  }

  bool is_known(const UuidOwner& owner) {
    return owner.session == number_ ? owner.entry < progress_.entries : is_stored(txn_, space_, owner);
  }

  /// Of an entry that is known already, the n-th: what its tools have answered may be new.
  void see_to_answers(const Entry& entry, std::uint64_t n) {
    if (entry.tools.empty()) return;
    auto row = read<MessageRow>(txn_, message_key(entry, n));
    for (std::size_t i = 0; i < entry.tools.size(); ++i) {
      const ToolCall& tool = entry.tools[i];
      bool is_same = row && i < row->tools.size() && row->tools[i].id == tool.id;
      std::uint64_t& by_id = results_[tool.id];
      std::uint64_t known = by_id != 0 ? by_id : is_same ? row->tools[i].result : 0;
      if (tool.answer && known != 0)
        replace_result(known, *tool.answer);
      else if (tool.answer)
        keep_result(*tool.answer);
      else if (known != 0 && by_id == 0)
        // The batch which has the answer does not know of this message.
        txn_.set(result_number_key(data_, tool.id), tuple::pack(by_id = known));
    }
  }

  /// By the id of its call.
  void keep_result(const ToolResult& result) {
    std::uint64_t& n = results_[result.id];
    if (n != 0) return replace_result(n, result);
    txn_.set(result_number_key(data_, result.id), tuple::pack(n = ++progress_.results));
    write_result(n, result);
    has_answers_ = true;
  }
  void replace_result(std::uint64_t n, const ToolResult& result) {
    if (txn_.get(result_key(data_, n)) == encode_result(result)) return;
    write_result(n, result);
    has_answers_ = true;
  }
  void write_result(std::uint64_t n, const ToolResult& result) {
    txn_.set(result_key(data_, n), encode_result(result));
  }
  static Bytes encode_result(const ToolResult& result) {
    return encode(ResultRow{result.output, result.is_error, result.cut});
  }

  /// A session has one list of things to do: that of before goes when there is a new one.
  void replace_todo(const Bytes& key) {
    Bytes todo = todo_key(data_);
    if (auto old = txn_.get(todo)) {
      if (auto row = read<MessageRow>(txn_, *old)) {
        std::erase_if(row->tools, [this](const ToolRow& tool) {
          // Its answer stays known.
          if (tool.name == kTodoTool && tool.result != 0 && answer_of(txn_, data_, tool) == tool.result)
            txn_.set(result_number_key(data_, tool.id), tuple::pack(results_[tool.id] = tool.result));
          return tool.name == kTodoTool;
        });
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
  const std::uint64_t number_;
  const Bytes data_;
  const Batch& batch_;
  const WallTime now_, oldest_;
  Prompts prompts_;
  bool has_answers_ = false;
  ProgressRow progress_;
  std::uint64_t before_ = 0;
  /// By prompt, of those that came without a text.
  std::map<std::uint64_t, Said> last_said_;
  /// By uuid, as keys have it; and by the id of a call, which answer has a row by that.
  std::unordered_map<std::string, std::optional<UuidOwner>> owners_;
  std::unordered_map<std::string, std::uint64_t> results_;
};

}  // namespace

void Batch::add(Entry entry) {
  if (entry.kind == Entry::Kind::kTitle) title = std::move(entry.title);
  if (entry.kind != Entry::Kind::kMessage) return;
  cut_message(entry);
  cut_results(entry);
  // What the user says may become the text of a prompt as well.
  bytes_ += kEntryBytes + entry.body.size() * (entry.is_user ? 2 : 1) + entry.thinking.size();
  for (const ToolCall& tool : entry.tools) bytes_ += kToolBytes + tool.input.size();
  for (const ToolResult& result : entry.results) bytes_ += kToolBytes + result.output.size();
  std::erase_if(entry.results, [this](ToolResult& result) { return answer(result); });
  note_calls(entry);
  entries.push_back(std::move(entry));
}

void Batch::cut_message(Entry& entry) const {
  std::size_t room = message_bytes_max();
  entry.cut |= cut_to(entry.body, room);
  entry.cut |= cut_to(entry.thinking, room);
  std::size_t kept = 0;
  for (; kept < entry.tools.size() && room >= kToolBytes + kNull.size(); ++kept) {
    std::string& input = entry.tools[kept].input;
    // Half of it would not be JSON.
    if (kToolBytes + input.size() > room) input = kNull, entry.cut = true;
    room -= kToolBytes + input.size();
  }
  entry.cut |= kept < entry.tools.size();
  entry.tools.resize(kept);
}

void Batch::cut_results(Entry& entry) const {
  std::size_t room = outputs_bytes_max(), kept = 0;
  for (; kept < entry.results.size() && room > kToolBytes; ++kept) {
    room -= kToolBytes;
    entry.results[kept].cut |= cut_to(entry.results[kept].output, room);
  }
  entry.results.resize(kept);
}

void Batch::note_calls(Entry& entry) {
  // Without a time of its own its message could not be found again, see Storing::see_to_answers.
  for (std::size_t i = 0; entry.at && i < entry.tools.size(); ++i) {
    auto [call, is_new] = calls_.try_emplace(entry.tools[i].id, Call{entries.size(), i});
    if (is_new || std::exchange(call->second.shared, true) || call->second.entry == entries.size()) continue;
    auto& answer = entries[call->second.entry].tools[call->second.tool].answer;
    if (answer) entry.results.push_back(*std::exchange(answer, std::nullopt));
  }
}

bool Batch::answer(ToolResult& result) {
  auto call = calls_.find(result.id);
  if (call == calls_.end() || call->second.shared) return false;
  entries[call->second.entry].tools[call->second.tool].answer = std::move(result);
  return true;
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
  Storing storing(txn, space, number, batch, now, oldest_kept(*session, now));
  if (batch.before && *batch.before != storing.entries())
    access.refuse({ErrorCode::kStaleToken, "the transcript of " + id + " is read by another run"});
  storing.find_prompts();
  storing.find_known();
  if (!storing.has_prompt()) access.refuse({ErrorCode::kNotFound, "the session " + id + " has no prompt"});
  for (const Entry& entry : batch.entries) storing.store(entry);
  std::uint64_t added = storing.finish();
  if (!batch.title.empty()) {
    session->name = first_characters(batch.title, kNameCharacters);
    write_session(txn, space, id, *session);
    note_status(txn, space, id, *session, now);
  }
  if (added > 0 || storing.has_answers()) note_messages(txn, space, id, *session, added, storing.messages(), now);
}

}  // namespace perdure::transcript
