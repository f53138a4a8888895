#include "transcript/prompts.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string>

namespace perdure::transcript {
namespace {

/// A prompt is noted when its hook comes, a moment after the transcript has it.
constexpr Duration kHookLate = std::chrono::seconds(10);
/// In one transaction.
constexpr int kSeenAtOnce = 100;
/// Of messages that are searched for what the user said last.
constexpr std::size_t kSearchedBytes = std::size_t{8} << 20;

void add_prompt(BytesView prefix, const Row& row, std::vector<Prompts::Prompt>& prompts) {
  if (auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(prefix, row.key))
    prompts.push_back({std::get<1>(*place), std::get<0>(*place), row.value});
}

/// A prompt, and those beside it: two on each side, as far as there are any.
struct Near {
  std::vector<Prompts::Prompt> prompts;
  std::size_t it = 0;
};
Near find_near(Transaction& txn, BytesView data, std::uint64_t n, std::int64_t at) {
  const Bytes prefix = prompt_times_key(data), key = tuple::pack_onto(prefix, at, n);
  const KeyRange all = tuple::extensions(prefix);
  const std::vector<RangeRead> reads = {{{all.begin, key}, {.limit = 2, .direction = Direction::kReverse}},
                                        {{key, all.end}, {.limit = 3}}};
  auto sides = txn.get_ranges(reads);
  Near near;
  for (const Row& row : std::views::reverse(sides[0])) add_prompt(prefix, row, near.prompts);
  near.it = near.prompts.size();
  for (const Row& row : sides[1]) add_prompt(prefix, row, near.prompts);
  return near;
}

/// Whether what the user said belongs to the n-th prompt.
bool is_of(Transaction& txn, BytesView data, std::uint64_t n, std::int64_t at, std::string_view said) {
  const Prompts prompts(txn, data, at, at, 2);
  const Prompts::Prompt* prompt = prompts.of(at, {.is_user = true, .body = std::string(said)});
  return prompt && prompt->n == n;
}

/// What the user said last that belongs to the n-th prompt, of what was said from `from` to before `to`.
std::optional<PromptRow> find_said(Transaction& txn, BytesView data, const Prompts::Prompt& prompt, std::int64_t from,
                                   std::int64_t to) {
  constexpr std::size_t kAtOnce = 16;
  const Bytes prefix = messages_key(data);
  KeyRange range = {tuple::pack_onto(prefix, from), tuple::pack_onto(prefix, to)};
  for (std::size_t searched = 0; range.begin < range.end && searched < kSearchedBytes;) {
    auto rows = txn.get_range(range, {.limit = kAtOnce, .direction = Direction::kReverse});
    for (const Row& row : rows) {
      searched += row.value.size();
      auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(prefix, row.key);
      auto message = decode<MessageRow>(row.value);
      if (!place || !message || !message->is_user) continue;
      if (is_of(txn, data, prompt.n, std::get<0>(*place), message->body))
        return PromptRow{message->body, prompt.at, std::get<0>(*place)};
    }
    if (rows.size() < kAtOnce) break;
    range.end = rows.back().key;
  }
  return std::nullopt;
}

/// Of the n-th prompt and those beside it; whether any text has changed.
bool see_to_text(Transaction& txn, BytesView data, std::uint64_t n) {
  auto row_of = [&](std::uint64_t number) {
    auto bytes = txn.get(tuple::pack_onto(prompts_key(data), number));
    auto row = bytes ? decode<PromptRow>(*bytes) : PromptRow();
    // What cannot be read is left alone.
    return row ? std::optional(std::move(*row)) : std::nullopt;
  };
  auto added = row_of(n);
  if (!added) return false;
  const auto [prompts, it] = find_near(txn, data, n, added->at);
  bool changed = false;
  for (std::size_t i = it - (it > 0); i < prompts.size() && i <= it + 1; ++i) {
    if (!prompts[i].mark.empty()) continue;
    auto row = row_of(prompts[i].n);
    if (!row) continue;
    // One that was there before may have lost what it has, and can have got nothing. What it still has stays, as the
    // message may be gone.
    if (row->said ? is_of(txn, data, prompts[i].n, *row->said, row->text) : i != it) continue;
    // What was said before the first prompt belongs to it.
    const std::int64_t from = i == 0 ? INT64_MIN : prompts[i].at;
    const std::int64_t to = i + 1 < prompts.size() ? prompts[i + 1].at : INT64_MAX;
    auto found = find_said(txn, data, prompts[i], from, to).value_or(PromptRow{"", prompts[i].at, {}});
    if (found.said == row->said && found.text == row->text) continue;
    write_prompt(txn, data, prompts[i].n, found);
    changed = true;
  }
  return changed;
}

}  // namespace

Prompts::Prompts(Reader& reader, BytesView data, std::int64_t first, std::int64_t last, std::size_t most) {
  last = std::min(last, INT64_MAX - kHookLate.count()) + kHookLate.count();
  const Bytes prefix = prompt_times_key(data);
  const KeyRange all = tuple::extensions(prefix);
  auto end_of = [&](std::int64_t at) { return tuple::extensions(tuple::pack_onto(prefix, at)).end; };
  auto before = reader.get_range({all.begin, end_of(first)}, {.limit = 1, .direction = Direction::kReverse});
  KeyRange range = {before.empty() ? all.begin : before[0].key, end_of(last)};
  auto rows = range.begin < range.end ? reader.get_range(range, {.limit = most}) : std::vector<Row>();
  cut_ = rows.size() == most;
  // What was said before the first prompt belongs to it.
  if (rows.empty()) rows = reader.get_range(all, {.limit = 1});
  for (const Row& row : rows) add_prompt(prefix, row, prompts_);
}

const Prompts::Prompt* Prompts::of(std::int64_t at, const MessageRow& message) const {
  auto after = std::ranges::upper_bound(prompts_, at, {}, &Prompt::at);
  if (after == prompts_.end() && (cut_ || prompts_.empty())) return nullptr;
  if (after == prompts_.begin()) return &prompts_.front();
  const auto before = std::prev(after);
  bool is_next = message.is_user && after != prompts_.end() && after->mark == text_mark(message.body) &&
                 after->at <= at + kHookLate.count();
  // Who says the same thing twice means the prompt that is nearer.
  if (is_next && before->mark == after->mark) is_next = before->at < at - (after->at - at);
  return is_next ? &*after : &*before;
}

bool see_to_texts(Transaction& txn, BytesView data, std::uint64_t prompts) {
  auto progress = read<ProgressRow>(txn, progress_key(data));
  if (!progress || !txn.get(alive_key(data))) return false;
  // Texts may be long: those around one prompt are as much as a transaction has room for.
  bool changed = false;
  for (int i = 0; i < kSeenAtOnce && !changed && progress->prompts < prompts; ++i)
    changed = see_to_text(txn, data, ++progress->prompts);
  txn.set(progress_key(data), encode(*progress));
  return progress->prompts < prompts;
}

}  // namespace perdure::transcript
