// etcd goes away, comes back, loses its leader, is full or refuses: what the server on it makes of that.
#include <csignal>
#include <thread>

#include "etcd_fixture.h"
#include "etcd_proxy.h"

namespace perdure::e2e {
namespace {

using namespace std::chrono_literals;
using remote::Moment;

ErrorCode code_of(const std::string& url) {
  auto opened = etcd::EtcdServer::open({url});
  return opened ? ErrorCode::kNotFound : opened.error().code;
}

TEST_F(EtcdTest, ARestartIsLivedThroughAndToldOnceEachWay) {
  Heard log, heard;
  auto server = open_etcd(cluster_.url(), log.sink());
  server->listen(heard.bell());
  EXPECT_TRUE(heard.wait_for("0"));
  ASSERT_TRUE(append(*server, 0, entry(1)));
  EXPECT_TRUE(heard.wait_for("1"));
  cluster_.stop();
  for (int i = 0; i < 5; ++i) {
    auto appended = server->append({{1}}, entry(2));
    ASSERT_FALSE(appended);
    // The first may find a connection that is just being closed.
    if (i > 0) {
      EXPECT_EQ(appended.error().code, ErrorCode::kUnavailable) << appended.error().message;
    }
    EXPECT_EQ(server->read(Version{}, {}, {}).error().code, ErrorCode::kUnavailable);
  }
  cluster_.start();
  EXPECT_TRUE(within(10s, [&] { return server->read(Version{}, {}, {}).has_value(); }));
  EXPECT_EQ(versions_of(look(*server)), "1");
  EXPECT_EQ(log.count("etcd does not answer, and is waited for"), 1u);
  EXPECT_EQ(log.count("etcd answers again"), 1u);
  EXPECT_TRUE(heard.wait_for("0")) << "something may have been missed";
  ASSERT_TRUE(append(*server, 1, entry(2)));
  EXPECT_TRUE(heard.wait_for("2"));
}

TEST_F(EtcdTest, CallsFailAtOnceWhileItIsKnownToBeAway) {
  auto server = open();
  cluster_.signal(0, SIGSTOP);
  SteadyTime began = steady_now();
  auto silent = server->append({{0}}, entry(1));
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kCommitUnknown) << silent.error().message;
  EXPECT_LT(steady_now() - began, 6s);
  // The moment for which they do is 50 ms at first, which a busy machine may sleep through, and doubles.
  Duration quickest = Duration::max();
  for (int i = 0; i < 5 && quickest > 500ms; ++i) {
    began = steady_now();
    EXPECT_EQ(server->read(Version{}, {}, {}).error().code, ErrorCode::kUnavailable);
    quickest = std::min<Duration>(quickest, steady_now() - began);
  }
  EXPECT_LT(quickest, 500ms);
  cluster_.signal(0, SIGCONT);
  EXPECT_TRUE(within(10s, [&] { return server->read(Version{}, {}, {}).has_value(); }));
  // The one that was silent may have been done after all, or not; that is what unknown says.
  Moment moment = look(*server);
  EXPECT_EQ(moment.log.size(), moment.end.version.number);
}

TEST_F(EtcdTest, AServerThatIsNotThereIsToldAtOnce) {
  std::string url = cluster_.url();
  cluster_.stop();
  SteadyTime began = steady_now();
  EXPECT_EQ(code_of(url), ErrorCode::kUnavailable);
  EXPECT_LT(steady_now() - began, 5s);
}

TEST_F(EtcdTest, AFullServerSaysSoAndCanBeRead) {
  EtcdCluster small(scratch_ / "small", {.members = 1, .arguments = {"--quota-backend-bytes=16777216"}});
  auto server = open_etcd(small.url());
  Error full{};
  std::uint64_t end = 0;
  for (; end < 100; ++end) {
    auto appended = server->append({{end}}, entry(end + 1, Bytes(1 << 20, '\0')));
    if (appended) continue;
    full = appended.error();
    break;
  }
  EXPECT_EQ(full.code, ErrorCode::kStoreFull) << full.message;
  EXPECT_EQ(look(*server, end > 1 ? end - 1 : 0).end.version.number, end);
  auto again = open_etcd(small.url());
  EXPECT_EQ(look(*again, end).end.version.number, end);
}

/// An etcd that says that it is full when it is told to.
class EtcdFullTest : public EtcdTest {
 protected:
  using enum EtcdProxy::Then;

