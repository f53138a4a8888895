// A document that is saved half a second after the last keystroke, but at least every five seconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "perdure/debounce.h"

using namespace perdure;
using namespace std::chrono_literals;

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The document as it was saved last.
std::string saved(Store& store) {
  return must(store.read([](Reader& reader) { return reader.get("saved").value_or(""); }));
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Queue queue = must(Queue::open(store));
  must(store.transact([](Transaction& txn) { txn.clear("saved"); }));  // An empty sheet.
  // [first]
  Debouncers debouncers = must(Debouncers::open(store));
  must(debouncers.set("save", {.quiet = 500ms, .max_wait = 5s}));
  // In as many processes as you like: of a document one saves at a time.
  must(debouncers.handle(queue, "save", [](DebounceRun& run) {
    // What is written here commits with the end of the run, once, and only if nobody else has taken it over.
    run.complete([text = *run.payload().as_text()](Transaction& txn) -> Result<void> {
      txn.set("saved", text);
      return {};
    });
  }));

  auto press = [&](const std::string& text) { must(debouncers.touch("save", "letter", text)); };
  // [first]
  std::string text;
  for (char letter : std::string("Dear Ann")) {
    press(text += letter);
    std::this_thread::sleep_for(30ms);
  }
  std::printf("typed '%s', saved '%s'\n", text.c_str(), saved(store).c_str());
  while (saved(store) != text) std::this_thread::sleep_for(10ms);
  std::printf("after a pause, saved '%s'\n", saved(store).c_str());

  // On and on, without a pause.
  for (std::string before = text; saved(store) == before; std::this_thread::sleep_for(50ms)) press(text += '.');
  std::printf("while typing on, saved what was there after a while\n");
  while (saved(store) != text) std::this_thread::sleep_for(10ms);
  std::printf("after a pause, saved all of it\n");
  must(queue.close());
}
