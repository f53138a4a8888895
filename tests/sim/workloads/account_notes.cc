#include "account_notes.h"

#include <algorithm>

#include "actor/admin.h"
#include "actor/mailbox.h"
#include "actor/rows.h"
#include "session/rows.h"

namespace perdure::sim::accounts {
namespace {

/// The id that a message carries, whichever it is.
std::int64_t id_in(const Value& message) {
  auto opened = internal::open_message(message);
  const Value* id = opened ? opened->second->find("id") : nullptr;
  return id && id->as_integer() ? *id->as_integer() : 0;
}

std::string text(std::int64_t id) {
  return "message " + std::to_string(id);
}

}  // namespace

// Taking notes.

std::int64_t AccountNotes::send(Sent sent) {
  sent.sent_at = ++clock_;
  sent_.push_back(std::move(sent));
  return static_cast<std::int64_t>(sent_.size());
}

void AccountNotes::end(std::int64_t id, const Error* error) {
  Sent& sent = sent_[static_cast<std::size_t>(id) - 1];
  sent.answered_at = ++clock_;
  if (!error)
    sent.ending = Ending::kOk;
  else
    sent.ending = error->outcome() == Outcome::kNone ? Ending::kFail : Ending::kUnknown;
  world_.note("client", text(id) + " to " + sent.actor + ": " + (error ? to_string(*error) : "ok"));
  bool may_fail = sent.what == What::kPoison || sent.what == What::kTransfer || sent.what == What::kSlow;
  if (error && error->code == ErrorCode::kHandlerFailed && !may_fail)
    wrong(sent.actor, text(id) + " was refused by a handler that does not: " + error->message);
  if (error && error->code == ErrorCode::kInvalidArgument)
    wrong(sent.actor, text(id) + " was refused: " + error->message);
  if (!error && sent.what == What::kPoison && sent.place != 0)
    wrong(sent.actor, text(id) + " always fails, and was replied to");
}

void AccountNotes::answered(std::int64_t id, const Result<Value>& reply) {
  Sent& sent = sent_[static_cast<std::size_t>(id) - 1];
  if (reply) {
    sent.place = reply->as_integer() ? *reply->as_integer() : -1;
    if (sent.what != What::kMark) saw_length(sent.actor, sent.place);
  }
  end(id, reply ? nullptr : &reply.error());
}

void AccountNotes::answered(std::int64_t id, const Result<void>& taken) {
  end(id, taken ? nullptr : &taken.error());
}

void AccountNotes::committed(std::int64_t id) {
  // Deposits are the same message as their transfer, further on.
  if (id < 0) return;
  Sent& sent = sent_[static_cast<std::size_t>(id) - 1];
  if (++sent.commits > 1) wrong(sent.actor, text(id) + " was told twice that it has committed");
}

std::int64_t AccountNotes::length_known(const std::string& actor) const {
  auto known = lengths_.find(actor);
  return known == lengths_.end() ? 0 : known->second;
}

void AccountNotes::saw_length(const std::string& actor, std::int64_t length) {
  std::int64_t& known = lengths_[actor];
  known = std::max(known, length);
}

void AccountNotes::wrong(const std::string& actor, const std::string& what) {
  world_.violation("account " + actor + ": " + what);
}

// Looking at the end.

void AccountNotes::check(Store& store) {
  Found found;
  auto result = store.read([&](Reader& reader) {
    found = {};
    read(reader, found);
  });
  if (!result) return world_.violation("the accounts cannot be read: " + to_string(result.error()));
  std::map<std::int64_t, int> in_logs;
  for (const auto& [actor, state] : found.states) {
    check_state(actor, state);
    check_order(actor, state.log);
    for (std::int64_t id : state.log) ++in_logs[id];
  }
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    auto id = static_cast<std::int64_t>(i + 1);
    if (sent_[i].what != What::kMark) check_sent(id, sent_[i], found, in_logs[id]);
  }
  if (killed_) return;
  check_places(found);
  check_money(found);
}

