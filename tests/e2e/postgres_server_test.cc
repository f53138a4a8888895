#include "postgres_server.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <poll.h>

#include <random>
#include <sstream>

#include "store/postgres/errors.h"
#include "store/postgres/postgres_server.h"
#include "store/remote/row_server_suite.h"

namespace perdure::remote {
namespace {

/// One for the whole binary: making a cluster takes longer than most tests.
e2e::PostgresServer& the_server() {
  static e2e::PostgresServer server;
  return server;
}

std::string fresh_schema() {
  static std::atomic<int> count = 0;
  return "perdure_schema=t" + std::to_string(++count);
}

class PostgresStore : public StoreUnderTest {
 public:
  Result<std::unique_ptr<RowServer>> open() override { return postgres::PostgresServer::open({.url = url_}); }

 private:
  const std::string url_ = the_server().url(fresh_schema());
};

std::unique_ptr<StoreUnderTest> fresh_postgres() {
  return std::make_unique<PostgresStore>();
}

INSTANTIATE_TEST_SUITE_P(Postgres, RowServerTest, testing::Values(&fresh_postgres));

using testing::HasSubstr;
using testing::Not;

std::string sql_on(const std::string& url, const std::string& statement) {
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdb(url.c_str()), PQfinish);
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection.get(), statement.c_str()), PQclear);
  EXPECT_EQ(std::string(PQresultErrorMessage(result.get())), "") << statement;
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

/// What an operator does with psql, also on a server that is read-only for others.
std::string sql(const std::string& statement) {
  return sql_on(the_server().url("options=-c%20default_transaction_read_only%3Doff"), statement);
}

Error error_of(const std::string& url) {
  auto opened = postgres::PostgresServer::open({.url = url});
  return opened ? Error{ErrorCode::kInvalidArgument, "it was opened"} : opened.error();
}

std::unique_ptr<RowServer> opened(const std::string& url, LogSink log = {}) {
  auto server = postgres::PostgresServer::open({.url = url, .log = std::move(log)});
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return server ? std::move(*server) : nullptr;
}

/// Counts what is said to the log.
struct Said {
  std::atomic<int> away = 0, crowded = 0, back = 0;
  LogSink sink() {
    return [this](const LogRecord& record) {
      if (record.level != LogLevel::kWarning)
        ++back;
      else
        ++(record.message.contains("no room") ? crowded : away);
    };
  }
};

/// Tries again while the server is away, as an engine does.
Version end_of_log(RowServer& server) {
  for (SteadyTime until = steady_now() + kSuitePatience; steady_now() < until;) {
    auto moment = server.read({}, {}, {});
    if (moment) return moment->end.version;
    EXPECT_EQ(moment.error().code, ErrorCode::kUnavailable) << moment.error().message;
    poll(nullptr, 0, 5);
  }
  ADD_FAILURE() << "it does not come back";
  return {};
}

TEST(PostgresOpen, UrlsThatCannotBeUsedAreRefusedWithWhatIsWrong) {
  EXPECT_EQ(error_of("mysql://localhost").code, ErrorCode::kInvalidArgument);
  for (std::string name : {"", "Upper", "a-b", "a;b", "1a", "pg_mine", "information_schema", "a%20b"}) {
    Error error = error_of(the_server().url("perdure_schema=" + name));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << name;
    EXPECT_THAT(error.message, HasSubstr("perdure_schema")) << name;
  }
  Error unknown = error_of(the_server().url("no_such_option=1", "postgres:secret"));
  EXPECT_EQ(unknown.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.message, Not(HasSubstr("secret")));
  for (std::string query : {"sslmode=nonsense", "connect_timeout=soon", "target_session_attrs=nonsense"}) {
    Error error = error_of(the_server().url(query));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
    EXPECT_THAT(error.message, HasSubstr(query.substr(query.find('=') + 1)));
  }
  for (std::string url : {"postgres://me:secret@[::1/x", "postgres://me:secret/x@h/x", "postgres://me:x@secret@h/x"}) {
    Error scrambled = error_of(url);
    EXPECT_EQ(scrambled.code, ErrorCode::kInvalidArgument) << scrambled.message;
    EXPECT_THAT(scrambled.message, Not(HasSubstr("secret")));
  }
}

