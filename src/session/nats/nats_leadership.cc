#include "session/nats/nats_leadership.h"

#include <algorithm>
#include <charconv>

#include "store/report.h"

namespace perdure {
namespace {

/// The server looks for what has aged out now and then, and not at the very moment.
constexpr Duration kAgeSlack = std::chrono::milliseconds(50);
constexpr Duration kAgeAgain = std::chrono::milliseconds(100);
constexpr Duration kRetryMin = std::chrono::milliseconds(200);
constexpr unsigned kRetryDoublings = 4;

constexpr const char* kExpected = "Nats-Expected-Last-Subject-Sequence";

Error refused(const nats::ApiError& error, const std::string& what) {
  bool stale = error.code == nats::kWrongLastSequence;
  return {stale ? ErrorCode::kStaleToken : ErrorCode::kUnavailable, what + ": " + error.description};
}

}  // namespace

NatsLeadership::NatsLeadership(Store& store, NatsOptions options)
    : StorePart(store, "the leaderships of this process"),
      options_(std::move(options)),
      heartbeat_(std::clamp(options_.max_age / 4, Duration(std::chrono::milliseconds(100)),
                            Duration(std::chrono::seconds(5)))),
      patience_(options_.max_age / 2) {}

void NatsLeadership::say(LogLevel level, std::string_view what, const std::string& why) {
  log(StoreAccess::impl(store_).options(), level, "nats", what, {{"bucket", options_.bucket}, {"why", why}});
}

// Requests.

void NatsLeadership::request(const std::string& subject, const nats::Headers& headers, const std::string& data,
                             Answered answered) {
  Result<void> sent = fail(ErrorCode::kClosed, "the leadership is closed");
  {
    MutexLock lock(mutex_);
    if (link_) {
      std::uint64_t number = ++last_request_;
      sent = link_->publish(subject, link_->reply_subject(number), headers, data);
      if (sent) {
        auto late = [this, number] { answer(number, fail(ErrorCode::kUnavailable, "NATS did not answer in time")); };
        requests_[number] = {std::move(answered), at(scheduler_.now() + patience_, late)};
      }
    }
  }
  if (!sent) answered(std::unexpected(std::move(sent.error())));
}

void NatsLeadership::answer(std::uint64_t number, Result<nats::Message> result) {
  Request request;
  {
    MutexLock lock(mutex_);
    auto found = requests_.find(number);
    if (found == requests_.end()) return;
    request = std::move(found->second);
    requests_.erase(found);
  }
  scheduler_.cancel(request.timer);
  request.answered(std::move(result));
}

void NatsLeadership::replied(nats::Message message) {
  std::string_view text(message.subject);
  text.remove_prefix(std::min(text.size(), text.rfind('.') + 1));
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (!message.status.empty())
    return answer(number, fail(ErrorCode::kUnavailable, "NATS has nobody who answers: " + message.status));
  answer(number, std::move(message));
}

void NatsLeadership::write(const std::string& key, std::uint64_t expected, nats::Headers headers,
                           const std::string& value, Done<std::uint64_t> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  headers.emplace_back(kExpected, std::to_string(expected));
  request(subject_of(key), headers, value, [key, done = std::move(done)](Result<nats::Message> answer) mutable {
    if (!answer) return done(std::unexpected(std::move(answer.error())));
    if (auto error = nats::error_of(answer->data))
      return done(std::unexpected(refused(*error, "the key '" + key + "' was not written")));
    auto sequence = nats::sequence_of(answer->data);
    if (!sequence) return done(fail(ErrorCode::kUnavailable, "NATS answered a write without its revision"));
    done(*sequence);
  });
}

void NatsLeadership::read(const std::string& key, Done<std::optional<nats::Entry>> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  request(api("STREAM.MSG.GET"), {}, nats::last_message_of(subject_of(key)),
          [key, done = std::move(done)](Result<nats::Message> answer) mutable {
            if (!answer) return done(std::unexpected(std::move(answer.error())));
            if (auto error = nats::error_of(answer->data)) {
              if (error->code == nats::kNoMessage) return done(std::nullopt);
              return done(std::unexpected(refused(*error, "the key '" + key + "' was not read")));
            }
            auto entry = nats::entry_of(answer->data);
            if (!entry) return done(fail(ErrorCode::kUnavailable, "NATS answered a look with what cannot be read"));
            done(std::move(*entry));
          });
}

// Owning.

void NatsLeadership::acquire(const std::string& key, Done<std::uint64_t> done) {
  std::string value = nats::value_of(options_.instance_id, LeaderStatus::kWaiting);
  write(key, 0, {}, value, [this, key, value, done = std::move(done)](Result<std::uint64_t> created) mutable {
    if (created || created.error().code != ErrorCode::kStaleToken) return done(std::move(created));
    // There is something: perhaps only the mark that a purge left.
    read(key, [this, key, value, done = std::move(done)](Result<std::optional<nats::Entry>> entry) mutable {
      if (!entry) return done(std::unexpected(std::move(entry.error())));
      if (*entry && !(*entry)->marker)
        return done(fail(ErrorCode::kConflict,
                         "the key '" + key + "' is owned by " + nats::parse_value((*entry)->value).instance_id));
      std::uint64_t expected = *entry ? (*entry)->revision : 0;
      write(key, expected, {}, value, [done = std::move(done)](Result<std::uint64_t> second) mutable {
        if (!second && second.error().code == ErrorCode::kStaleToken) second.error().code = ErrorCode::kConflict;
        done(std::move(second));
      });
    });
  });
}

void NatsLeadership::update(const std::string& key, std::uint64_t revision, LeaderStatus status,
                            Done<std::uint64_t> done) {
  write(key, revision, {}, nats::value_of(options_.instance_id, status), std::move(done));
}

void NatsLeadership::release(const std::string& key, std::uint64_t revision, Done<void> done) {
  write(key, revision, {{"KV-Operation", "PURGE"}, {"Nats-Rollup", "sub"}}, "",
        [done = std::move(done)](Result<std::uint64_t> purged) mutable {
          if (!purged) return done(std::unexpected(std::move(purged.error())));
          done({});
        });
}

void NatsLeadership::look(const std::string& key, Done<std::optional<LeadershipView>> done) {
  read(key, [this, key, done = std::move(done)](Result<std::optional<nats::Entry>> entry) mutable {
    if (!entry) return done(std::unexpected(std::move(entry.error())));
    if (!*entry || (*entry)->marker) return done(std::nullopt);
    saw(key, (*entry)->revision);
    nats::KeyValue value = nats::parse_value((*entry)->value);
    Duration age = std::max(Duration::zero(), scheduler_.wall_now() - (*entry)->written);
    done(LeadershipView{std::move(value.instance_id), (*entry)->revision, value.status, age});
  });
}

// Watching.

void NatsLeadership::watch(const std::string& key, Watcher watcher) {
  Watcher before;  // Dies outside of the lock.
  MutexLock lock(mutex_);
  Watched& watched = watched_[key];
  std::swap(before, watched.watcher);
  watched.watcher = std::move(watcher);
  if (watched.number == 0) watched.number = ++last_watched_;
  lock.unlock();
}

void NatsLeadership::unwatch(const std::string& key) {
  Watcher before;
  MutexLock lock(mutex_);
  auto found = watched_.find(key);
  if (found != watched_.end()) {
    std::swap(before, found->second.watcher);
    watched_.erase(found);
  }
  lock.unlock();
}

void NatsLeadership::tell(const std::string& key, const LeadershipEvent& event) {
  Watcher watcher;
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found != watched_.end()) watcher = found->second.watcher;
  }
  if (watcher) watcher(event);
}