  Error refusal_of(std::uint64_t expected, const remote::LogEntry& entry) {
    auto appended = server_->append({{expected}}, entry);
    return appended ? Error{ErrorCode::kNotFound, "it was taken"} : appended.error();
  }

  EtcdProxy proxy_{cluster_.endpoint(0)};
  ServerPtr server_ = open_etcd(proxy_.url());
};

// https://github.com/etcd-io/etcd/issues/16659
TEST_F(EtcdFullTest, AnAppendThatWasDoneAndRefusedIsDone) {
  proxy_.next({kDoAndRefuse});
  EXPECT_TRUE(append(*server_, 0, entry(1, "ours")));
  EXPECT_EQ(versions_of(look(*server_)), "1");
}

TEST_F(EtcdFullTest, AnAppendThatWasRefusedAndNotDoneIsNotInTheLog) {
  proxy_.next({kRefuse});
  EXPECT_EQ(refusal_of(0, entry(1)).code, ErrorCode::kStoreFull);
  EXPECT_EQ(versions_of(look(*server_)), "");
}

TEST_F(EtcdFullTest, AnAppendThatWasRefusedIsToldWhatIsThereInstead) {
  ASSERT_TRUE(append(*server_, 0, entry(1, "theirs")));
  for (auto then : {kRefuse, kDoAndRefuse}) {
    proxy_.next({then});
    auto appended = must(server_->append({{0}}, entry(1, "ours")));
    EXPECT_FALSE(appended.done);
    ASSERT_TRUE(appended.instead);
    EXPECT_EQ(appended.instead->log.at(0).batch, "theirs");
  }
}

TEST_F(EtcdFullTest, AnAppendThatCannotBeLookedForIsUnknown) {
  proxy_.next({kDoAndRefuse, kLose});
  EXPECT_EQ(refusal_of(0, entry(1)).code, ErrorCode::kCommitUnknown);
  EXPECT_TRUE(within(10s, [&] { return server_->read(Version{}, {}, {}).has_value(); }));
  EXPECT_EQ(versions_of(look(*server_)), "1");
}

TEST_F(EtcdFullTest, AFoldThatWasDoneAndRefusedIsTriedAgain) {
  ASSERT_TRUE(append(*server_, 0, entry(1)));
  const remote::Fold fold{Version{0}, {{1}}, Version{0}, {row("k", "v", 1)}};
  for (std::deque<EtcdProxy::Then> steps :
       {std::deque{kDoAndRefuse}, {kPass, kPass, kDoAndRefuse}, {kPass, kPass, kPass, kDoAndRefuse}}) {
    proxy_.next(steps);
    auto folded = server_->fold(fold);
    ASSERT_FALSE(folded);
    EXPECT_EQ(folded.error().code, ErrorCode::kStoreFull);
  }
  EXPECT_FALSE(must(server_->fold(fold))) << "it was done in the end";
  EXPECT_EQ(look(*server_).folded.number, 1u);
  EXPECT_EQ(look(*server_, 1, {"k"}).values.at(0)->value, "v");
}

class EtcdClusterTest : public ::testing::Test {
 protected:
  /// Appends `count` entries as an engine would: looks where the log ends after anything unsure. False if it takes
  /// longer than `patience`.
  static bool append_some(remote::RowServer& server, std::uint64_t count, Duration patience) {
    const SteadyTime until = steady_now() + patience;
    std::optional<std::uint64_t> end;
    for (std::uint64_t done = 0; done < count && steady_now() < until;) {
      if (!end) {
        auto moment = server.read(Version{~0ull >> 1}, {}, {});
        if (!moment) continue;
        end = moment->end.version.number;
      }
      auto appended = server.append({{*end}}, entry(*end + 1));
      const bool sure = appended && appended->done;
      end = sure ? std::optional(*end + 1) : std::nullopt;
      done += sure;
      if (done == count) return true;
    }
    return false;
  }

