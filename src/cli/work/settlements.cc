#include "cli/work/settlements.h"

#include <algorithm>
#include <array>
#include <map>

#include "cli/daemon.h"

namespace perdure::cli {
namespace {

using Kind = Settlement::Kind;
constexpr std::array kKinds = {Kind::kComplete, Kind::kFail, Kind::kExtend, Kind::kRelease};

std::string item_text(const Settlement& settlement) {
  Value::Map item = {{"id", settlement.id}, {"token", settlement.token}};
  if (settlement.detail) item[settlement.detail->first] = settlement.detail->second;
  return Value(std::move(item)).to_json();
}

std::string text_at(const Value& value, std::string_view key) {
  const Value* found = value.find(key);
  return found != nullptr && found->is_text() ? *found->as_text() : "";
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kComplete:
      return "complete";
    case Kind::kFail:
      return "fail";
    case Kind::kExtend:
      return "extend";
    case Kind::kRelease:
      return "release";
  }
  return "";
}

void Settlements::add(Settlement settlement) {
  std::erase_if(waiting_, [&](const Settlement& each) {
    return each.kind == Kind::kExtend && each.token == settlement.token && each.id == settlement.id;
  });
  waiting_.push_back(std::move(settlement));
}

SettleBatch Settlements::take() {
  SettleBatch batch;
  std::map<Kind, std::string> lists;
  std::size_t bytes = 0;
  while (!waiting_.empty() && batch.items.size() < kItemsMax) {
    std::string text = item_text(waiting_.front());
    if (!batch.items.empty() && bytes + text.size() > kBytesMax) break;
    bytes += text.size();
    std::string& list = lists[waiting_.front().kind];
    list += (list.empty() ? "" : ",") + text;
    batch.items.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  // As they are answered: list by list.
  std::vector<Settlement> items;
  for (Kind kind : kKinds) {
    for (Settlement& item : batch.items)
      if (item.kind == kind) items.push_back(std::move(item));
    if (lists.contains(kind))
      batch.body += (batch.body.empty() ? "{\"" : ",\"") + std::string(name_of(kind)) + "\":[" + lists[kind] + "]";
  }
  batch.items = std::move(items);
  batch.body += "}";
  batch.idempotency_key = make_idempotency_key();
  return batch;
}

std::vector<Refusal> refused(const SettleBatch& batch, const Value& answer) {
  std::vector<Refusal> out;
  std::map<Kind, std::size_t> seen;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Settlement& item = batch.items[i];
    std::size_t in_kind = seen[item.kind]++;
    const Value* list = answer.find(name_of(item.kind));
    bool by_kind = list != nullptr && list->is_list();
    if (!by_kind) list = answer.find("items");
    std::size_t index = by_kind ? in_kind : i;
    if (list == nullptr || !list->is_list() || index >= list->as_list()->size()) continue;
    const Value& outcome = (*list->as_list())[index];
    const Value* error = outcome.find("error");
    if (error == nullptr || error->is_null()) continue;
    std::string code = error->is_text() ? *error->as_text() : text_at(*error, "code");
    std::string message = error->is_text() ? text_at(outcome, "message") : text_at(*error, "message");
    out.push_back({item, failure_of(code, message.empty() ? code : message, 409)});
  }
  return out;
}

}  // namespace perdure::cli
