#include "transcript/entry.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/rfc3339.h"
#include "transcript/json_text.h"
#include "transcript/json_walk.h"
#include "transcript/lines.h"

namespace perdure::transcript {
namespace {

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

/// Buffers for longer lines than this are given back behind the line; they take several times its size.
constexpr std::size_t kKeptCapacity = std::size_t{4} << 20;
constexpr std::size_t kSmallestCapacity = std::size_t{64} << 10;
/// So many bytes of output are more characters than are kept.
constexpr std::size_t kOutputEnough = 4 * kOutputCharactersMax + 1;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kBlanks) == text.npos;
}

/// What is of interest of one item of a content, as it was written.
struct Item {
  std::string_view type = {}, text = {}, thinking = {}, id = {}, name = {}, result_of = {}, input = {};
  bool is_error = false;
  std::string output = {};
};

/// What is of interest of a line, as it was written; the message is in the entry already.
struct Found {
  std::string_view type = {}, uuid = {}, timestamp = {}, title = {};
  bool is_text = false;  ///< The content of the message is a string.
  Entry entry = {};
};

Entry skipped(std::string_view why) {
  return {.why = why};
}

bool is_local_command(std::string_view body) {
  constexpr std::string_view kMarkers[] = {"<local-command-stdout>", "<local-command-caveat>", "<command-name>"};
  return std::ranges::any_of(kMarkers, [&](std::string_view marker) { return body.find(marker) != body.npos; });
}

}  // namespace

struct EntryReader::Parsers {
  ondemand::parser lines;

  /// What a line holds that is of interest; false if it is malformed, here and below.
  bool scan(std::string_view line, Found& found);
  bool scan_message(ondemand::value& message, Found& found);
  bool read_item(ondemand::value& value, Item& item) const;
  /// The output of a tool: a string, or items with texts.
  bool read_output(ondemand::value& value, std::string& out) const;
  bool keep_item(Item item, Entry& entry);

  /// Puts the text of a string of the line behind `out`, as an item of its own, unless it is blank. It may stop once
  /// there is enough.
  bool append_item(std::string_view raw, std::string& out, std::size_t enough = std::string::npos) const;
  /// An id or a name; empty if it is none that could be kept.
  bool read_id(std::string_view raw, std::string& out) const;

  Entry title_of(const Found& found) const;
  Entry message_of(Found found) const;
};

bool EntryReader::Parsers::append_item(std::string_view raw, std::string& out, std::size_t enough) const {
  if (is_blank(raw) || out.size() >= enough) return true;
  std::size_t before = out.size();
  if (before > 0) out += "\n\n";
  std::size_t begin = out.size();
  if (!append_text(lines, raw, out, enough)) return false;
  if (is_blank(std::string_view(out).substr(begin))) out.resize(before);
  return true;
}

bool EntryReader::Parsers::read_id(std::string_view raw, std::string& out) const {
  out.clear();
  if (!append_text(lines, raw, out, kIdBytesMax + 1)) return false;
  if (out.size() > kIdBytesMax) out.clear();
  return true;
}

bool EntryReader::Parsers::read_output(ondemand::value& value, std::string& out) const {
  out.clear();
  if (first_of(value) == '"') return append_item(raw_string(value), out, kOutputEnough);
  if (first_of(value) != '[') return true;
  return each_element(value, [&](ondemand::value& item) {
    if (first_of(item) != '{') return true;
    std::string_view type, text;
    if (!each_member(item, [&](ondemand::raw_json_string key, ondemand::value& member) {
          if (is(key, "type")) type = raw_string(member);
          if (is(key, "text")) text = raw_string(member);
          return true;
        }))
      return false;
    return type != "text" || append_item(text, out, kOutputEnough);
  });
}

bool EntryReader::Parsers::read_item(ondemand::value& value, Item& item) const {
  return each_member(value, [&](ondemand::raw_json_string key, ondemand::value& member) {
    if (is(key, "type"))
      item.type = raw_string(member);
    else if (is(key, "text"))
      item.text = raw_string(member);
    else if (is(key, "thinking"))
      item.thinking = raw_string(member);
    else if (is(key, "id"))
      item.id = raw_string(member);
    else if (is(key, "name"))
      item.name = raw_string(member);
    else if (is(key, "tool_use_id"))
      item.result_of = raw_string(member);
    else if (is(key, "is_error"))
      item.is_error = member.raw_json_token().starts_with("true");
    else if (is(key, "input"))
      return raw_value(member, item.input);
    else if (is(key, "content"))
      return read_output(member, item.output);
    return true;
  });
}

