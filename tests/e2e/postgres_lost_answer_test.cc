// Appends on PostgreSQL that the client cannot know the end of, and those that the server undoes for the sake of
// others: whatever happens to them, what a transaction does is done once, and the caller is told so.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>

#include "perdure/store.h"
#include "postgres_proxy.h"
#include "postgres_server.h"
#include "store/postgres/postgres_server.h"

namespace perdure::e2e {
namespace {

using Lose = PostgresProxy::Lose;

/// One for the whole binary: making a cluster takes longer than all of the tests.
PostgresServer& the_server() {
  static PostgresServer server;
  return server;
}

std::string sql(const std::string& statement) {
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdb(the_server().url().c_str()), PQfinish);
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection.get(), statement.c_str()), PQclear);
  EXPECT_STREQ(PQresultErrorMessage(result.get()), "") << statement;
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

Store open_store(const std::string& url) {
  auto store = Store::open(url);
  if (!store) throw std::runtime_error(to_string(store.error()));
  return std::move(*store);
}

std::int64_t value_of(Store& store, const Bytes& key) {
  auto value = store.read([&](Reader& reader) { return decode_counter(reader.get(key)); });
  EXPECT_TRUE(value) << to_string(value.error());
  return value.value_or(-1);
}

/// A store behind the proxy, and one beside it that sees what is really there.
class PostgresLostAnswer : public testing::Test {
 protected:
  std::string url(int port) const {
    return "postgres://postgres@127.0.0.1:" + std::to_string(port) +
           "/postgres?sslmode=disable&gssencmode=disable&perdure_schema=" + schema_;
  }
  static std::string fresh_schema() {
    static int count = 0;
    return "lost" + std::to_string(++count);
  }

  /// One step of the counter, by reading and setting it, so that doing it twice would show.
  Result<void> increment(const Bytes& key, Body body) {
    return store_.transact(
        [&](Transaction& txn) {
          ++bodies_;
          txn.set(key, encode_counter(decode_counter(txn.get(key)) + 1));
        },
        {.timeout = std::chrono::seconds(30), .body = body});
  }
  int entries() const { return std::stoi(sql("SELECT count(*) FROM " + schema_ + ".log")); }
  /// Does a step of which that is lost, and returns how many entries the log has for it.
  int entries_of_step(Body body, std::vector<Lose> what) {
    const int before = entries();
    proxy_.lose(std::move(what));
    auto done = increment("n", body);
    EXPECT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(value_of(beside_, "n"), ++expected_);
    return entries() - before;
  }

  const std::string schema_ = fresh_schema();
  PostgresProxy proxy_{the_server().port()};
  Store store_ = open_store(url(proxy_.port())), beside_ = open_store(url(the_server().port()));
  std::atomic<int> bodies_ = 0;
  std::int64_t expected_ = 0;
};

TEST_F(PostgresLostAnswer, AnAppendThatWasAppliedIsFoundAndNotDoneAgain) {
  for (int i = 0; i < 10; ++i) {
    bodies_ = 0;
    Body body = i % 2 ? Body::kShort : Body::kOptimistic;
    EXPECT_EQ(entries_of_step(body, {Lose::kAnswer}), 2) << "itself, and the question what became of it";
    EXPECT_EQ(bodies_, 1);
  }
  EXPECT_EQ(proxy_.seen().lost_done, 10) << "the server had appended them when their answers were lost";
  EXPECT_EQ(proxy_.seen().lost_otherwise, 0);
}

TEST_F(PostgresLostAnswer, AnAppendThatNeverArrivedIsDoneAgain) {
  for (int i = 0; i < 10; ++i) {
    Body body = i % 2 ? Body::kShort : Body::kOptimistic;
    EXPECT_EQ(entries_of_step(body, {Lose::kRequest}), 2) << "the question what became of it, and itself";
  }
  EXPECT_EQ(proxy_.seen().lost_requests, 10);
}

TEST_F(PostgresLostAnswer, TheQuestionWhatBecameOfItMayBeLostAsWell) {
  using enum Lose;
  for (Body body : {Body::kOptimistic, Body::kShort}) {
    for (std::vector<Lose> what : {std::vector{kAnswer, kAnswer},
                                   {kAnswer, kNothing, kAnswer, kAnswer},
                                   {kAnswer, kRequest, kAnswer},
                                   {kRequest, kRequest, kAnswer},
                                   {kRequest, kAnswer, kRequest},
                                   {kRequest, kNothing, kAnswer, kRequest, kAnswer}})
      EXPECT_GE(entries_of_step(body, what), 2);
  }
  EXPECT_GT(proxy_.seen().lost_done, 10);
}

