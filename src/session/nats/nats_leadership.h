// Leadership over a bucket of NATS.
//
// Everything is asked for by a message with a reply subject, and answered by a message or a timer: nothing waits. One
// consumer tells of all keys of the bucket. The server does not tell that a key has aged out, so whoever watches one
// looks at it when it must have, by the steady clock of this process. After a connection is restored, or when nothing
// was heard for longer than the heartbeat of the consumer, that is made anew, and watchers are told to look.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "perdure/nats.h"
#include "runtime/mutex.h"
#include "session/nats/nats_link.h"
#include "session/nats/nats_protocol.h"
#include "store/store_part.h"

namespace perdure {

class NatsLeadership final : public Leadership, public StorePart<NatsLeadership> {
 public:
  NatsLeadership(Store& store, NatsOptions options);
  /// Blocks.
  Result<void> open();
  /// The last handle goes.
  void close();

  const std::string& instance_id() const override { return options_.instance_id; }
  Duration max_age() const override { return options_.max_age; }
  Renewal renewal() const override { return Renewal::kByOwner; }
  Result<void> check_key(std::string_view key) const override { return nats::check_key(key); }
  void acquire(const std::string& key, Done<std::uint64_t> done) override;
  void update(const std::string& key, std::uint64_t revision, LeaderStatus status, Done<std::uint64_t> done) override;
  void release(const std::string& key, std::uint64_t revision, Done<void> done) override;
  void watch(const std::string& key, Watcher watcher) override PERDURE_EXCLUDES(mutex_);
  void unwatch(const std::string& key) override PERDURE_EXCLUDES(mutex_);
  void look(const std::string& key, Done<std::optional<LeadershipView>> done) override;

 private:
  using Answered = std::move_only_function<void(Result<nats::Message>)>;
  struct Request {
    Answered answered;
    Executor::TimerId timer = 0;
  };
  struct Watched {
    Watcher watcher;
    /// When its last write was seen, and which; nothing while it is absent.
    std::optional<SteadyTime> seen = {};
    std::uint64_t revision = 0;
    /// A timer will look whether it has aged out.
    bool awaited = false;
    /// Timers of an earlier watch of the same key have another.
    std::uint64_t number = 0;
  };
  enum class Expects { kAbsent, kRevision };

  Result<void> open_bucket();
  Result<nats::Message> ask_at_start(const std::string& subject, const std::string& data);

  // Requests.
  void request(const std::string& subject, const nats::Headers& headers, const std::string& data, Answered answered)
      PERDURE_EXCLUDES(mutex_);
  void answer(std::uint64_t number, Result<nats::Message> result) PERDURE_EXCLUDES(mutex_);
  void replied(nats::Message message);
  void write(const std::string& key, std::uint64_t expected, nats::Headers headers, const std::string& value,
             Done<std::uint64_t> done);
  void read(const std::string& key, Done<std::optional<nats::Entry>> done);

  // The consumer.
  void consume() PERDURE_EXCLUDES(mutex_);
  void consume_later() PERDURE_EXCLUDES(mutex_);
  void delivered(std::uint64_t consumer, const nats::Message& message) PERDURE_EXCLUDES(mutex_);
  void check_heartbeat(std::uint64_t consumer) PERDURE_EXCLUDES(mutex_);
  void lost() PERDURE_EXCLUDES(mutex_);
  void restored();

  // Watching.
  void tell(const std::string& key, const LeadershipEvent& event) PERDURE_EXCLUDES(mutex_);
  void tell_all_unsure() PERDURE_EXCLUDES(mutex_);
  void saw(const std::string& key, std::uint64_t revision) PERDURE_EXCLUDES(mutex_);
  void await_age(const std::string& key, std::uint64_t number, SteadyTime when);
  void check_age(const std::string& key, std::uint64_t number) PERDURE_EXCLUDES(mutex_);
  void checked_age(const std::string& key, std::uint64_t number, const Result<std::optional<nats::Entry>>& entry)
      PERDURE_EXCLUDES(mutex_);

  std::string subject_of(const std::string& key) const { return "$KV." + options_.bucket + "." + key; }
  std::string api(const std::string& what) const { return "$JS.API." + what + ".KV_" + options_.bucket; }
  void say(LogLevel level, std::string_view what, const std::string& why = {});

  NatsOptions options_;
  const Duration heartbeat_;
  const Duration patience_;

  Mutex mutex_;
  /// Null before `open` and after `close`. Sending is quick, so it is done with the lock held.
  std::unique_ptr<nats::Link> link_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_request_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Request> requests_ PERDURE_GUARDED_BY(mutex_);
  std::map<std::string, Watched> watched_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_watched_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// The number of the consumer, of its last message, and when anything was heard of it.
  std::uint64_t consumer_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t delivered_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime heard_ PERDURE_GUARDED_BY(mutex_);
  unsigned failures_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
