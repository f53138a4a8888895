// Five processes and one key, elected by a real nats-server; what is pending, and the fence, are in one LMDB store.
#include <future>

#include "nats_server.h"
#include "perdure/nats.h"
#include "session/nats/nats_link.h"
#include "session/nats/nats_protocol.h"
#include "tick_fixture.h"

namespace perdure::e2e {
namespace {

using namespace std::chrono_literals;

class NatsElection : public TickProcesses {
 protected:
  /// The test's own connection, to do what others might.
  nats::Link& link() {
    if (!link_)
      link_ = must(nats::Link::connect(server_.url(), "test", 2s,
                                       {[](nats::Message) {}, [](std::uint64_t, nats::Message) {}, [] {}, [] {}}));
    return *link_;
  }
  std::string subject() const { return std::string("$KV.e2e.") + kKey; }
  std::optional<nats::Entry> entry() {
    auto answer = must(link().request("$JS.API.STREAM.MSG.GET.KV_e2e", nats::last_message_of(subject()), 2s));
    return nats::error_of(answer.data) ? std::nullopt : nats::entry_of(answer.data);
  }

  template <class T, class F>
  static Result<T> await(F start) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    start([promise](Result<T> result) { promise->set_value(std::move(result)); });
    return promise->get_future().get();
  }