void NatsLeadership::tell_all_unsure() {
  std::vector<Watcher> all;
  {
    MutexLock lock(mutex_);
    for (auto& [key, watched] : watched_) all.push_back(watched.watcher);
  }
  for (Watcher& watcher : all) watcher({LeadershipEvent::What::kUnsure, 0, {}});
}

void NatsLeadership::saw(const std::string& key, std::uint64_t revision) {
  bool first;
  std::uint64_t number;
  SteadyTime now = scheduler_.now();
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found == watched_.end() || revision <= found->second.revision) return;
    found->second.revision = revision;
    found->second.seen = now;
    first = !std::exchange(found->second.awaited, true);
    number = found->second.number;
  }
  // Later writes move the moment, and the timer finds that when it comes.
  if (first) await_age(key, number, now + options_.max_age + kAgeSlack);
}

void NatsLeadership::await_age(const std::string& key, std::uint64_t number, SteadyTime when) {
  at(when, [this, key, number] { check_age(key, number); });
}

void NatsLeadership::check_age(const std::string& key, std::uint64_t number) {
  std::optional<SteadyTime> due;
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found == watched_.end() || found->second.number != number) return;
    if (found->second.seen) due = *found->second.seen + options_.max_age + kAgeSlack;
    found->second.awaited = due.has_value();
  }
  if (!due) return;
  if (*due > scheduler_.now()) return await_age(key, number, *due);
  read(key, [this, key, number](Result<std::optional<nats::Entry>> entry) { checked_age(key, number, entry); });
}

