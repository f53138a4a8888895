#include "transcript/prompts.h"

#include <algorithm>

namespace perdure::transcript {
namespace {

/// A prompt is noted when its hook comes, a moment after the transcript has it.
constexpr Duration kHookLate = std::chrono::seconds(10);

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
  for (const Row& row : rows)
    if (auto place = tuple::unpack_after<std::int64_t, std::uint64_t>(prefix, row.key))
      prompts_.push_back({std::get<1>(*place), std::get<0>(*place), row.value});
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

}  // namespace perdure::transcript