TEST(PostgresOpen, AServerThatIsDownIsNamed) {
  Error error = error_of("postgres://me:secret@127.0.0.1:1/db");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("127.0.0.1:1/db"));
  EXPECT_THAT(error.message, HasSubstr("refused"));
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
}

TEST(PostgresOpen, AnUnknownDatabaseOrUserIsSaidToBeSo) {
  std::string url = the_server().url();
  Error database = error_of(url.substr(0, url.rfind('/')) + "/nowhere");
  EXPECT_EQ(database.code, ErrorCode::kInvalidArgument) << database.message;
  EXPECT_THAT(database.message, HasSubstr("\"nowhere\" does not exist; create it"));
  Error user = error_of(the_server().url("", "nobody_here"));
  EXPECT_EQ(user.code, ErrorCode::kPermissionDenied) << user.message;
  EXPECT_THAT(user.message, HasSubstr("check user and password"));
}

TEST(PostgresOpen, AWrongPasswordIsSaidToBeSoAndNotShown) {
  sql("CREATE ROLE with_password LOGIN SUPERUSER PASSWORD 'right'");
  Error error = error_of(the_server().url("", "with_password:secret"));
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied) << error.message;
  EXPECT_THAT(error.message, HasSubstr("password authentication failed for user \"with_password\"; check"));
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
  EXPECT_EQ(error_of(the_server().url("", "with_password")).code, ErrorCode::kPermissionDenied);
  EXPECT_TRUE(opened(the_server().url("perdure_schema=guarded", "with_password:right")));
}

TEST(PostgresOpen, SessionsDoNotDependOnWhatTheDatabaseHasAsDefaults) {
  sql("CREATE ROLE odd LOGIN SUPERUSER");
  for (std::string setting : {"synchronous_commit = off", "default_transaction_isolation = serializable",
                              "search_path = nowhere", "statement_timeout = 50"})
    sql("ALTER ROLE odd SET " + setting);
  auto connection = postgres::Connection::open(*postgres::parse_target(the_server().url("", "odd")),
                                               {"test", std::chrono::seconds(5), std::chrono::seconds(5)});
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ((*connection)->run(postgres::text("SHOW synchronous_commit"))->bytes(0, 0), "on");
  EXPECT_EQ((*connection)->run(postgres::text("SHOW transaction_isolation"))->bytes(0, 0), "read committed");
  EXPECT_EQ((*connection)->run(postgres::text("SHOW statement_timeout"))->bytes(0, 0), "5s");
}

TEST(PostgresOpen, EncryptionThatTheServerDoesNotOfferIsSaidToBeMissing) {
  Error error = error_of(the_server().url("sslmode=require"));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
  EXPECT_THAT(error.message, HasSubstr("check sslmode"));
}

TEST(PostgresOpen, AUserWithoutRightsLearnsWhichGrantIsMissing) {
  sql("CREATE ROLE poor LOGIN");
  Error error = error_of(the_server().url("perdure_schema=rights", "poor"));
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied) << error.message;
  EXPECT_THAT(error.message, HasSubstr("CREATE SCHEMA rights AUTHORIZATION poor"));
  sql("CREATE SCHEMA rights AUTHORIZATION poor");
  auto server = opened(the_server().url("perdure_schema=rights", "poor"));
  EXPECT_TRUE(server->append({0}, {{1}, "x"}));
  sql("CREATE ROLE stranger LOGIN");
  EXPECT_EQ(error_of(the_server().url("perdure_schema=rights", "stranger")).code, ErrorCode::kPermissionDenied);
}