TEST_F(PostgresLostAnswer, ManyCallersAreAllAnsweredRightly) {
  constexpr int kCallers = 8, kEach = 25;
  std::vector<Lose> losses;
  for (int i = 0; i < 60; ++i)
    losses.push_back(i % 3 == 0 ? Lose::kAnswer : i % 3 == 1 ? Lose::kNothing : Lose::kRequest);
  proxy_.lose(losses);
  {
    Thread callers[kCallers];
    for (int c = 0; c < kCallers; ++c)
      callers[c].start("caller", [&, c] {
        for (int i = 0; i < kEach; ++i) {
          auto done = increment("own" + std::to_string(c), i % 2 ? Body::kShort : Body::kOptimistic);
          ASSERT_TRUE(done) << to_string(done.error());
          done = increment("shared", Body::kShort);
          ASSERT_TRUE(done) << to_string(done.error());
        }
      });
  }
  for (int c = 0; c < kCallers; ++c) EXPECT_EQ(value_of(beside_, "own" + std::to_string(c)), kEach);
  EXPECT_EQ(value_of(beside_, "shared"), kCallers * kEach);
  EXPECT_GT(proxy_.seen().lost_done, 0);
  EXPECT_GT(proxy_.seen().lost_requests, 0);
}

/// A schema whose server fails the first append after `refuse` with that code.
class PostgresGivesWay : public testing::Test {
 protected:
  void refuse(const std::string& schema, const std::string& code) {
    sql("CREATE SEQUENCE " + schema + ".tries; CREATE FUNCTION " + schema +
        ".refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('" + schema +
        ".tries') = 1 THEN RAISE EXCEPTION 'made up' USING ERRCODE = '" + code +
        "'; END IF; RETURN NEW; END $$; CREATE TRIGGER refuse BEFORE INSERT ON " + schema +
        ".log FOR EACH ROW EXECUTE FUNCTION " + schema + ".refuse()");
  }
  static std::string tries(const std::string& schema) { return sql("SELECT last_value FROM " + schema + ".tries"); }
  static std::string url(const std::string& schema) { return the_server().url("perdure_schema=" + schema); }
};

TEST_F(PostgresGivesWay, ToWhatIsUndoneForOthersNothingHasHappened) {
  for (std::string code : {"40001", "40P01"}) {
    std::string schema = "undone_" + std::string(code == "40001" ? "serialization" : "deadlock");
    auto server = postgres::PostgresServer::open({.url = url(schema)});
    ASSERT_TRUE(server) << to_string(server.error());
    refuse(schema, code);
    auto appended = (*server)->append({0}, {{1}, "x"});
    ASSERT_TRUE(appended) << code << ": " << to_string(appended.error());
    EXPECT_FALSE(appended->done);
    EXPECT_EQ((*server)->read({}, {}, {})->end.version.number, 0u);
    appended = (*server)->append({0}, {{1}, "x"});
    ASSERT_TRUE(appended && appended->done);
    EXPECT_EQ(tries(schema), "2");
  }
}

TEST_F(PostgresGivesWay, TheBatchIsMadeAgainAndItsCallersNeverKnow) {
  for (std::string code : {"40001", "40P01"}) {
    std::string schema = "again_" + std::string(code == "40001" ? "serialization" : "deadlock");
    Store store = open_store(url(schema));
    refuse(schema, code);
    auto added = store.transact([](Transaction& txn) { txn.add("n", 1); });
    EXPECT_TRUE(added) << code << ": " << to_string(added.error());
    EXPECT_EQ(tries(schema), "2");
    EXPECT_EQ(value_of(store, "n"), 1);
  }
}

TEST_F(PostgresGivesWay, AnyOtherFailureIsTold) {
  Store store = open_store(url("told"));
  refuse("told", "P0001");
  auto added = store.transact([](Transaction& txn) { txn.add("n", 1); });
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(added.error().message.find("made up"), std::string::npos) << added.error().message;
  EXPECT_EQ(value_of(store, "n"), 0);
}

}  // namespace
}  // namespace perdure::e2e
