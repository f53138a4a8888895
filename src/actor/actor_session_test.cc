// A node whose session has ended without its knowledge, on a simulated store.
#include <gtest/gtest.h>

#include "actor/mailbox.h"
#include "actor/rows.h"
#include "actor/test_kinds.h"
#include "perdure/testing.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;

/// Ends the session of that name, as an observer would that took its node for dead. Nothing if there is none: a run of
/// the body that has seen the past, and is run again.
SessionId end_session_of(Transaction& txn, std::string_view name) {
  SystemAccess access(txn);
  for (const Row& row : txn.get_range(session::table_range("open"))) {
    auto id = session::id_of("open", row.key);
    if (!id || session::read_open(txn, *id)->name != name) continue;
    session::end_rows(txn, *id);
    return *id;
  }
  return {};
}

// Others would count each such beginning as a death, until an innocent message is a dead letter. A node hears of the
// end of its session a little late; with some of the seeds that is after it has come to the message.
TEST(ActorSession, AMessageIsNotBegunUnderASessionThatIsOver) {
  auto report = testing::for_each_seed({.count = 20}, {.nodes = 2}, [](Simulation& sim) {
    Counter counter;
    std::shared_ptr<Actors> client, server;
    SessionId ended;
    bool handled = false;
    counter.hooks->call = [&](Turn&) {
      handled = true;
      auto attempts = sim.read([](Reader& reader) {
        SystemAccess access(reader);
        return read_attempts(reader, prefix_of({"default", "counter", "a"})).value();
      });
      sim.expect(attempts->begun.size() == 1 && attempts->begun[0] != ended.stamp, "it was begun by somebody present");
    };
    auto open = [&](int index, std::string name, std::shared_ptr<Actors>& place) {
      Actors::open_async(sim.node(index)->store(), {.session = {.name = std::move(name)}},
                         [&](Result<Actors> opened) { place = std::make_shared<Actors>(std::move(*opened)); });
      return sim.run_until([&] { return place != nullptr; }, 5s);
    };
    sim.run_for(1ms);
    ASSERT_TRUE(open(0, "client", client));
    // A message from before the server's time: for all that it knows, somebody has died with it.
    bool sent = false;
    client->of<Counter>("a").cast_async(Add{1}, {}, [&](const Result<void>& done) { sent = done.has_value(); });
    ASSERT_TRUE(sim.run_until([&] { return sent; }, 5s));
    ASSERT_TRUE(open(1, "server", server));
    sim.node(0)->store().transact_async([](Transaction& txn) { return end_session_of(txn, "server"); },
                                        [&](Result<SessionId> done) {
                                          ended = *done;
                                          sim.expect(ended.stamp.version.number > 0, "there is a session");
                                          sim.node(1)->after(0s, [&] { ASSERT_TRUE(server->serve(counter)); });
                                        });
    sim.expect(sim.run_until([&] { return handled; }, 30s), "it is handled under the next session");
    client.reset();
    server.reset();
  });
  EXPECT_TRUE(report.ok()) << report.to_string();
}

}  // namespace
}  // namespace perdure::actor