bool EntryReader::Parsers::keep_item(Item item, Entry& entry) {
  if (item.type == "text") return append_item(item.text, entry.body);
  if (item.type == "thinking") return append_item(item.thinking, entry.thinking);
  if (item.type == "tool_use") {
    ToolCall call;
    if (!read_id(item.id, call.id) || !read_id(item.name, call.name)) return false;
    if (call.id.empty() || call.name.empty()) return true;
    if (!item.input.empty()) call.input = item.input;
    mend_surrogates(call.input);
    entry.tools.push_back(std::move(call));
  }
  if (item.type == "tool_result") {
    ToolResult result{.output = std::move(item.output), .is_error = item.is_error};
    if (!read_id(item.result_of, result.id)) return false;
    if (result.id.empty()) return true;
    std::size_t kept = first_characters(result.output, kOutputCharactersMax).size();
    result.cut = kept < result.output.size();
    result.output.resize(kept);
    entry.results.push_back(std::move(result));
  }
  return true;
}

bool EntryReader::Parsers::scan_message(ondemand::value& message, Found& found) {
  found.entry = {};
  found.is_text = false;
  if (first_of(message) != '{') return true;
  return each_member(message, [&](ondemand::raw_json_string key, ondemand::value& content) {
    if (!is(key, "content")) return true;
    found.entry = {};
    found.is_text = first_of(content) == '"';
    if (found.is_text) return append_item(raw_string(content), found.entry.body);
    if (first_of(content) != '[') return true;
    return each_element(content, [&](ondemand::value& value) {
      Item item;
      if (first_of(value) != '{') return true;
      return read_item(value, item) && keep_item(std::move(item), found.entry);
    });
  });
}

bool EntryReader::Parsers::scan(std::string_view line, Found& found) {
  // In powers of two, or lines that are each a little longer than the last would each make new buffers.
  std::size_t capacity = std::bit_ceil(std::max(line.size(), kSmallestCapacity));
  if (lines.capacity() < capacity && lines.allocate(capacity) != SUCCESS) return false;
  ondemand::document document;
  if (lines.iterate(line, line.size() + kLinePadding).get(document) != SUCCESS) return false;
  bool sound = each_member(document, [&](ondemand::raw_json_string key, ondemand::value& value) {
    if (is(key, "type"))
      found.type = raw_string(value);
    else if (is(key, "uuid"))
      found.uuid = raw_string(value);
    else if (is(key, "timestamp"))
      found.timestamp = raw_string(value);
    else if (is(key, "customTitle"))
      found.title = raw_string(value);
    else if (is(key, "message"))
      return scan_message(value, found);
    return true;
  });
  // Nothing may follow behind the object.
  return sound && document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

Entry EntryReader::Parsers::title_of(const Found& found) const {
  Entry entry{.kind = Entry::Kind::kTitle};
  if (!append_item(found.title, entry.title)) return skipped(kMalformed);
  if (entry.title.empty()) return skipped("nothing to keep");
  return entry;
}

Entry EntryReader::Parsers::message_of(Found found) const {
  Entry entry = std::move(found.entry);
  entry.is_user = found.type == "user";
  if (!read_id(found.uuid, entry.uuid)) return skipped(kMalformed);
  if (entry.uuid.empty()) return skipped("no uuid");
  if (entry.is_user) {
    // Text that comes in items was not typed by anybody.
    if (!found.is_text) entry.body.clear();
    entry.thinking.clear();
    entry.tools.clear();
    if (is_local_command(entry.body)) return skipped("a local command");
  } else {
    entry.results.clear();
  }
  if (entry.body.empty() && entry.thinking.empty() && entry.tools.empty() && entry.results.empty())
    return skipped("nothing to keep");
  if (auto at = parse_rfc3339(found.timestamp)) entry.at = *at;
  entry.kind = Entry::Kind::kMessage;
  return entry;
}

EntryReader::EntryReader() : parsers_(std::make_unique<Parsers>()) {}
EntryReader::~EntryReader() = default;
EntryReader::EntryReader(EntryReader&&) noexcept = default;
EntryReader& EntryReader::operator=(EntryReader&&) noexcept = default;

Entry EntryReader::read(std::string_view line) {
  if (is_blank(line)) return skipped("blank");
  Found found;
  bool sound = parsers_->scan(line, found);
  Entry entry;
  if (!sound)
    entry = skipped(kMalformed);
  else if (found.type == "custom-title")
    entry = parsers_->title_of(found);
  else if (found.type == "user" || found.type == "assistant")
    entry = parsers_->message_of(std::move(found));
  else
    entry = skipped("of another type");
  if (parsers_->lines.capacity() > kKeptCapacity) parsers_ = std::make_unique<Parsers>();
  return entry;
}

}  // namespace perdure::transcript