void AccountNotes::read(Reader& reader, Found& found) {
  SystemAccess access(reader);
  for (const std::string& name : actors_) {
    ActorId actor = id_of(name);
    auto info = actor::inspect(reader, actor);
    if (!info) continue;
    if (info->state) {
      auto state = from_value<Account::State>(*info->state);
      if (state)
        found.states.emplace(name, std::move(*state));
      else
        wrong(name, "its state cannot be read: " + state.error().message);
    }
    read_mailbox(reader, actor, found);
    for (const DeadLetter& letter : actor::dead_letters(reader, actor, 100'000)) {
      ++found.dead[id_in(letter.message)];
      check_dead(name, letter, id_in(letter.message));
    }
    check_ready(reader, actor, [&](const std::string& what) { wrong(name, what); });
  }
  for (const Row& row : reader.get_range(tuple::extensions(actor::due_prefix()))) {
    auto delayed = actor::decode_delayed(row.value);
    if (delayed) ++found.waiting[id_in(Value::decode(delayed->body).value_or(Value()))];
  }
  for (const Row& row : reader.get_range(prefix_range("sent/"))) found.rows.insert(std::stoll(row.key.substr(5)));
}

void AccountNotes::read_mailbox(Reader& reader, const ActorId& actor, Found& found) {
  Bytes prefix = actor::prefix_of(actor);
  Bytes mailbox = actor::mailbox_key(prefix);
  auto rows = reader.get_range(tuple::extensions(mailbox));
  for (const Row& row : rows) {
    auto item = actor::decode_item(mailbox, row);
    if (!item) return wrong(actor.id, "a message cannot be read");
    ++found.waiting[id_in(Value::decode(item->message.body).value_or(Value()))];
  }
  std::int64_t counted =
      decode_counter(reader.get(actor::pushes_key(prefix))) - decode_counter(reader.get(actor::pops_key(prefix)));
  if (counted != static_cast<std::int64_t>(rows.size()))
    wrong(actor.id, "the mailbox has " + std::to_string(rows.size()) + " messages, and is said to have " +
                        std::to_string(counted));
}

void AccountNotes::check_ready(Reader& reader, const ActorId& actor, const std::function<void(std::string)>& wrong) {
  SystemAccess access(reader);
  Bytes prefix = actor::prefix_of(actor);
  if (reader.get_range(tuple::extensions(actor::mailbox_key(prefix)), {.limit = 1}).empty()) return;
  if (!reader.get(actor::ready_key(actor))) wrong("has messages, and nobody can know that");
}

void AccountNotes::check_dead(const std::string& actor, const DeadLetter& letter, std::int64_t id) {
  if (id <= 0) return;
  const Sent& sent = sent_[static_cast<std::size_t>(id) - 1];
  bool no_room = sent.what == What::kTransfer && letter.error.contains("the mailbox of");
  if (sent.what != What::kPoison && !no_room)
    wrong(actor, text(id) + " is no poison, and became a dead letter: " + letter.error);
}

void AccountNotes::check_state(const std::string& actor, const Account::State& state) {
  std::int64_t sum = 0, balance = 0;
  std::set<std::int64_t> seen;
  for (std::int64_t id : state.log) {
    sum += id;
    if (!seen.insert(id).second) wrong(actor, text(id) + " was consumed twice");
    auto number = static_cast<std::size_t>(std::abs(id));
    if (number == 0 || number > sent_.size()) {
      wrong(actor, text(id) + " was consumed, and never sent");
      continue;
    }
    const Sent& sent = sent_[number - 1];
    if ((id > 0 ? sent.actor : sent.to) != actor) wrong(actor, text(id) + " was for another");
    balance += id > 0 ? -sent.amount : sent.amount;
  }
  if (sum != state.sum || balance != state.balance) wrong(actor, "its state is not what its messages make of it");
  for (const auto& [id, one] : state.ended)
    if (state.lost.contains(id)) wrong(actor, text(std::stoll(id)) + " ended under a lock that it had lost");
}

void AccountNotes::check_order(const std::string& actor, const std::vector<std::int64_t>& log) {
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (log[i] <= 0) continue;
    const Sent& sent = sent_[static_cast<std::size_t>(log[i]) - 1];
    if (sent.what == What::kDelayed) continue;
    if (sent.ending == Ending::kOk && sent.answered_at < newest)
      wrong(actor, text(log[i]) + " was taken before another was sent that it comes after");
    newest = std::max(newest, sent.sent_at);
    if (sent.group == 0 || sent.group == log[i]) continue;
    // A reset empties the log, and leaves the mailbox as it is.
    if (i == 0 && killed_) continue;
    if (i == 0 || log[i - 1] != log[i] - 1)
      wrong(actor, text(log[i]) + " does not follow the one it was sent with, but " +
                       (i == 0 ? "is the first" : text(log[i - 1])));
  }
}

