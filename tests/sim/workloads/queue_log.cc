#include "queue_log.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace perdure::sim::queues {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"effect", "fail", "release", "extend", "cancel"};
constexpr std::string_view kSent = "sent/", kDeeds = "deed/", kRules = "rule/";

Bytes under(std::string_view table, const std::string& name) {
  return Bytes(table) + name + "/";
}

/// The part of a key between its table and its stamp.
std::string name_in(std::string_view table, const Row& row) {
  return row.key.substr(table.size(), row.key.size() - table.size() - 1 - Stamp::kSize);
}

Did did_of(std::string_view name) {
  return static_cast<Did>(std::ranges::find(kNames, name) - kNames.begin());
}

Deed read_deed(const Row& row) {
  auto blank = row.value.find(' ');
  Deed deed{.did = did_of(row.value.substr(0, blank)), .version = row.version, .token = {}};
  if (blank != Bytes::npos) deed.token = Token::parse(row.value.substr(blank + 1))->stamp;
  return deed;
}

RuleChange read_change(const Row& row) {
  std::istringstream in(row.value);
  int added = 0, type = 0;
  std::int64_t until = 0;
  in >> added >> type >> until;
  RuleChange change{.way = added == 1 ? RuleChange::Way::kAdded : RuleChange::Way::kRemoved,
                    .type = static_cast<Rule::Type>(type),
                    .version = row.version,
                    .until = {}};
  if (until != 0) change.until = DueTime(std::chrono::milliseconds(until));
  return change;
}

}  // namespace

std::string_view name_of(Did did) {
  return kNames[static_cast<std::size_t>(did)];
}

std::vector<Deed> Log::deeds_of(std::int64_t number) const {
  auto found = deeds.find(number);
  return found == deeds.end() ? std::vector<Deed>() : found->second;
}

std::int64_t Log::count(std::int64_t number, Did did) const {
  auto found = deeds.find(number);
  return found == deeds.end() ? 0 : std::ranges::count(found->second, did, &Deed::did);
}

Log read_log(Reader& reader) {
  Log log;
  for (const Row& row : reader.get_range(prefix_range(kSent)))
    log.sent[std::stoll(row.key.substr(kSent.size()))] = {
        .version = row.version, .duplicate = row.value[0] == 'd', .id = *Uuid::parse(row.value.substr(2))};
  for (const Row& row : reader.get_range(prefix_range(kDeeds)))
    log.deeds[std::stoll(name_in(kDeeds, row))].push_back(read_deed(row));
  for (const Row& row : reader.get_range(prefix_range(kRules)))
    log.rules[name_in(kRules, row)].push_back(read_change(row));
  return log;
}

std::vector<Deed> read_deeds(Reader& reader, std::int64_t number) {
  std::vector<Deed> deeds;
  for (const Row& row : reader.get_range(prefix_range(under(kDeeds, std::to_string(number)))))
    deeds.push_back(read_deed(row));
  return deeds;
}

void write_sent(Transaction& txn, std::int64_t number, const Emitted& emitted) {
  txn.set(Bytes(kSent) + std::to_string(number), (emitted.duplicate ? "d " : "n ") + to_string(emitted.id));
}

void write_deed(Transaction& txn, std::int64_t number, Did did, const std::optional<Token>& token) {
  Bytes value(name_of(did));
  if (token) value += " " + token->to_string();
  txn.set_stamped(Stamped{under(kDeeds, std::to_string(number)), {}}, value);
}

void write_rule(Transaction& txn, const std::string& worker, RuleChange::Way way, Rule::Type type,
                const std::optional<DueTime>& until) {
  std::ostringstream value;
  value << (way == RuleChange::Way::kAdded ? 1 : 0) << ' ' << static_cast<int>(type) << ' '
        << (until ? until->time_since_epoch().count() : 0);
  txn.set_stamped(Stamped{under(kRules, worker), {}}, value.str());
}

}  // namespace perdure::sim::queues
