#include "schedule/table.h"

#include <algorithm>
#include <utility>

#include "queue/emit.h"
#include "schedule/tick.h"
#include "session/rows.h"
#include "session/store_clock.h"
#include "store/change_notes.h"
#include "store/system_access.h"

namespace perdure::schedule {
namespace {

constexpr std::size_t kReasonBytesMax = 1'000;
constexpr Duration kJitterMax = std::chrono::hours(24);
constexpr std::size_t kListedMax = 1'000;

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::unexpected<Error> not_found(std::string_view space, std::string_view name) {
  return fail(ErrorCode::kNotFound,
              "there is no schedule " + std::string(name) + " in the space " + std::string(space));
}

std::string without_blanks_around(std::string_view text) {
  std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  std::size_t end = text.find_last_not_of(" \t") + 1;
  return std::string(text.substr(begin, std::max(begin, end) - begin));
}

bool same_timing(const ScheduleSpec& one, const ScheduleSpec& other) {
  return one.every == other.every && one.cron == other.cron && one.timezone == other.timezone;
}

void note(Transaction& txn, std::string_view space, std::string_view name, ChangeState state, WallTime now) {
  SystemAccess(txn).note(
      {.type = ChangeType::kSchedule, .state = state, .space = space, .name = name, .id = {}, .at = now});
}

/// Writes a change, and tells those who follow the timetable if it has changed. That was reckoned from `now`: nobody
/// goes by an earlier time from then on, so that what is due now is so by every clock.
void change(Transaction& txn, std::string_view space, std::string_view name, const std::optional<ScheduleRow>& before,
            const ScheduleRow& after, ChangeState state, WallTime now) {
  note(txn, space, name, state, now);
  write_schedule(txn, space, name, before, after);
  if (!after.next || (before && before->next == after.next)) return;
  txn.add(timetable_bell(), 1);
  StoreClock::advance(txn, now);
}

}  // namespace

Result<void> check_names(std::string_view space, std::string_view name) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  return session::check_short_name(name, "the schedule");
}

Result<ScheduleSpec> check_spec(ScheduleSpec spec, Zones& zones) {
  auto pass_on = [](auto& failed) { return std::unexpected(std::move(failed.error())); };
  if (spec.every.empty() == spec.cron.empty())
    return wrong("a schedule has either an interval (every) or a cron expression (cron)");
  if (!spec.every.empty()) {
    auto interval = Interval::parse(spec.every);
    if (!interval) return pass_on(interval);
    spec.every = interval->name();
  } else {
    spec.cron = without_blanks_around(spec.cron);
    if (auto cron = Cron::parse(spec.cron); !cron) return pass_on(cron);
  }
  if (auto zone = zones.find(spec.timezone); !zone) return pass_on(zone);
  if (auto good = queue::check_worker(spec.worker); !good) return pass_on(good);
  if (auto good = spec.value.check("the value"); !good) return pass_on(good);
  if (std::size_t size = spec.value.encoded_size(); size > kScheduleValueBytesMax)
    return fail(ErrorCode::kTooLarge, "the value of the schedule has " + std::to_string(size) +
                                          " bytes when encoded; at most " + std::to_string(kScheduleValueBytesMax) +
                                          " are allowed");
  if (spec.jitter < Duration::zero() || spec.jitter > kJitterMax)
    return wrong("the jitter of a schedule must be from nothing to 24 hours");
  return spec;
}

Result<void> check_pause(const PauseOptions& why) {
  for (const std::string* text : {&why.by, &why.reason}) {
    if (auto good = tuple::check_text(*text, "the reason of a pause"); !good) return good;
    if (text->size() > kReasonBytesMax) return wrong("the reason of a pause has at most 1000 bytes");
  }
  return {};
}

Result<ScheduleInfo> set(Transaction& txn, std::string_view space, std::string_view name, const ScheduleSpec& spec,
                         Zones& zones, WallTime now) {
  auto before = read_schedule(txn, space, name);
  ScheduleRow after = before.value_or(ScheduleRow{});
  after.spec = spec;
  if (!before) after.created = now;
  if (!before || !same_timing(before->spec, spec)) {
    // Nominal times are whole milliseconds.
    after.first = std::chrono::floor<std::chrono::milliseconds>(now);
    if (!spec.every.empty() && after.last)
      after.first = std::max(after.first, *after.last + Interval::parse(spec.every)->every());
    auto timing = timing_of(after, zones);
    if (!timing) return std::unexpected(std::move(timing.error()));
    // The first of an interval is now, if it is not later.
    if (!after.paused) after.next = timing->next(spec.every.empty() ? now : after.first - Duration(1));
  }
  change(txn, space, name, before, after, ChangeState::kSet, now);
  return after.info(space, name);
}

Result<void> remove(Transaction& txn, std::string_view space, std::string_view name, WallTime now) {
  auto row = read_schedule(txn, space, name);
  if (!row) return not_found(space, name);
  if (row->next) txn.clear(tick_key(*row->next, space, name));
  txn.clear(schedule_key(space, name));
  note(txn, space, name, ChangeState::kRemoved, now);
  return {};
}

Result<void> pause(Transaction& txn, std::string_view space, std::string_view name, const PauseOptions& why,
                   WallTime now) {
  auto before = read_schedule(txn, space, name);
  if (!before) return not_found(space, name);
  if (before->paused) return {};
  ScheduleRow after = *before;
  after.paused = SchedulePause{why.by, why.reason, now};
  after.next.reset();
  change(txn, space, name, before, after, ChangeState::kPaused, now);
  return {};
}

Result<void> unpause(Transaction& txn, std::string_view space, std::string_view name, Zones& zones, WallTime now) {
  auto before = read_schedule(txn, space, name);
  if (!before) return not_found(space, name);
  if (!before->paused) return {};
  auto timing = timing_of(*before, zones);
  if (!timing) return std::unexpected(std::move(timing.error()));
  ScheduleRow after = *before;
  after.paused.reset();
  after.next = timing->next(now);
  change(txn, space, name, before, after, ChangeState::kUnpaused, now);
  return {};
}

Result<Emitted> run(Transaction& txn, std::string_view space, std::string_view name, const Uuid& id, WallTime now) {
  auto row = read_schedule(txn, space, name);
  if (!row) return not_found(space, name);
  note_fired(txn, space, name, 1, now);
  return emit_event(txn, space, name, row->spec, std::nullopt, id, now);
}

Result<ScheduleInfo> get(Reader& reader, std::string_view space, std::string_view name) {
  auto row = read_schedule(reader, space, name);
  if (!row) return not_found(space, name);
  return row->info(space, name);
}

Result<std::vector<ScheduleInfo>> list(Reader& reader, std::string_view space, const PageOptions& page) {
  Bytes prefix = schedule_prefix(space);
  KeyRange range = tuple::extensions(prefix);
  if (!page.after.empty()) {
    if (auto good = tuple::check_text(page.after, "the name to go on after"); !good)
      return std::unexpected(std::move(good.error()));
    range.begin = tuple::extensions(tuple::pack_onto(prefix, page.after)).end;
  }
  std::vector<ScheduleInfo> out;
  for (const Row& row : reader.get_range(range, {.limit = std::min(page.limit, kListedMax)})) {
    auto parts = tuple::unpack_after<std::string>(prefix, row.key);
    auto decoded = ScheduleRow::decode(row.value);
    if (!decoded) return std::unexpected(std::move(decoded.error()));
    if (parts) out.push_back(decoded->info(space, std::get<0>(*parts)));
  }
  return out;
}

}  // namespace perdure::schedule
