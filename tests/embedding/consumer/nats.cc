// The same with the component for NATS. There is no server, and that is said with the setting.
#include "perdure/nats.h"

#include <string>

#include "perdure/tick.h"

int main() {
  auto store = perdure::Store::open("memory:");
  if (!store) return 1;
  auto leadership = perdure::nats_leadership(*store, {.url = "nats://127.0.0.1:1"});
  return !leadership && leadership.error().message.find("url") != std::string::npos ? 0 : 1;
}