void AccountNotes::check_sent(std::int64_t id, const Sent& sent, const Found& found, int in_log) {
  auto count = [&](const std::map<std::int64_t, int>& places) {
    auto there = places.find(id);
    return there == places.end() ? 0 : there->second;
  };
  int waiting = count(found.waiting), dead = count(found.dead), times = in_log + waiting + dead;
  if (sent.what == What::kPoison && in_log > 0) wrong(sent.actor, text(id) + " always fails, and took effect");
  if (times > 1)
    wrong(sent.actor, text(id) + " is there " + std::to_string(times) + " times: " + std::to_string(in_log) +
                          " consumed, " + std::to_string(waiting) + " waiting, " + std::to_string(dead) + " dead");
  if (sent.ending == Ending::kFail && in_log + waiting > 0 && sent.what != What::kSlow)
    wrong(sent.actor, text(id) + " failed, and took effect");
  if (killed_) return;
  if (sent.ending == Ending::kOk && times == 0) wrong(sent.actor, text(id) + " was acknowledged, and is lost");
  bool row = found.rows.contains(id), stopped = sent.with == Sent::With::kCallInTransaction && times == 0;
  if (sent.with != Sent::With::kNothing && row != (times == 1) && !stopped)
    wrong(sent.actor, text(id) + " and what was written with it are not both there");
  if (sent.commits > 0 && in_log == 0) wrong(sent.actor, text(id) + " was told that it has committed, and has not");
}

/// Replies, as the states say.
void AccountNotes::check_places(const Found& found) {
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    const Sent& sent = sent_[i];
    auto id = static_cast<std::int64_t>(i + 1);
    auto state = found.states.find(sent.actor);
    bool ended = state != found.states.end() && state->second.ended.contains(std::to_string(id));
    if (sent.what == What::kSlow && sent.ending == Ending::kFail && ended)
      wrong(sent.actor, text(id) + " failed, and ended under the lock");
    if (sent.ending != Ending::kOk || sent.place == 0 || state == found.states.end()) continue;
    if (sent.what == What::kMark) {
      if (!state->second.marks.contains(std::to_string(id))) wrong(sent.actor, text(id) + " left a mark that is lost");
      continue;
    }
    if (sent.what == What::kSlow && !ended) wrong(sent.actor, text(id) + " was replied to, and did not end");
    auto place = static_cast<std::size_t>(sent.place);
    if (place > state->second.log.size() || state->second.log[place - 1] != id)
      wrong(sent.actor, text(id) + " was told a place in the log that is not its own");
  }
}

/// What was sent has arrived, or is on its way.
void AccountNotes::check_money(const Found& found) {
  for (const auto& [actor, state] : found.states) {
    for (std::int64_t id : state.log) {
      if (id <= 0) continue;
      const Sent& sent = sent_[static_cast<std::size_t>(id) - 1];
      if (sent.what != What::kTransfer) continue;
      auto to = found.states.find(sent.to);
      auto arrived = to == found.states.end() ? 0 : std::ranges::count(to->second.log, -id);
      auto on_its_way = found.waiting.find(-id);
      auto all = arrived + (on_its_way == found.waiting.end() ? 0 : on_its_way->second);
      if (all != 1) wrong(actor, "what it sent by " + text(id) + " is there " + std::to_string(all) + " times");
    }
  }
}

}  // namespace perdure::sim::accounts