void NatsLeadership::checked_age(const std::string& key, std::uint64_t number,
                                 const Result<std::optional<nats::Entry>>& entry) {
  bool gone = entry && (!*entry || (*entry)->marker);
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(key);
    if (found == watched_.end() || found->second.number != number) return;
    if (gone) {
      found->second.seen.reset();
      found->second.awaited = false;
    } else if (entry && (*entry)->revision != found->second.revision) {
      // Smaller ones as well: somebody may have made the bucket anew.
      found->second.revision = (*entry)->revision;
      found->second.seen = scheduler_.now();
    }
  }
  if (gone) return tell(key, {LeadershipEvent::What::kGone, 0, {}});
  // A server that cannot be reached is told of when it can.
  await_age(key, number, scheduler_.now() + (entry ? kAgeAgain : heartbeat_));
}

// The consumer.

void NatsLeadership::consume() {
  Result<std::string> subject = fail(ErrorCode::kClosed, "the leadership is closed");
  std::uint64_t number;
  {
    MutexLock lock(mutex_);
    number = ++consumer_;
    delivered_ = 0;
    heard_ = scheduler_.now();
    if (link_) subject = link_->deliver_to(number);
  }
  if (!subject) return consume_later();
  request(api("CONSUMER.CREATE"), {}, nats::create_consumer(options_, *subject, heartbeat_),
          [this, number](Result<nats::Message> answer) {
            std::optional<nats::ApiError> error;
            if (answer) error = nats::error_of(answer->data);
            if (!answer || error) {
              say(LogLevel::kWarning, "changes of keys are not told just now",
                  answer ? error->description : to_string(answer.error()));
              return consume_later();
            }
            {
              MutexLock lock(mutex_);
              failures_ = 0;
            }
            check_heartbeat(number);
            tell_all_unsure();
          });
}

void NatsLeadership::consume_later() {
  Duration pause;
  std::uint64_t number;
  {
    MutexLock lock(mutex_);
    if (!link_) return;
    number = consumer_;
    pause = kRetryMin * (1 << std::min(failures_++, kRetryDoublings));
  }
  at(scheduler_.now() + pause, [this, number] {
    {
      MutexLock lock(mutex_);
      if (number != consumer_) return;
    }
    consume();
  });
}

void NatsLeadership::check_heartbeat(std::uint64_t consumer) {
  SteadyTime now = scheduler_.now(), due;
  {
    MutexLock lock(mutex_);
    if (consumer != consumer_ || !link_) return;
    due = heard_ + 3 * heartbeat_;
  }
  if (due > now) {
    at(due, [this, consumer] { check_heartbeat(consumer); });
    return;
  }
  say(LogLevel::kWarning, "nothing was heard of the bucket for too long: it is followed anew");
  consume();
}

void NatsLeadership::delivered(std::uint64_t consumer, const nats::Message& message) {
  auto delivery = nats::delivery_of(message.reply);
  std::string prefix = subject_of("");
  bool missed = false;
  {
    MutexLock lock(mutex_);
    if (consumer != consumer_) return;
    heard_ = scheduler_.now();
    if (!delivery || !message.subject.starts_with(prefix)) return;
    missed = delivery->consumer_sequence != ++delivered_;
  }
  if (missed) return consume();
  std::string key = message.subject.substr(prefix.size());
  using What = LeadershipEvent::What;
  if (nats::is_marker(message.operation)) {
    {
      MutexLock lock(mutex_);
      if (auto found = watched_.find(key); found != watched_.end()) {
        found->second.revision = std::max(found->second.revision, delivery->stream_sequence);
        found->second.seen.reset();
      }
    }
    return tell(key, {What::kGone, delivery->stream_sequence, {}});
  }
  saw(key, delivery->stream_sequence);
  tell(key, {What::kChanged, delivery->stream_sequence, nats::parse_value(message.data).instance_id});
}

void NatsLeadership::lost() {
  say(LogLevel::kWarning, "the connection to NATS is lost, and waited for");
  std::map<std::uint64_t, Request> requests;
  {
    MutexLock lock(mutex_);
    requests.swap(requests_);
  }
  for (auto& [number, request] : requests) {
    scheduler_.cancel(request.timer);
    request.answered(fail(ErrorCode::kUnavailable, "the connection to NATS was lost"));
  }
}

void NatsLeadership::restored() {
  say(LogLevel::kInfo, "the connection to NATS is back");
  consume();
}

}  // namespace perdure