  Scratch scratch_;
  EtcdCluster cluster_{scratch_ / "etcd", {.members = 3}};
};

TEST_F(EtcdClusterTest, ItGoesOnSoonAfterTheLeaderIsKilled) {
  Heard heard;
  const std::size_t leader = cluster_.leader();
  // Connected to the leader, and to a follower.
  std::string rest;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != leader) rest += "," + cluster_.endpoint(i);
  auto with_leader = open_etcd("etcd://" + cluster_.endpoint(leader) + rest);
  auto with_follower = open_etcd("etcd://" + rest.substr(1) + "," + cluster_.endpoint(leader));
  with_follower->listen(heard.bell());
  EXPECT_TRUE(heard.wait_for("0"));
  ASSERT_TRUE(append_some(*with_leader, 5, 10s));
  ASSERT_TRUE(append_some(*with_follower, 5, 10s));
  const std::uint64_t before = look(*with_leader).end.version.number;
  const SteadyTime killed = steady_now();
  cluster_.kill(leader);
  EXPECT_TRUE(within(8s, [&] { return with_leader->read(Version{}, {}, {}).has_value(); }));
  RecordProperty("read_ms", static_cast<int>((steady_now() - killed) / 1ms));
  EXPECT_TRUE(append_some(*with_leader, 1, 8s));
  RecordProperty("append_ms", static_cast<int>((steady_now() - killed) / 1ms));
  EXPECT_TRUE(append_some(*with_follower, 5, 8s));
  EXPECT_LT(steady_now() - killed, 10s);
  EXPECT_GE(look(*with_leader).end.version.number, before + 6) << "nothing that was acknowledged is lost";
  EXPECT_TRUE(heard.wait_for(std::to_string(look(*with_leader).end.version.number)));
}

TEST_F(EtcdClusterTest, AMemberThatIsCutOffIsLeft) {
  const std::size_t leader = cluster_.leader();
  const std::size_t first = (leader + 1) % 3, second = (leader + 2) % 3;
  auto server = open_etcd("etcd://" + cluster_.endpoint(first) + "," + cluster_.endpoint(second) + "," +
                          cluster_.endpoint(leader));
  Heard heard;
  server->listen(heard.bell());
  EXPECT_TRUE(heard.wait_for("0"));
  ASSERT_TRUE(append_some(*server, 1, 10s));
  cluster_.signal(first, SIGSTOP);
  const SteadyTime stopped = steady_now();
  EXPECT_TRUE(append_some(*server, 5, 8s)) << "the others are enough";
  EXPECT_TRUE(heard.wait_for("0")) << "the bell hangs elsewhere now";
  EXPECT_LT(steady_now() - stopped, 15s);
  cluster_.signal(second, SIGSTOP);
  cluster_.signal(first, SIGCONT);
  EXPECT_TRUE(append_some(*server, 5, 8s));
  cluster_.signal(first, SIGSTOP);
  EXPECT_EQ(code_of("etcd://" + cluster_.endpoint(leader)), ErrorCode::kUnavailable) << "it has lost the others";
  cluster_.signal(first, SIGCONT);
  cluster_.signal(second, SIGCONT);
  EXPECT_TRUE(append_some(*server, 5, 10s));
}

TEST_F(EtcdClusterTest, WithoutAMajorityNothingIsAnswered) {
  auto server = open_etcd(cluster_.url());
  ASSERT_TRUE(append_some(*server, 1, 10s));
  cluster_.kill(0);
  cluster_.kill(1);
  EXPECT_FALSE(append_some(*server, 1, 5s));
  SteadyTime began = steady_now();
  EXPECT_EQ(server->read(Version{}, {}, {}).error().code, ErrorCode::kUnavailable);
  EXPECT_LT(steady_now() - began, 7s);
  cluster_.start(0);
  EXPECT_TRUE(append_some(*server, 1, 10s));
}

}  // namespace
}  // namespace perdure::e2e