TEST(PostgresOpen, ASchemaOfANewerPerdureIsLeftAlone) {
  std::string url = the_server().url("perdure_schema=newer");
  auto server = opened(url);
  sql("UPDATE newer.meta SET format = 7");
  Error error = error_of(url);
  EXPECT_EQ(error.code, ErrorCode::kUnsupportedFormat);
  EXPECT_THAT(error.message, HasSubstr("format 7"));
  // One that has it open finds out with its next connection.
  auto moment = server->read({}, {}, {});
  ASSERT_FALSE(moment);
  EXPECT_EQ(moment.error().code, ErrorCode::kUnsupportedFormat);
}

TEST(PostgresOpen, TablesOfSomebodyElseAreNotTakenForOurs) {
  sql("CREATE SCHEMA theirs; CREATE TABLE theirs.meta (id integer)");
  Error error = error_of(the_server().url("perdure_schema=theirs"));
  EXPECT_EQ(error.code, ErrorCode::kCorrupt) << error.message;
  EXPECT_THAT(error.message, HasSubstr("name another schema"));
}

TEST(PostgresOpen, AStandbyIsRefused) {
  e2e::PostgresServer standby{e2e::PostgresServer::StandbyOf{the_server()}};
  Error error = error_of(standby.url());
  EXPECT_EQ(error.code, ErrorCode::kUnavailable) << error.message;
  EXPECT_THAT(error.message, HasSubstr("name the primary"));
  // Whoever names both gets to the primary.
  std::string both = "postgres://postgres@127.0.0.1:" + std::to_string(standby.port()) +
                     ",127.0.0.1:" + std::to_string(the_server().port()) + "/postgres?perdure_schema=both";
  EXPECT_TRUE(opened(both)->append({0}, {{1}, "x"}));
}

TEST(PostgresOpen, TheModuleOpensAServer) {
  void* module = dlopen(PERDURE_POSTGRES_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(module) << dlerror();
  auto* open = reinterpret_cast<OpenServer*>(dlsym(module, "perdure_open_server"));
  ASSERT_TRUE(open);
  Result<std::unique_ptr<RowServer>> server;
  open({.url = the_server().url("perdure_schema=module")}, server);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_TRUE((*server)->append({0}, {{1}, "x"})->done);
  EXPECT_EQ((*server)->read({}, {}, {})->end.version.number, 1u);
  EXPECT_EQ((*server)->limits().name, "postgres");
}

TEST(PostgresLoss, ARestartOfTheServerIsSurvived) {
  e2e::PostgresServer own;
  Said said;
  auto server = opened(own.url(), said.sink());
  BellBook book;
  server->listen(book.bell());
  ASSERT_TRUE(server->append({0}, {{1}, "before"})->done);
  ASSERT_TRUE(book.wait_for_any());
  own.stop();
  for (int i = 0; i < 3; ++i) {
    auto appended = server->append({1}, {{2}, "while it is away"});
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().code, ErrorCode::kUnavailable) << appended.error().message;
    EXPECT_EQ(server->read({}, {}, {}).error().code, ErrorCode::kUnavailable);
  }
  EXPECT_EQ(said.away, 1);
  own.start();
  EXPECT_EQ(end_of_log(*server).number, 1u);
  EXPECT_TRUE(server->append({1}, {{2}, "after"})->done);
  EXPECT_TRUE(book.wait_for_zeros(2)) << "after a loss it rings, as anything may have been missed";
  EXPECT_TRUE(server->append({2}, {{3}, "heard"})->done);
  EXPECT_TRUE(book.wait_for(3));
  EXPECT_EQ(said.back, 1);
  server->listen({});
  own.crash();
  own.start();
  EXPECT_EQ(end_of_log(*server).number, 3u) << "what was acknowledged is on disk";
}

