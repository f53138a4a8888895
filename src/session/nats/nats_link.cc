#include "session/nats/nats_link.h"

#include <nats/nats.h>

#include <algorithm>

namespace perdure::nats {
namespace {

constexpr std::int64_t kReconnectMinMs = 100, kReconnectMaxMs = 5000, kPingMs = 2000;

struct Destroy {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
  void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
  void operator()(natsInbox* inbox) const { natsInbox_Destroy(inbox); }
};
template <class T>
using Owned = std::unique_ptr<T, Destroy>;

/// What libnats hands back to a callback. It is freed by the last callback that can come, which may be after the link
/// is gone: that of a subscription that has completed, or of a connection that is closed.
struct Closure {
  std::shared_ptr<const Listener> listener;
  std::uint64_t number = 0;
};

std::string text(const char* from) {
  return from ? from : "";
}

std::string header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK ? text(value) : "";
}

Message copied(natsMsg* message) {
  return {text(natsMsg_GetSubject(message)), text(natsMsg_GetReply(message)),
          std::string(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))),
          header(message, "Status"), header(message, "KV-Operation")};
}

void on_reply(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  Owned<natsMsg> owned(message);
  static_cast<Closure*>(closure)->listener->replied(copied(message));
}

void on_delivery(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  Owned<natsMsg> owned(message);
  auto* to = static_cast<Closure*>(closure);
  to->listener->delivered(to->number, copied(message));
}

void free_closure(void* closure) {
  delete static_cast<Closure*>(closure);
}

void on_lost(natsConnection*, void* closure) {
  static_cast<Closure*>(closure)->listener->lost();
}

void on_restored(natsConnection*, void* closure) {
  static_cast<Closure*>(closure)->listener->restored();
}

void on_closed(natsConnection*, void* closure) {
  free_closure(closure);
}

/// Otherwise libnats prints: what matters of it is known by other ways.
void on_error(natsConnection*, natsSubscription*, natsStatus, void*) {}

std::int64_t reconnect_delay(natsConnection*, int attempts, void*) {
  return std::min(kReconnectMaxMs, kReconnectMinMs << std::min(attempts, 10));
}

Error problem(natsStatus status, const std::string& what) {
  const char* words = nats_GetLastError(nullptr);
  std::string why = words && *words ? words : natsStatus_GetText(status);
  bool denied = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
  bool invalid = status == NATS_INVALID_ARG || status == NATS_ADDRESS_MISSING;
  return {denied    ? ErrorCode::kPermissionDenied
          : invalid ? ErrorCode::kInvalidArgument
                    : ErrorCode::kUnavailable,
          what + ": " + why};
}

