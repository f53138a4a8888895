#include "sequence_check.h"

#include <algorithm>

#include "sequence/rows.h"
#include "store/system_access.h"

namespace perdure::sim::sequencing {
namespace {

using sequence::EntryRow;
using sequence::PartitionRow;
using sequence::Place;

std::string text_of(const SeqKey& key, Number number) {
  return "number " + std::to_string(number) + " of sequence " + std::to_string(static_cast<int>(key.seq)) +
         " in workspace " + std::to_string(static_cast<std::uint64_t>(key.workspace));
}

class Checker {
 public:
  Checker(Reader& reader, const Known& known, const std::function<void(std::string)>& report)
      : reader_(reader), known_(known), report_(report), place_("default", known.partition) {
    auto row = reader.get(place_.spec);
    if (!row) return;
    partition_ = PartitionRow::decode(*row).value();
    stored_ = sequence::read_number(reader, place_.offset);
  }

  void run() {
    for (const Row& row : reader_.get_range(tuple::extensions(place_.log))) look(row);
    for (auto& [offset, told] : known_.told)
      if (offset > last_) report_("offset " + std::to_string(offset) + " was told, and is not in the log");
    look_at_numbers();
    if (stored_ > last_) report_("the stored offset " + std::to_string(stored_) + " is ahead of the log");
    if (known_.at_rest && stored_ != last_)
      report_("at rest the stored offset is " + std::to_string(stored_) + " of " + std::to_string(last_));
  }

 private:
  void look(const Row& row) {
    LogOffset offset = sequence::offset_of(place_, row.key).value();
    if (offset != last_ + 1)
      report_("the log goes on with offset " + std::to_string(offset) + " after " + std::to_string(last_));
    last_ = offset;
    EntryRow entry = EntryRow::decode(row.value).value();
    // In an event they may stand in any order.
    sequence::Drawn drawn = entry.numbers;
    std::ranges::sort(drawn);
    for (auto [seq, number] : drawn) count(offset, {entry.workspace, seq}, number);
    if (auto told = known_.told.find(offset); told != known_.told.end()) compare(entry, offset, told->second);
    look_at_owner(row, entry, offset);
  }

  void count(LogOffset offset, const SeqKey& key, Number number) {
    Number& last = in_log_[key];
    Number wanted = std::max(last + 1, kFloors.at(*partition_.name_of(key.seq)));
    if (number != wanted)
      report_("offset " + std::to_string(offset) + " has " + text_of(key, number) + " instead of " +
              std::to_string(wanted));
    last = std::max(last, number);
    if (offset <= stored_) in_stored_[key] = last;
  }

  void compare(const EntryRow& entry, LogOffset offset, Told told) {
    std::vector<std::pair<std::string, Number>> numbers;
    for (auto [seq, number] : entry.numbers) numbers.emplace_back(*partition_.name_of(seq), number);
    std::ranges::sort(numbers);
    std::ranges::sort(told.numbers);
    if (static_cast<std::uint64_t>(entry.workspace) != told.workspace || numbers != told.numbers)
      report_("offset " + std::to_string(offset) + " is not what was told of it");
  }

  void look_at_owner(const Row& row, const EntryRow& entry, LogOffset offset) {
    Value payload = Value::decode(entry.payload).value();
    if (!payload.is_text()) return;
    Token owner = Token::parse(*payload.as_text()).value();
    for (const Token& other : known_.tokens)
      if (owner.stamp.version < other.stamp.version && other.stamp.version < row.version)
        report_("offset " + std::to_string(offset) + " was written by an owner after a later one took over");
  }

  void look_at_numbers() {
    std::map<SeqKey, Number> stored;
    for (const Row& row : reader_.get_range(tuple::extensions(place_.numbers))) {
      auto parts = tuple::unpack_after<std::uint64_t, std::uint16_t>(place_.numbers, row.key);
      SeqKey key{WorkspaceId{std::get<0>(*parts)}, SeqId{std::get<1>(*parts)}};
      stored[key] = sequence::decode_number(reader_, row.value);
      if (stored[key] > in_log_[key]) report_("stored is " + text_of(key, stored[key]) + ", which is not in the log");
    }
    for (auto& [key, number] : in_stored_)
      if (stored[key] < number)
        report_("stored is " + text_of(key, stored[key]) + ", and " + std::to_string(number) +
                " is before the stored offset");
    if (!known_.at_rest) return;
    for (auto& [key, number] : in_log_)
      if (stored[key] != number) report_("at rest, stored is " + text_of(key, stored[key]));
  }

  Reader& reader_;
  const Known& known_;
  const std::function<void(std::string)>& report_;
  const Place place_;
  PartitionRow partition_;
  LogOffset last_ = 0;
  LogOffset stored_ = 0;
  /// The last number in the log; and of that, in the part up to the stored offset.
  std::map<SeqKey, Number> in_log_;
  std::map<SeqKey, Number> in_stored_;
};

}  // namespace

Value payload_of(const Token& token) {
  return token.to_string();
}

void check(Reader& reader, const Known& known, const std::function<void(std::string)>& report) {
  SystemAccess access(reader);
  Checker(reader, known, report).run();
}

}  // namespace perdure::sim::sequencing