TEST(PostgresLoss, AStandbyThatIsPromotedHasAllThatWasAcknowledged) {
  e2e::PostgresServer primary;
  e2e::PostgresServer standby{e2e::PostgresServer::StandbyOf{primary}};
  sql_on(primary.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'");
  sql_on(primary.url(), "SELECT pg_reload_conf()");
  Said said;
  auto server = opened("postgres://postgres@127.0.0.1:" + std::to_string(primary.port()) +
                           ",127.0.0.1:" + std::to_string(standby.port()) + "/postgres",
                       said.sink());
  BellBook book;
  server->listen(book.bell());
  for (std::uint64_t end = 0; end < 20; ++end) ASSERT_TRUE(server->append({end}, {{end + 1}, "x"})->done);
  primary.crash();
  EXPECT_EQ(server->append({20}, {{21}, "while there is no primary"}).error().code, ErrorCode::kUnavailable);
  sql_on(standby.url(), "SELECT pg_promote()");
  EXPECT_EQ(end_of_log(*server).number, 20u);
  EXPECT_TRUE(server->append({20}, {{21}, "after"})->done);
  EXPECT_TRUE(book.wait_for_any());
  server->listen({});
  EXPECT_EQ(said.away, 1);
  EXPECT_EQ(said.back, 1);
}

TEST(PostgresLoss, AnAppendThatIsCutOffIsNeverAnsweredWrongly) {
  std::string url = the_server().url("perdure_schema=cut");
  auto server = opened(url), other = opened(url);
  std::atomic<bool> over = false;
  Thread cutter;
  cutter.start("cutter", [&] {
    while (!over)
      sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'perdure append' "
          "AND state = 'active'");
  });
  std::uint64_t end = 0;
  int unknown = 0;
  std::string batch(20'000, '\0');
  for (SteadyTime until = steady_now() + std::chrono::seconds(10); unknown < 10 && steady_now() < until;) {
    auto appended = server->append({end}, {{end + 1}, batch});
    std::uint64_t now = end_of_log(*other).number;
    if (appended) {
      EXPECT_TRUE(appended->done);
      EXPECT_EQ(now, end + 1);
    } else if (appended.error().code == ErrorCode::kCommitUnknown) {
      ++unknown;
      EXPECT_LE(now, end + 1);
    } else {
      EXPECT_EQ(appended.error().code, ErrorCode::kUnavailable) << appended.error().message;
      EXPECT_EQ(now, end);
    }
    // An append that was cut off may still be on its way to its commit; the fence is what settles it.
    end = now;
    if (!appended && other->append({end}, {{end + 1}, "fence"})->done) ++end;
    end = end_of_log(*other).number;
  }
  over = true;
  cutter.join();
  EXPECT_GT(unknown, 0) << "no append was hit";
  EXPECT_EQ(end_of_log(*server).number, end);
}

TEST(PostgresLoss, AnAppendThatWaitsTooLongForTheRowHasNoEffect) {
  std::string url = the_server().url("perdure_schema=locked");
  auto server = opened(url);
  std::unique_ptr<PGconn, void (*)(PGconn*)> holder(PQconnectdb(the_server().url().c_str()), PQfinish);
  PQclear(PQexec(holder.get(), "BEGIN; UPDATE locked.meta SET version = version"));
  SteadyTime begun = steady_now();
  auto appended = server->append({0}, {{1}, "x"});
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::kUnavailable) << appended.error().message;
  EXPECT_LT(steady_now() - begun, std::chrono::seconds(8));
  EXPECT_TRUE(server->read({}, {}, {})) << "readers are not held up";
  PQclear(PQexec(holder.get(), "ROLLBACK"));
  EXPECT_TRUE(server->append({0}, {{1}, "x"})->done);
}

