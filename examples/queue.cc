// A queue of mails: emitted here, sent by whichever process works on it, and tried again if that fails.
#include "perdure/queue.h"

#include <cstdio>
#include <cstdlib>

using namespace perdure;
using namespace std::chrono_literals;

struct Mail {
  std::string to;
  std::string text;
  PERDURE_DESCRIBE(Mail, to, text)
};

/// What it returns is the result of the event; if it throws or returns an error, the event is tried again.
Result<std::string> send(Job& job) {
  auto mail = job.value_as<Mail>();
  if (!mail) return std::unexpected(mail.error());
  if (mail->to == "cem" && job.attempt() == 1) return fail(ErrorCode::kUnavailable, "the line is busy");
  return "said " + mail->text + " to " + mail->to;
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  // [first]
  Queue queue = must(Queue::open(store));
  if (!queue.work("mail", send)) return 1;  // In as many processes as you like.

  // Each is durable once emit returns, whether anybody works on it or not.
  Emitted now = must(queue.emit("mail", Mail{"ann", "hello"}));
  Emitted later = must(queue.emit("mail", Mail{"bob", "good night"}, {.delay = 200ms}));
  Emitted again = must(queue.emit("mail", Mail{"cem", "sorry"}, {.retry = RetryPolicy{.delay = 100ms, .max = 3}}));

  for (const Emitted& event : {now, later, again}) {
    EndedEvent ended = must(queue.wait(event.id, 10s));
    std::printf("%s, attempt %d\n", ended.result.as_text()->c_str(), ended.attempts);
  }
  // [first]
}