  NatsServer server_{scratch_ / "nats"};
  std::unique_ptr<nats::Link> link_;
};

// DVU-4, DVU-7, DVU-20, DVU-U2, DVU-U14.
TEST_F(NatsElection, FiveProcessesHaveOneLeader) {
  start_all(server_.url(), {});
  expect_one_leader_who_works();
  // Between a run and the next leadership nobody has the key, and the next may come between the two looks.
  auto shown = [this] {
    auto last = entry();
    if (!last || last->marker) return false;
    std::string seen = workers_[0]->ask(std::string("inspect ") + kKey);
    return seen.find("owner=" + nats::parse_value(last->value).instance_id) != seen.npos;
  };
  bool owner = false;
  for (int i = 0; i < 100 && !owner; ++i) {
    if (i > 0) let_pass(Milliseconds(20));
    owner = shown();
  }
  EXPECT_TRUE(owner) << workers_[0]->ask(std::string("inspect ") + kKey);
}

// DVU-2, DVU-6, DVU-B3: within max_age and a second, without looking for it again and again.
TEST_F(NatsElection, AKilledLeaderIsReplacedWithinMaxAgeAndASecond) {
  Times times{.missing_check_ms = kNeverMs};
  start_all(server_.url(), times);
  std::vector<double> measured;
  for (int i = 0; i < 5; ++i) {
    touch();
    measured.push_back(kill_leader(server_.url(), times));
  }
  report_ms("from the kill of the leader to the next, by NATS with a max_age of 2 s", measured);
  EXPECT_LE(std::ranges::max(measured), times.max_age_ms + 1000);
  EXPECT_TRUE(wait_until_done()) << "what was pending is not lost";
  expect_tokens_grow();
}

// DVU-U4, DVU-U6: a leader whose key somebody else wrote steps down, and writes nothing more.
TEST_F(NatsElection, AForeignWriteIsNotFought) {
  start_all(server_.url(), {.max_age_ms = 4000, .window_ms = 300, .run_ms = 300});
  std::size_t first = leader();
  std::int64_t from = steady_ns();
  auto written = must(link().request(subject(), R"({"instance_id":"stranger","status":"waiting"})", 2s));
  auto revision = nats::sequence_of(written.data);
  ASSERT_TRUE(revision) << written.data;
  ASSERT_TRUE(wait_until([&] { return state(*workers_[first]) == "waiting"; }));
  EXPECT_LE(ms_between(from, steady_ns()), 2100) << "by the watch, or at the latest by its next keep-alive";
  while (ms_between(from, steady_ns()) < 3000) {
    auto last = entry();
    ASSERT_TRUE(last);
    ASSERT_EQ(last->revision, *revision) << last->value;
    ASSERT_EQ(leaders(), 0u);
    let_pass(Milliseconds(50));
  }
  // The stranger does not keep it alive.
  touch();
  leader();
  EXPECT_TRUE(wait_until_done());
}

// DVU-B1, DVU-B2: the result of a leader that was stopped in its run, and replaced meanwhile, is refused.
TEST_F(NatsElection, ALeaderStoppedForEightSecondsInARunHasItsResultRefused) {
  start_all(server_.url(), {.max_age_ms = 2000, .window_ms = 300, .run_ms = 1000});
  std::size_t first = leader();
  touch();
  auto begun = workers_[first]->event();
  ASSERT_TRUE(begun && begun->starts_with("run ")) << begun.value_or("(nothing)");
  Child& stopped = *workers_[first];
  stopped.signal(SIGSTOP);
  ASSERT_TRUE(stopped.wait_until_stopped());
  std::int64_t from = steady_ns();
  while (ms_between(from, steady_ns()) < 8000) workers_[(first + 1) % kProcesses]->gather(Milliseconds(100));
  EXPECT_EQ(count("done"), 1) << "another has done it";
  stopped.signal(SIGCONT);
  std::vector<std::string> events;
  for (std::optional<std::string> event; events.empty() || !events.back().starts_with("ended");) {
    event = stopped.event();
    ASSERT_TRUE(event);
    events.push_back(*event);
  }
  EXPECT_TRUE(std::ranges::count(events, "fenced ws.cs stale_token")) << "the store itself refuses it";
  EXPECT_EQ(events.back(), "ended ws.cs stale_token");
  EXPECT_EQ(tokens().size(), 1u);
  EXPECT_EQ(count("done"), 1);
}

// A server that goes away and comes back is waited for.
TEST_F(NatsElection, TheServerMayRestart) {
  start_all(server_.url(), {});
  leader();
  for (int i = 0; i < 2; ++i) {
    touch();
    server_.stop();
    let_pass(Milliseconds(i == 0 ? 200 : 4000));
    server_.start();
    std::int64_t from = steady_ns();
    leader();
    std::printf("from the start of the server to a leader: %.0f ms\n", ms_between(from, steady_ns()));
    EXPECT_TRUE(wait_until_done());
    EXPECT_LE(leaders(), 1u);
  }
  expect_tokens_grow();
}

// DVU-18: a stop leaves no key behind.
TEST_F(NatsElection, AStoppedLeaderIsReplacedAtOnce) {
  start_all(server_.url(), {.max_age_ms = 10'000, .missing_check_ms = kNeverMs});
  // Who has just begun to follow looks by itself, and needs not be told.
  let_pass(Milliseconds(500));
  std::size_t first = leader();
  EXPECT_EQ(workers_[first]->ask("stop"), "ok");
  std::int64_t from = steady_ns();
  leader();
  EXPECT_LE(ms_between(from, steady_ns()), 1000);
}

// DVU-U3, DVU-U6, DVU-7: each write is conditional on the revision, whoever else writes.
TEST_F(NatsElection, EveryWriteIsConditional) {
  auto ada = must(nats_leadership(store_, {.url = server_.url(), .bucket = "e2e", .instance_id = "ada"}));
  auto bob = must(nats_leadership(store_, {.url = server_.url(), .bucket = "e2e", .instance_id = "bob"}));
  auto code = [](const auto& result) { return result ? "ok" : std::string(result.error().name()); };
  auto acquire = [&](Leadership& who) {
    return await<std::uint64_t>([&](auto done) { who.acquire(kKey, std::move(done)); });
  };
  auto update = [&](Leadership& who, std::uint64_t revision) {
    return await<std::uint64_t>(
        [&](auto done) { who.update(kKey, revision, LeaderStatus::kRunning, std::move(done)); });
  };
  auto release = [&](Leadership& who, std::uint64_t revision) {
    return await<void>([&](auto done) { who.release(kKey, revision, std::move(done)); });
  };
  auto first = acquire(*ada);
  ASSERT_EQ(code(first), "ok");
  EXPECT_EQ(code(acquire(*bob)), "conflict");
  auto second = update(*ada, *first);
  ASSERT_EQ(code(second), "ok");
  EXPECT_EQ(code(update(*ada, *first)), "stale_token");
  EXPECT_EQ(code(release(*ada, *first)), "stale_token");
  auto seen = must(await<std::optional<LeadershipView>>([&](auto done) { bob->look(kKey, std::move(done)); }));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->owner, "ada");
  EXPECT_EQ(seen->status, LeaderStatus::kRunning);
  EXPECT_EQ(seen->revision, *second);
  EXPECT_GT(seen->age, Duration::zero());
  EXPECT_LT(seen->age, 5s);
  EXPECT_EQ(code(release(*ada, *second)), "ok");
  auto after = acquire(*bob);
  EXPECT_EQ(code(after), "ok") << "behind the mark that the purge left";
  EXPECT_EQ(code(update(*ada, *second)), "stale_token");
  EXPECT_EQ(nats::parse_value(entry()->value).instance_id, "bob");
}

// DVU-U2: who is given no name has one of its own.
TEST_F(NatsElection, InstancesHaveTheirOwnNamesOrThoseThatTheyAreGiven) {
  auto open = [&](const std::string& name) {
    return must(nats_leadership(store_, {.url = server_.url(), .instance_id = name}))->instance_id();
  };
  EXPECT_EQ(open("ada"), "ada");
  std::string first = open("");
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, open(""));
}

// What is wrong at the start is said, with the setting.
TEST_F(NatsElection, WhatIsWrongAtTheStartIsSaidWithTheSetting) {
  auto said = [&](const NatsOptions& options) {
    auto opened = nats_leadership(store_, options);
    return opened ? "" : to_string(opened.error());
  };
  auto has = [](const std::string& text, const std::string& part) { return text.find(part) != text.npos; };
  EXPECT_EQ(said({.url = server_.url(), .bucket = "b1", .max_age = 2s}), "");
  EXPECT_EQ(said({.url = server_.url(), .bucket = "b1", .max_age = 2s}), "") << "it is there already";
  std::string other = said({.url = server_.url(), .bucket = "b1", .max_age = 3s});
  EXPECT_TRUE(has(other, "max_age") && has(other, "b1")) << other;
  NatsServer bare(scratch_ / "bare", JetStream::kOff);
  std::string without = said({.url = bare.url()});
  EXPECT_TRUE(has(without, "JetStream") && has(without, "url")) << without;
  std::string url = bare.url();
  bare.stop();
  std::string absent = said({.url = url});
  EXPECT_TRUE(has(absent, "url") && has(absent, url)) << absent;
  std::string nonsense = said({.url = "nats://"});
  EXPECT_TRUE(has(nonsense, "url")) << nonsense;
}

}  // namespace
}  // namespace perdure::e2e