TEST(PostgresLoss, AServerThatHasNoRoomForMoreIsServedByTheConnectionsThatThereAre) {
  sql("CREATE ROLE few LOGIN CONNECTION LIMIT 3");
  sql("GRANT CREATE ON DATABASE postgres TO few");
  Said said;
  auto server = opened(the_server().url("perdure_schema=few", "few"), said.sink());
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 16; ++i)
      readers.emplace_back([&] {
        for (int k = 0; k < 50; ++k) refused += !server->read({}, {}, {});
      });
    for (std::uint64_t end = 1; end < 20; ++end) EXPECT_TRUE(server->append({end}, {{end + 1}, "x"})->done);
  }
  EXPECT_EQ(refused, 0) << "readers wait for each other";
  EXPECT_EQ(said.away, 0);
  EXPECT_EQ(said.crowded, 1);

  sql("ALTER ROLE few CONNECTION LIMIT 0");
  sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'");
  Error why{};
  for (SteadyTime until = steady_now() + kSuitePatience; steady_now() < until; poll(nullptr, 0, 5))
    if (auto read = server->read({}, {}, {}); !read && (why = read.error()).message.contains("too many")) break;
  EXPECT_EQ(why.code, ErrorCode::kUnavailable);
  EXPECT_THAT(why.message, HasSubstr("too many connections for role \"few\"; raise"));
  SteadyTime begun = steady_now();
  EXPECT_FALSE(server->read({}, {}, {}));
  EXPECT_LT(steady_now() - begun, std::chrono::milliseconds(500)) << "nobody waits for a connection that nobody has";
  sql("ALTER ROLE few CONNECTION LIMIT 3");
  EXPECT_EQ(end_of_log(*server).number, 20u);
}

/// Reads all the time, with more threads than there are connections, until it goes.
class Readers {
 public:
  explicit Readers(RowServer& server) {
    for (int i = 0; i < 16; ++i)
      threads_.emplace_back([this, &server](const std::stop_token& stop) {
        while (!stop.stop_requested())
          if (!server.read({}, {}, {})) ++refused_;
      });
  }
  int refused() const { return refused_; }

 private:
  std::atomic<int> refused_ = 0;
  std::vector<std::jthread> threads_;
};

/// Whether it comes true in time.
bool comes_true(const std::function<bool()>& is_it) {
  for (SteadyTime until = steady_now() + kSuitePatience; steady_now() < until; poll(nullptr, 0, 5))
    if (is_it()) return true;
  return false;
}

TEST(PostgresLoss, ReadersMakeRoomForAppendsFoldsAndTheBellOnACrowdedServer) {
  sql("CREATE ROLE four LOGIN CONNECTION LIMIT 4");
  sql("GRANT CREATE ON DATABASE postgres TO four");
  auto server = opened(the_server().url("perdure_schema=four", "four"));
  {
    Readers readers(*server);
    ASSERT_TRUE(comes_true([] { return sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'four'") == "4"; }));
    EXPECT_TRUE(server->append({0}, {{1}, "x"})->done);
    BellBook book;
    server->listen(book.bell());
    EXPECT_TRUE(book.wait_for_zeros(1)) << "it listens";
    auto folded = server->fold({.from = {}, .to = {{1}}, .trim = {}, .rows = {}});
    ASSERT_TRUE(folded) << folded.error().message;
    EXPECT_TRUE(*folded);
    EXPECT_EQ(readers.refused(), 0);

    // Readers may be the first to come back.
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'four'");
    EXPECT_TRUE(comes_true([&] {
      auto appended = server->append({1}, {{2}, "x"});
      return appended && (appended->done || end_of_log(*server).number == 2);
    }));
    EXPECT_TRUE(
        comes_true([&] { return server->fold({.from = {1}, .to = {{2}}, .trim = {}, .rows = {}}).has_value(); }));
    EXPECT_TRUE(book.wait_for_zeros(2)) << "it listens again";
    server->listen({});
  }
  EXPECT_TRUE(server->read({}, {}, {})) << "one connection is left to them";
}

TEST(PostgresLoss, ReadersKeepTheirLastConnection) {
  sql("CREATE ROLE one LOGIN CONNECTION LIMIT 1");
  sql("GRANT CREATE ON DATABASE postgres TO one");
  auto server = opened(the_server().url("perdure_schema=one", "one"));
  ASSERT_TRUE(comes_true([&] { return server->read({}, {}, {}).has_value(); })) << "what opened it is gone by then";
  auto appended = server->append({0}, {{1}, "x"});
  ASSERT_FALSE(appended);
  EXPECT_THAT(appended.error().message, HasSubstr("too many connections for role \"one\"; raise"));
  EXPECT_TRUE(server->read({}, {}, {}));
}

/// Takes connections and says nothing, as a machine that is gone behind a router which is not.
class SilentHost {
 public:
  SilentHost() : port_(e2e::free_port()), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<in_port_t>(port_));
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 100), 0);
  }
  ~SilentHost() { close(socket_); }
  std::string name() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int port_, socket_;
};

