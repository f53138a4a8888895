// /v1/{space}/partitions
#include <charconv>

#include "http/api.h"
#include "http/append_json.h"
#include "http/bind.h"
#include "http/units.h"

namespace perdure::http {
namespace {

constexpr std::size_t kItemsMax = 1'000;

template <class T>
Result<T> read_number(std::string_view text, std::string_view what) {
  T number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return fail(ErrorCode::kInvalidArgument,
              "'" + std::string(what) + "' must be a whole number, and not '" + std::string(text) + "'");
}

Value partition_json(const PartitionInfo& info) {
  Value::Map types;
  for (const auto& [type, sequences] : info.spec.types) {
    Value::Map floors;
    for (const auto& [sequence, floor] : sequences) floors.emplace(sequence, number_value(floor));
    types.emplace(type, std::move(floors));
  }
  Value owner;
  if (info.owner)
    owner = Value::Map{{"session", info.owner->session.to_string()}, {"token", info.owner->token.to_string()}};
  return Value::Map{{"name", info.name},
                    {"types", std::move(types)},
                    {"trust", name_of(info.spec.trust)},
                    {"offset", number_value(info.offset)},
                    {"flushed_offset", number_value(info.flushed_offset)},
                    {"owner", std::move(owner)}};
}

Result<Number> read_floor(const Value& value, const std::string& what) {
  if (const std::int64_t* integer = value.as_integer(); integer && *integer >= 1) return static_cast<Number>(*integer);
  if (const std::string* text = value.as_text()) return read_number<Number>(*text, what);
  return fail(ErrorCode::kInvalidArgument, "the initial value of " + what + " must be a whole number of at least 1");
}

Result<PartitionSpec> read_spec(const Value& body) {
  Fields fields(body, "the partition");
  PartitionSpec spec;
  if (const Value::Map* types = fields.map("types"))
    for (const auto& [type, sequences] : *types) {
      if (!sequences.is_map()) {
        fields.refuse("types", "must give each type an object of sequences and their initial values");
        break;
      }
      for (const auto& [sequence, floor] : *sequences.as_map()) {
        auto number = read_floor(floor, type + "." + sequence);
        if (!number) fields.refuse(number.error());
        spec.types[type][sequence] = number.value_or(1);
      }
      spec.types.try_emplace(type);
    }
  if (auto trust = fields.text("trust")) {
    bool known = false;
    for (Trust each : {Trust::kGuardAll, Trust::kGuardLog, Trust::kNobody})
      if (name_of(each) == *trust) spec.trust = each, known = true;
    if (!known) fields.refuse("trust", "is not a level that there is");
  }
  for (const char* shown : {"name", "offset", "flushed_offset", "owner"}) (void)fields.any(shown);
  if (auto good = fields.finish(); !good) return wrong(good);
  return spec;
}

Result<Answer> set(Node& node, Transaction& txn, const Call& call) {
  auto spec = read_spec(call.body);
  if (!spec) return wrong(spec);
  Sequences sequences = node.sequences().in(call.space());
  bool is_new = !sequences.get(txn, call.param("partition"));
  auto info = sequences.set(txn, call.param("partition"), *spec);
  return Answer{.status = is_new ? 201 : 200, .body = partition_json(info)};
}

Result<Answer> get(Node& node, Transaction& txn, const Call& call) {
  auto info = node.sequences().in(call.space()).get(txn, call.param("partition"));
  if (!info) return wrong(info);
  return ok(partition_json(*info));
}

Result<Answer> remove(Node& node, const Call& call) {
  auto removed = node.sequences().in(call.space()).remove(call.param("partition"));
  if (!removed) return wrong(removed);
  return no_content();
}

Result<Answer> list(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto found = node.sequences().in(call.space()).list(txn, {page->limit, page->after});
  if (!found) return wrong(found);
  Value::List items;
  for (const PartitionInfo& info : *found) items.push_back(partition_json(info));
  return list_answer(std::move(items), found->empty() ? "" : next_after(found->size(), *page, found->back().name));
}

Result<Answer> append(Node& node, Transaction& txn, const Call& call) {
  Sequences sequences = node.sequences().in(call.space());
  const Value::List* many = call.body.as_list();
  if (!many) {
    auto event = read_append(call.body, "the event");
    if (!event) return wrong(event);
    return created(appended_json(sequences.append(txn, call.param("partition"), *event)));
  }
  if (many->size() > kItemsMax)
    return fail(ErrorCode::kTooLarge, "at most 1000 events are appended at once; send them in parts");
  std::vector<Append> events;
  for (std::size_t i = 0; i < many->size(); ++i) {
    auto event = read_append((*many)[i], "event " + std::to_string(i + 1));
    if (!event) return wrong(event);
    events.push_back(std::move(*event));
  }
  Value::List items;
  for (const Appended& each : sequences.append_many(txn, call.param("partition"), events))
    items.push_back(appended_json(each));
  return created(Value::Map{{"items", std::move(items)}});
}

Value entry_json(const LogEntry& entry) {
  Value::List numbers;
  for (const auto& [sequence, number] : entry.numbers) numbers.push_back(pair_value(sequence, number_value(number)));
  return Value::Map{
      {"offset", number_value(entry.offset)}, {"type", entry.type},       {"workspace", number_value(entry.workspace)},
      {"numbers", std::move(numbers)},        {"payload", entry.payload}, {"at", format_time(entry.at)}};
}

Result<Answer> log(Node& node, Transaction& txn, const Call& call) {
  auto page = call.page();
  if (!page) return wrong(page);
  auto after = read_number<LogOffset>(page->after.empty() ? "0" : page->after, "after");
  if (!after) return wrong(after);
  Sequences sequences = node.sequences().in(call.space());
  auto found = sequences.log(txn, call.param("partition"), {*after, page->limit});
  if (!found) return wrong(found);
  Value::List items;
  for (const LogEntry& entry : *found) items.push_back(entry_json(entry));
  std::string next;
  if (!found->empty()) {
    LogOffset last = found->back().offset;
    auto more = sequences.log(txn, call.param("partition"), {last, 1});
    if (more && !more->empty()) next = std::to_string(last);
  }
  return list_answer(std::move(items), std::move(next));
}

Result<Answer> numbers(Node& node, Transaction& txn, const Call& call) {
  auto workspace = read_number<std::uint64_t>(call.query("workspace").value_or(""), "workspace");
  if (!workspace) return wrong(workspace);
  auto found = node.sequences().in(call.space()).numbers(txn, call.param("partition"), *workspace);
  if (!found) return wrong(found);
  Value::Map out;
  for (const auto& [sequence, number] : *found) out.emplace(sequence, number_value(number));
  return ok(std::move(out));
}

}  // namespace

std::vector<Route> sequence_routes(Node& node) {
  const std::string one = "/v1/{space}/partitions/{partition}";
  return {
      {"GET", "/v1/{space}/partitions", Load::kRead, looks(node, list)},
      {"GET", one, Load::kRead, looks(node, get)},
      {"PUT", one, Load::kLess, changes(node, set)},
      {"DELETE", one, Load::kLess, blocks(node, remove)},
      {"POST", one + "/append", Load::kMore, changes(node, append, Reserve::kKeepOut)},
      {"GET", one + "/log", Load::kRead, looks(node, log)},
      {"GET", one + "/numbers", Load::kRead, looks(node, numbers)},
  };
}

}  // namespace perdure::http