std::int64_t in_ms(Duration duration) {
  return std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

struct Link::Handles {
  // Subscriptions go before their connection.
  Owned<natsConnection> connection;
  Owned<natsSubscription> replies;
  Owned<natsSubscription> deliveries;

  natsStatus subscribe(Owned<natsSubscription>& place, const std::string& subject, natsMsgHandler handler,
                       std::unique_ptr<Closure> closure) {
    natsSubscription* made = nullptr;
    natsStatus status = natsConnection_Subscribe(&made, connection.get(), subject.c_str(), handler, closure.get());
    if (status != NATS_OK) return status;
    // From here on libnats frees it.
    natsSubscription_SetOnCompleteCB(made, free_closure, closure.release());
    place.reset(made);
    return NATS_OK;
  }
};

Link::Link(std::shared_ptr<const Listener> listener, std::unique_ptr<Handles> handles)
    : listener_(std::move(listener)), handles_(std::move(handles)) {}

Link::~Link() {
  natsConnection_Close(handles_->connection.get());
}

Result<std::unique_ptr<Link>> Link::connect(const std::string& url, const std::string& name, Duration timeout,
                                            Listener listener) {
  auto shared = std::make_shared<const Listener>(std::move(listener));
  natsOptions* made = nullptr;
  if (natsStatus status = natsOptions_Create(&made); status != NATS_OK)
    return std::unexpected(problem(status, "NATS cannot be used"));
  Owned<natsOptions> options(made);
  std::vector<std::string> urls;
  for (std::size_t at = 0; at <= url.size();) {
    std::size_t comma = std::min(url.find(',', at), url.size());
    urls.push_back(url.substr(at, comma - at));
    at = comma + 1;
  }
  std::vector<const char*> servers;
  for (const std::string& each : urls) servers.push_back(each.c_str());
  auto closure = std::make_unique<Closure>(shared);
  natsStatus status = natsOptions_SetServers(made, servers.data(), static_cast<int>(servers.size()));
  if (status != NATS_OK) return std::unexpected(problem(status, "the url '" + url + "' of NATS cannot be used"));
  natsOptions_SetName(made, name.c_str());
  natsOptions_SetTimeout(made, in_ms(timeout));
  natsOptions_SetMaxReconnect(made, -1);
  natsOptions_SetCustomReconnectDelay(made, reconnect_delay, nullptr);
  natsOptions_SetPingInterval(made, kPingMs);
  natsOptions_SetMaxPingsOut(made, 2);
  natsOptions_SetErrorHandler(made, on_error, nullptr);
  natsOptions_SetDisconnectedCB(made, on_lost, closure.get());
  natsOptions_SetReconnectedCB(made, on_restored, closure.get());
  natsOptions_SetClosedCB(made, on_closed, closure.get());
  natsConnection* connection = nullptr;
  status = natsConnection_Connect(&connection, made);
  if (status != NATS_OK)
    return std::unexpected(problem(status, "NATS does not answer at '" + url + "' (the setting url)"));
  closure.release();  // NOLINT: on_closed frees it.
  auto handles = std::make_unique<Handles>();
  handles->connection.reset(connection);
  std::unique_ptr<Link> link(new Link(shared, std::move(handles)));
  natsInbox* inbox = nullptr;
  status = natsInbox_Create(&inbox);
  Owned<natsInbox> owned(inbox);
  if (status == NATS_OK) {
    link->inbox_ = inbox;
    status = link->handles_->subscribe(link->handles_->replies, link->inbox_ + ".*", on_reply,
                                       std::make_unique<Closure>(shared));
  }
  if (status != NATS_OK) return std::unexpected(problem(status, "NATS refuses a subscription"));
  return link;
}

Result<void> Link::publish(const std::string& subject, const std::string& reply, const Headers& headers,
                           const std::string& data) {
  // What is written while there is no connection would be sent when it is back, and be out of date.
  if (natsConnection_Status(handles_->connection.get()) != NATS_CONN_STATUS_CONNECTED)
    return fail(ErrorCode::kUnavailable, "there is no connection to NATS just now");
  natsMsg* made = nullptr;
  natsStatus status = natsMsg_Create(&made, subject.c_str(), reply.empty() ? nullptr : reply.c_str(), data.data(),
                                     static_cast<int>(data.size()));
  Owned<natsMsg> message(made);
  for (const auto& [name, value] : headers)
    if (status == NATS_OK) status = natsMsgHeader_Set(made, name.c_str(), value.c_str());
  if (status == NATS_OK) status = natsConnection_PublishMsg(handles_->connection.get(), made);
  if (status != NATS_OK) return std::unexpected(problem(status, "a message could not be sent to NATS"));
  return {};
}

Result<std::string> Link::deliver_to(std::uint64_t number) {
  std::string subject = inbox_ + ".d." + std::to_string(number);
  natsStatus status =
      handles_->subscribe(handles_->deliveries, subject, on_delivery, std::make_unique<Closure>(listener_, number));
  if (status != NATS_OK) return std::unexpected(problem(status, "NATS refuses a subscription"));
  return subject;
}

Result<Message> Link::request(const std::string& subject, const std::string& data, Duration timeout) {
  natsMsg* answer = nullptr;
  natsStatus status = natsConnection_Request(&answer, handles_->connection.get(), subject.c_str(), data.data(),
                                             static_cast<int>(data.size()), in_ms(timeout));
  Owned<natsMsg> owned(answer);
  if (status == NATS_NO_RESPONDERS)
    return Message{.subject = {}, .reply = {}, .data = {}, .status = "503", .operation = {}};
  if (status != NATS_OK) return std::unexpected(problem(status, "NATS does not answer"));
  return copied(answer);
}

}  // namespace perdure::nats