TEST(PostgresLoss, ACrowdedServerIsKnownAsSuchBehindAHostThatIsGone) {
  sql("CREATE ROLE behind LOGIN CONNECTION LIMIT 3");
  sql("GRANT CREATE ON DATABASE postgres TO behind");
  SilentHost gone;
  std::string url = the_server().url("perdure_schema=behind&connect_timeout=2", "behind");
  url.insert(url.find('@') + 1, gone.name() + ",");
  Said said;
  auto server = opened(url, said.sink());
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  Readers readers(*server);
  EXPECT_TRUE(comes_true([&] { return said.crowded > 0; }));
  EXPECT_EQ(readers.refused(), 0);
  EXPECT_EQ(said.away, 0);
}

TEST(PostgresLoss, WhoeverWaitsForAConnectionHearsAtOnceThatTheServerIsAway) {
  e2e::PostgresServer own;
  auto server = opened(own.url());
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  std::unique_ptr<PGconn, void (*)(PGconn*)> holder(PQconnectdb(own.url().c_str()), PQfinish);
  PQclear(PQexec(holder.get(), "BEGIN"));
  PQclear(PQexec(holder.get(), "LOCK TABLE perdure.log IN ACCESS EXCLUSIVE MODE"));
  SteadyTime stopped;
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 40; ++i) readers.emplace_back([&] { EXPECT_FALSE(server->read({}, {}, {})); });
    ASSERT_TRUE(comes_true([&] {
      return sql_on(own.url(),
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'perdure read' AND "
                    "wait_event_type = 'Lock'") == "8";
    }));
    own.stop();
    stopped = steady_now();
  }
  EXPECT_LT(steady_now() - stopped, std::chrono::seconds(3)) << "32 of them had no connection";
}

TEST(PostgresErrors, OneHostWithoutRoomIsEnough) {
  EXPECT_TRUE(
      postgres::is_crowded("connection to a failed: FATAL:  57P03: the database system is starting up\n"
                           "connection to b failed: FATAL:  53300: sorry, too many clients already\n"));
  EXPECT_FALSE(postgres::is_crowded("connection to a failed: FATAL:  57P03: the database system is starting up\n"));
}

/// The processes on the server that have sessions of a lane.
std::vector<pid_t> backends(const std::string& lane) {
  std::string list =
      sql("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = 'perdure " + lane + "'");
  std::istringstream in(list);
  std::vector<pid_t> pids;
  for (pid_t pid; in >> pid;) pids.push_back(pid);
  return pids;
}

/// The signal alone leaves it some time, on a busy machine.
bool is_stopped(pid_t pid) {
  std::string stat = e2e::read_whole("/proc/" + std::to_string(pid) + "/stat");
  return stat.find(") T ") != std::string::npos;
}

