// The beginning and the end of a leadership over NATS: the connection and the bucket.
#include "session/nats/nats_leadership.h"

namespace perdure {
namespace {

std::string in_seconds(Duration duration) {
  return std::to_string(std::chrono::duration<double>(duration).count()) + " s";
}

std::string hex(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) text[i] = "0123456789abcdef"[number & 15];
  return text;
}

}  // namespace

Result<std::shared_ptr<Leadership>> nats_leadership(Store& store, NatsOptions options) {
  if (auto good = nats::check_options(options); !good) return std::unexpected(std::move(good.error()));
  auto use = StoreAccess::impl(store).use();
  if (!use) return std::unexpected(std::move(use.error()));
  if (StoreAccess::impl(store).must_not_block())
    return fail(ErrorCode::kInvalidArgument,
                "nats_leadership was called in a callback of the store, on a store that the host polls or in a "
                "simulation, and would hold it up");
  Scheduler& scheduler = StoreAccess::impl(store).scheduler();
  if (options.instance_id.empty()) options.instance_id = hex(scheduler.random()) + hex(scheduler.random());
  auto impl = std::make_shared<NatsLeadership>(store, std::move(options));
  if (auto opened = impl->open(); !opened) {
    impl->close();
    return std::unexpected(std::move(opened.error()));
  }
  NatsLeadership* raw = impl.get();
  return std::shared_ptr<Leadership>(raw, [impl = std::move(impl)](Leadership*) { impl->close(); });
}

Result<void> NatsLeadership::open() {
  // Called on threads of libnats: they only hand it over.
  auto posted = [weak = weak_from_this()](auto then) {
    auto self = weak.lock();
    if (!self) return;
    if (auto use = self->enter())
      self->scheduler().post(self->guarded([self = self.get(), then = std::move(then)]() mutable { then(*self); }));
  };
  nats::Listener listener{
      .replied =
          [posted](nats::Message message) {
            posted([message = std::move(message)](NatsLeadership& self) mutable { self.replied(std::move(message)); });
          },
      .delivered =
          [posted](std::uint64_t number, nats::Message message) {
            posted([number, message = std::move(message)](NatsLeadership& self) { self.delivered(number, message); });
          },
      .lost = [posted] { posted([](NatsLeadership& self) { self.lost(); }); },
      .restored = [posted] { posted([](NatsLeadership& self) { self.restored(); }); }};
  auto link = nats::Link::connect(options_.url, "perdure " + options_.instance_id, options_.connect_timeout,
                                  std::move(listener));
  if (!link) return std::unexpected(std::move(link.error()));
  {
    MutexLock lock(mutex_);
    link_ = std::move(*link);
  }
  if (auto bucket = open_bucket(); !bucket) return bucket;
  consume();
  return {};
}

Result<nats::Message> NatsLeadership::ask_at_start(const std::string& subject, const std::string& data) {
  MutexLock lock(mutex_);
  auto answer = link_->request(subject, data, options_.connect_timeout);
  if (answer && answer->status.starts_with("503"))
    return fail(ErrorCode::kUnavailable, "the server at '" + options_.url +
                                             "' (the setting url) has no JetStream; start it with -js, or allow it to "
                                             "this account");
  return answer;
}

Result<void> NatsLeadership::open_bucket() {
  std::string name = "the bucket '" + options_.bucket + "' (the setting bucket)";
  // Another may make it at the same moment, and then it is looked at once more.
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto answer = ask_at_start(api("STREAM.INFO"), "");
    if (!answer) return std::unexpected(std::move(answer.error()));
    auto error = nats::error_of(answer->data);
    if (error && error->code == nats::kStreamNotFound) {
      answer = ask_at_start(api("STREAM.CREATE"), nats::create_stream(options_));
      if (!answer) return std::unexpected(std::move(answer.error()));
      error = nats::error_of(answer->data);
      if (error && error->code == nats::kStreamNameInUse) continue;
    }
    if (error && (error->code == nats::kNoJetStream || error->code == nats::kNoJetStreamForAccount))
      return fail(ErrorCode::kUnavailable,
                  "the server at '" + options_.url + "' (the setting url) has no JetStream: " + error->description);
    if (error) return fail(ErrorCode::kUnavailable, name + " cannot be used: " + error->description);
    auto bucket = nats::bucket_of(answer->data);
    if (!bucket || !bucket->rollup)
      return fail(ErrorCode::kInvalidArgument, name + " is a stream, but not a key-value bucket; name another");
    if (bucket->max_age != options_.max_age)
      return fail(ErrorCode::kInvalidArgument, name + " has a max_age of " + in_seconds(bucket->max_age) +
                                                   ", and not " + in_seconds(options_.max_age) +
                                                   "; use the same max_age everywhere, or another bucket");
    return {};
  }
  return fail(ErrorCode::kUnavailable, name + " is being made and deleted by others");
}

void NatsLeadership::close() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block();
  gate_.close();
  std::unique_ptr<nats::Link> link;
  std::map<std::uint64_t, Request> requests;
  std::map<std::string, Watched> watched;
  {
    MutexLock lock(mutex_);
    link.swap(link_);
    requests.swap(requests_);
    watched.swap(watched_);
  }
  link.reset();
  if (may_wait) gate_.wait_until_empty();
}

}  // namespace perdure
