// A store inside of a program that has its own loop: every callback runs in it, between the program's other events.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "perdure/manual_executor.h"
#include "perdure/store.h"

using namespace perdure;

namespace {

// [loop]
/// One turn: sleeps until the bell rings or something of perdure's is due, and runs what there is.
void turn(int loop, int bell, ManualExecutor& executor) {
  int timeout_ms = -1;
  if (auto due = executor.next_due())
    timeout_ms = static_cast<int>(std::min<std::int64_t>(*due / std::chrono::milliseconds(1) + 1, 60'000));
  epoll_event event;
  if (epoll_wait(loop, &event, 1, timeout_ms) > 0) {
    eventfd_t ignored;
    eventfd_read(bell, &ignored);  // A real program looks here which of its descriptors it was.
  }
  executor.poll();
}
// [loop]

// [log]
void print_record(const LogRecord& record) {
  std::fprintf(stderr, "%.*s: %.*s", static_cast<int>(record.component.size()), record.component.data(),
               static_cast<int>(record.message.size()), record.message.data());
  for (const LogField& field : record.fields)
    std::fprintf(stderr, " %.*s=%.*s", static_cast<int>(field.name.size()), field.name.data(),
                 static_cast<int>(field.value.size()), field.value.data());
  std::fputc('\n', stderr);
}
// [log]

}  // namespace

int main(int argc, char** argv) {
  // [open]
  int loop = epoll_create1(EPOLL_CLOEXEC), bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event readable = {.events = EPOLLIN, .data = {.fd = bell}};
  epoll_ctl(loop, EPOLL_CTL_ADD, bell, &readable);

  StoreOptions options;
  options.executor = std::make_shared<ManualExecutor>([bell] { eventfd_write(bell, 1); });
  options.log = print_record;
  options.when_failed = WhenFailed::kRefuseCalls;
  auto store = Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data", options);
  if (!store) return std::fprintf(stderr, "%s\n", to_string(store.error()).c_str()), 1;
  // [open]

  int left = 3;
  auto watch = store->transact([](Transaction& txn) { return txn.watch("visits"); });
  if (watch) watch->then([] { std::printf("the first visit was seen\n"); });
  for (int i = left; i > 0; --i)
    store->transact_async([](Transaction& txn) { txn.add("visits", 1); }, [&](const Result<void>&) { --left; });
  while (left > 0) turn(loop, bell, *options.executor);

  // [stop]
  auto closed = store->close(std::chrono::seconds(5));  // Runs what is left to run.
  std::printf("%s\n", closed ? "closed" : to_string(closed.error()).c_str());
  // [stop]
  close(bell);
  close(loop);
}