TEST(PostgresLoss, AnAppendThatHangsIsUnknownAndComesTooLateAfterAFence) {
  std::string url = the_server().url("perdure_schema=hangs");
  Said said;
  auto server = opened(url, said.sink());
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  std::vector<pid_t> stopped = backends("append");
  ASSERT_EQ(stopped.size(), 1u);
  kill(stopped[0], SIGSTOP);
  while (!is_stopped(stopped[0])) poll(nullptr, 0, 1);
  SteadyTime begun = steady_now();
  auto hung = server->append({1}, {{2}, "late"});
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code, ErrorCode::kCommitUnknown) << hung.error().message;
  EXPECT_LT(steady_now() - begun, std::chrono::seconds(8));
  begun = steady_now();
  EXPECT_FALSE(server->append({1}, {{2}, "at once"})) << "it was found away a moment ago";
  EXPECT_FALSE(server->read({}, {}, {}));
  EXPECT_LT(steady_now() - begun, std::chrono::milliseconds(500));
  EXPECT_EQ(end_of_log(*server).number, 1u);
  ASSERT_TRUE(server->append({1}, {{2}, "fence"})->done);
  kill(stopped[0], SIGCONT);
  for (SteadyTime until = steady_now() + kSuitePatience; backends("append").size() > 1 && steady_now() < until;)
    poll(nullptr, 0, 5);
  auto moment = server->read({1}, {}, {});
  ASSERT_EQ(moment->log.size(), 1u);
  EXPECT_EQ(moment->log[0].batch, "fence");
  EXPECT_EQ(said.away, 1);
  EXPECT_EQ(said.back, 1);
}

TEST(PostgresLoss, ACommitWithoutItsStandbyIsNotTakenForDurable) {
  std::string url = the_server().url("perdure_schema=lonely");
  auto server = opened(url);
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  sql("SELECT pg_reload_conf()");
  std::atomic<bool> over = false;
  Thread operator_thread;
  operator_thread.start("operator", [&] {
    while (!over)
      sql("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = 'perdure append' AND "
          "wait_event = 'SyncRep'");
  });
  ErrorCode code = ErrorCode::kNotFound;
  std::uint64_t end = 1;
  // The server may take a moment to read its settings again.
  for (SteadyTime until = steady_now() + kSuitePatience; steady_now() < until; ++end) {
    auto appended = server->append({end}, {{end + 1}, "x"});
    if (appended) continue;
    code = appended.error().code;
    break;
  }
  over = true;
  operator_thread.join();
  sql("ALTER SYSTEM RESET synchronous_standby_names");
  sql("SELECT pg_reload_conf()");
  EXPECT_EQ(code, ErrorCode::kCommitUnknown);
  EXPECT_EQ(end_of_log(*server).number, end + 1) << "it was committed, though on one machine only";
}

TEST(PostgresLoss, AFoldThatIsAbandonedLeavesNothingBehind) {
  std::string url = the_server().url("perdure_schema=half");
  auto server = opened(url);
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  sql("ALTER TABLE half.rows ADD CONSTRAINT no_z CHECK (key <> 'z')");
  Fold fold = {.from = {0}, .to = {1}, .trim = {0}, .rows = {{"a", Versioned{"1", {1}}}, {"z", Versioned{"1", {1}}}}};
  EXPECT_FALSE(server->fold(fold));
  std::vector<Bytes> keys = {"a"};
  EXPECT_FALSE(server->read({}, keys, {})->values[0]);
  EXPECT_EQ(server->read({}, {}, {})->folded.number, 0u);
  fold.rows.pop_back();
  EXPECT_TRUE(server->fold(fold).value_or(false));
  EXPECT_TRUE(server->read({}, keys, {})->values[0]);
}

/// So that it cannot be compressed.
Bytes random_bytes(std::size_t size) {
  static std::mt19937_64 random(1);
  Bytes bytes;
  while (bytes.size() < size) {
    const std::uint64_t eight = random();
    bytes.append(reinterpret_cast<const char*>(&eight), sizeof eight);
  }
  bytes.resize(size);
  return bytes;
}

TEST(PostgresFold, TheLogIsCleanedUpWithoutWaitingForAutovacuum) {
  auto server = opened(the_server().url("perdure_schema=churn"));
  Bytes batch = random_bytes(1 << 20) + kNoLink;
  std::uint64_t folded = 0;
  for (std::uint64_t end = 0; end < 160;) {
    ASSERT_TRUE(server->append({end}, {{end + 1}, batch})->done);
    if (++end % 8 != 0) continue;
    ASSERT_TRUE(server->fold({.from = {folded}, .to = {end}, .trim = {folded}, .rows = {}}).value_or(false));
    folded = end;
  }
  EXPECT_LT(std::stoi(sql("SELECT pg_total_relation_size('churn.log') >> 20")), 100) << "160 MB went through it";
}

/// Rows that folds write anew, each fold as many as it is told.
class PostgresRowsTest : public testing::Test {
 protected:
  static constexpr std::size_t kRowBytes = 4'000;

  void write(std::size_t first, std::size_t count) {
    std::vector<FoldedRow> rows;
    const Version to{folded_.number + 1};
    for (std::size_t i = first; i < first + count; ++i)
      rows.push_back({"key" + std::to_string(i), Versioned{random_bytes(kRowBytes), to}});
    ASSERT_TRUE(server_->append({folded_}, {to, "x"})->done);
    ASSERT_TRUE(server_->fold({.from = folded_, .to = {to}, .trim = folded_, .rows = rows}).value_or(false));
    folded_ = to;
  }
  int megabytes() { return std::stoi(sql("SELECT pg_total_relation_size('" + schema_ + ".rows') >> 20")); }
  int cleanups() { return std::stoi(sql("SELECT pg_stat_get_vacuum_count('" + schema_ + ".rows'::regclass)")); }

  const std::string query_ = fresh_schema();
  const std::string schema_ = query_.substr(query_.find('=') + 1);
  const std::unique_ptr<RowServer> server_ = opened(the_server().url(query_));
  Version folded_ = {};
};

TEST_F(PostgresRowsTest, RowsThatComeAndGoAreCleanedUpWithoutWaitingForAutovacuum) {
  for (int i = 0; i < 30; ++i) write(0, 1'000);
  EXPECT_LT(megabytes(), 60) << "120 MB went through it, and 4 MB are there";
}

TEST_F(PostgresRowsTest, ALargeTableIsCleanedUpForAFifthOfIt) {
  for (std::size_t i = 0; i < 6; ++i) write(i * 5'000, 5'000);
  const int before = cleanups(), at_first = megabytes();
  for (int i = 0; i < 24; ++i) write(0, 1'250);
  EXPECT_GE(cleanups(), before + 2) << "120 MB were written, as many as are there";
  EXPECT_LE(cleanups(), before + 4);
  EXPECT_LT(megabytes(), at_first + at_first / 2);
}

TEST(PostgresLoss, AServerThatBecomesReadOnlyIsLeft) {
  std::string url = the_server().url("perdure_schema=read_only");
  auto server = opened(url);
  ASSERT_TRUE(server->append({0}, {{1}, "x"})->done);
  sql("ALTER SYSTEM SET default_transaction_read_only = on");
  sql("SELECT pg_reload_conf()");
  ErrorCode code = ErrorCode::kNotFound;
  std::string message;
  std::uint64_t end = 1;
  for (SteadyTime until = steady_now() + kSuitePatience; steady_now() < until; ++end) {
    auto appended = server->append({end}, {{end + 1}, "x"});
    if (appended) continue;
    code = appended.error().code, message = appended.error().message;
    break;
  }
  EXPECT_EQ(code, ErrorCode::kUnavailable) << message;
  EXPECT_THAT(message, HasSubstr("name the primary"));
  sql("ALTER SYSTEM RESET default_transaction_read_only");
  sql("SELECT pg_reload_conf()");
  EXPECT_EQ(end_of_log(*server).number, end);
}

TEST(PostgresLoss, SessionsThatTheServerEndedAreReplacedUnnoticed) {
  std::string url = the_server().url("perdure_schema=ended");
  auto server = opened(url);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(server->append({i}, {{i + 1}, "x"})) << "an idle session that is gone is no lost commit";
    ASSERT_TRUE(server->read({}, {}, {}));
    sql("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name LIKE 'perdure %'");
  }
}

}  // namespace
}  // namespace perdure::remote
