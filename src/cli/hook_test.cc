// perdure hook: what it asks of the daemon, what it leaves in the spool, and that its caller never notices.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/rfc3339.h"
#include "cli/cli_test_world.h"
#include "http/hook_spools.h"
#include "perdure/uuid.h"
#include "runtime/latch.h"
#include "transcript/spool.h"

namespace perdure::cli {
namespace {

namespace fs = std::filesystem;
using transcript::Spooled;
using Args = std::vector<std::string>;

class CliHook : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/home");
    world_.variables["HOME"] = folder_ + "/home";
    world_.input = R"({"session_id":"s1","hook_event_name":"Stop"})";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs it, and checks what no event and no daemon may change.
  Printed hook(Args flags) {
    flags.insert(flags.begin(), "hook");
    Printed printed = world_.run(flags);
    EXPECT_EQ(printed.out, "{\"continue\":true}\n");
    EXPECT_EQ(printed.exit_code, 0);
    return printed;
  }
  std::vector<Spooled> spooled(const std::string& name = "hooks.spool") {
    std::vector<Spooled> all;
    auto report = transcript::take_spool(folder_ + "/" + name, [&](std::span<const Spooled> batch) -> Result<void> {
      all.insert(all.end(), batch.begin(), batch.end());
      return {};
    });
    EXPECT_TRUE(report && report->unreadable == 0);
    return all;
  }
  /// How many wait at home, for the daemon at `to`.
  std::size_t at_home(const std::string& to) {
    std::string path = http::spool_at_home(folder_ + "/home", *http::Url::parse(to));
    return spooled(fs::path(path).lexically_relative(folder_)).size();
  }
  std::string socket() const { return folder_ + "/perdure.sock"; }
  std::string url() const { return "unix://" + socket(); }

  std::string folder_ = testing::TempDir() + "perdure_hook_" + std::to_string(::getpid());
  TestWorld world_;
};

TEST_F(CliHook, TheEventIsForwardedByteByByte) {
  HttpTestServer server(always(200, "{\"continue\":true}"), socket());
  for (int i = 0; i < 256; ++i) world_.input += static_cast<char>(i);
  EXPECT_EQ(hook({"--url", url(), "--space", "a b"}).err, "");
  ASSERT_EQ(server.requests().size(), 1u);
  Request request = server.requests()[0];
  EXPECT_EQ(request.method + " " + request.target, "POST /v1/a%20b/transcripts/hooks");
  EXPECT_EQ(request.body, world_.input);
  EXPECT_TRUE(Uuid::parse(*request.headers.find("Idempotency-Key")));
  EXPECT_TRUE(spooled().empty());
  hook({"--url", url()});
  EXPECT_NE(*server.requests().at(1).headers.find("Idempotency-Key"), *request.headers.find("Idempotency-Key"));
}

// WORK-U1: by it, the daemon puts hooks in order that overtake each other.
TEST_F(CliHook, TheDaemonIsToldWhenTheEventCame) {
  HttpTestServer server([](const Request&, Wire&) { return Response{503, {}, "{}"}; }, socket());
  hook({"--url", url()});
  auto all = spooled();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(server.requests().at(0).headers.find("Perdure-Hook-Time"));
  EXPECT_EQ(*server.requests()[0].headers.find("Perdure-Hook-Time"), format_rfc3339(all[0].at));
}

TEST_F(CliHook, WhatADaemonRefusesIsSpooledUnderTheSameId) {
  int status = 0;
  HttpTestServer server([&](const Request&, Wire&) { return Response{status, {}, "{}"}; }, socket());
  for (int each : {301, 400, 404, 413, 422, 429, 500, 503, 507}) {
    status = each;
    EXPECT_EQ(hook({"--url", url(), "--space", "shop"}).err, "");
    auto all = spooled();
    ASSERT_EQ(all.size(), 1u) << status;
    EXPECT_EQ(all[0].hook, world_.input);
    EXPECT_EQ(all[0].space, "shop");
    EXPECT_EQ(all[0].id, *server.requests().back().headers.find("Idempotency-Key"));
  }
  for (int each : {200, 201, 202, 204}) {
    status = each;
    hook({"--url", url()});
    EXPECT_TRUE(spooled().empty()) << status;
  }
}

TEST_F(CliHook, WithoutADaemonItIsSpooledWhereTheDaemonWillLook) {
  hook({"--url", url()});
  hook({"--url", url()});
  auto all = spooled();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0].id, all[1].id);
  EXPECT_EQ(all[0].space, "default");
  world_.variables["PERDURE_STORE"] = "lmdb:" + folder_;
  std::ofstream(socket()) << "not a socket";
  hook({"--url", "http://127.0.0.1:1"});
  EXPECT_EQ(spooled().size(), 1u) << "no socket is named, so the directory of the store it is";
  hook({"--url", "unix://" + folder_ + "/work.sock"});
  EXPECT_EQ(spooled("work.sock.spool").size(), 1u) << "others may have a socket in the same directory";
}

TEST_F(CliHook, ADirectoryOfTheSessionIsThatOfItsDaemonOnlyIfNoOtherIsNamed) {  // WORK-25
  fs::create_directory(folder_ + "/perdure-data");
  HttpTestServer server(always(503, "{}"), folder_ + "/perdure-data/perdure.sock");
  fs::path before = fs::current_path();
  fs::current_path(folder_);
  hook({});
  EXPECT_EQ(spooled("perdure-data/hooks.spool").size(), 1u);
  hook({"--url", "http://127.0.0.1:1"});
  world_.variables["PERDURE_STORE"] = "lmdb:./perdure-data";
  hook({"--url", "http://127.0.0.1:1"});
  fs::current_path(before);
  EXPECT_TRUE(spooled("perdure-data/hooks.spool").empty());
  EXPECT_EQ(at_home("http://127.0.0.1:1"), 2u);
}

TEST_F(CliHook, WithoutAUrlItIsForTheDaemonOfTheStore) {  // WORK-25
  world_.variables["PERDURE_STORE"] = "lmdb:" + folder_;
  // As a disk that is full has no room for it either.
  fs::create_directory(folder_ + "/hooks.spool");
  hook({});
  EXPECT_EQ(at_home(url()), 1u) << "whichever port it has";
  fs::remove(folder_ + "/hooks.spool");
  world_.variables["PERDURE_STORE"] = "lmdb:" + folder_ + "/missing";
  hook({});
  EXPECT_EQ(spooled("home/.perdure-hooks.spool").size(), 1u) << "no directory tells of a daemon";
}

TEST_F(CliHook, ADaemonThatClosesTheConnectionMayHaveStoredIt) {
  HttpTestServer server([](const Request&, Wire&) { return std::optional<Response>(); }, socket());
  hook({"--url", url()});
  auto all = spooled();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, *server.requests().at(0).headers.find("Idempotency-Key"));
}

TEST_F(CliHook, ADaemonThatHangsIsGivenUp) {
  Latch end;
  HttpTestServer server(
      [&](const Request&, Wire&) {
        end.wait();
        return std::optional<Response>();
      },
      socket());
  hook({"--url", url()});
  EXPECT_EQ(spooled().size(), 1u);
  end.set();
}

TEST_F(CliHook, ASpoolOfItsOwnCanBeNamed) {
  hook({"--url", url(), "--spool", folder_ + "/mine"});
  EXPECT_EQ(spooled("mine").size(), 1u);
  world_.variables["PERDURE_HOOK_SPOOL"] = folder_ + "/yours";
  hook({"--url", url()});
  EXPECT_EQ(spooled("yours").size(), 1u);
  EXPECT_TRUE(spooled().empty());
}

TEST_F(CliHook, WhereNoSpoolCanBeItGoesToTheHomeDirectory) {
  hook({"--url", "unix://" + folder_ + "/nowhere/perdure.sock"});
  EXPECT_EQ(at_home("unix://" + folder_ + "/nowhere/perdure.sock"), 1u);
  fs::create_directory(folder_ + "/hooks.spool");
  hook({"--url", url()});
  EXPECT_EQ(at_home(url()), 1u);
  fs::remove(folder_ + "/hooks.spool");
  hook({"--url", "nonsense"});
  EXPECT_EQ(spooled("home/.perdure-hooks.spool").size(), 1u);
}

TEST_F(CliHook, NothingThatGoesWrongIsTheCallersConcern) {
  for (std::string bad : {"ftp://x", "", "http://", "unix://relative", "http://127.0.0.1:1/x"}) {
    EXPECT_EQ(hook({"--url", bad, "--spool", folder_ + "/spool"}).err, "") << bad;
    EXPECT_EQ(spooled("spool").size(), 1u) << bad;
  }
  world_.variables.erase("HOME");
  EXPECT_EQ(hook({"--url", "unix:///nowhere/perdure.sock"}).err, "");
  EXPECT_EQ(hook({"--url", url(), "--spool", "/nowhere/spool"}).err, "");
  Printed it = hook({"--url", url(), "--spool", "/dev/full", "--verbose"});
  EXPECT_NE(it.err.find("nothing answers at " + url()), std::string::npos) << it.err;
  EXPECT_NE(it.err.find("/dev/full is not a file"), std::string::npos) << it.err;
  EXPECT_NE(it.err.find("the hook event is lost"), std::string::npos) << it.err;
}

TEST_F(CliHook, AnEventIsCutOffAfterEightMebibytes) {
  HttpTestServer server(always(200, "{}"), socket());
  world_.input.assign(std::size_t{8} << 20, 'x');
  EXPECT_EQ(hook({"--url", url(), "--verbose"}).err, "");
  world_.input += "yz";
  EXPECT_EQ(hook({"--url", url()}).err, "");
  EXPECT_NE(hook({"--url", url(), "--verbose"}).err.find("cut off after 8 MiB"), std::string::npos);
  for (const Request& request : server.requests()) EXPECT_EQ(request.body.size(), std::size_t{8} << 20);
}

TEST_F(CliHook, NoEventIsNothingToForward) {
  HttpTestServer server(always(200, "{}"), socket());
  world_.input = "";
  hook({"--url", url()});
  EXPECT_TRUE(server.asked().empty());
  EXPECT_TRUE(spooled().empty());
}

TEST_F(CliHook, WrongFlagsAreSaidAndFailNobody) {
  // To those who call hooks, exit code 2 means that the session must not go on.
  for (Args bad :
       {Args{"hook", "--no-such-flag"}, {"hook", "more"}, {"hook", "--spool"}, {"--url", "x", "hook", "-x"}}) {
    Printed it = world_.run(bad);
    EXPECT_EQ(it.exit_code, 0) << bad[1];
    EXPECT_EQ(it.out, "{\"continue\":true}\n");
    EXPECT_NE(it.err.find("perdure: "), std::string::npos);
  }
  Printed it = world_.run({"hook", "--install", "--no-such-flag"});
  EXPECT_EQ(it.exit_code, 2) << "that is what a person types";
  EXPECT_EQ(it.out, "");
  EXPECT_EQ(world_.run({"emit", "hook", "--no-such-flag"}).exit_code, 2);
}

TEST_F(CliHook, InstallPrintsTheSettingsOfEveryEvent) {
  Printed it = world_.run({"hook", "--install", "--url", "unix:///it's here/perdure.sock", "--space", "shop"});
  EXPECT_EQ(it.exit_code, 0) << it.err;
  EXPECT_NE(it.err.find("~/.claude/settings.json"), std::string::npos);
  auto settings = Value::from_json(it.out);
  ASSERT_TRUE(settings) << it.out;
  const Value* hooks = settings->find("hooks");
  ASSERT_NE(hooks, nullptr);
  std::string program = fs::read_symlink("/proc/self/exe");
  for (std::string event : {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification", "Stop",
                            "SubagentStop", "SessionEnd"}) {
    Value one = Value::Map{
        {"type", "command"},
        {"command", program + R"( hook --url 'unix:///it'\''s here/perdure.sock' --space shop)"},
        {"timeout", 5},
    };
    Value::Map group = {{"hooks", Value::List{one}}};
    if (event == "PreToolUse" || event == "PostToolUse") group["matcher"] = "*";
    ASSERT_NE(hooks->find(event), nullptr) << event;
    EXPECT_EQ(hooks->find(event)->to_json(), Value(Value::List{group}).to_json()) << event;
  }
  EXPECT_EQ(hooks->as_map()->size(), 8u);
}

TEST_F(CliHook, InstallSaysIfNobodyAnswersThere) {
  auto says = [&] { return world_.run({"hook", "--install", "--url", url()}).err; };
  EXPECT_NE(says().find("nothing answers at " + url()), std::string::npos);
  HttpTestServer server(always(200, "{}"), socket());
  EXPECT_EQ(says().find("nothing answers"), std::string::npos);
}

TEST_F(CliHook, InstallNamesTheSocketOfTheStoreByItsWholePath) {
  world_.variables["PERDURE_STORE"] = "lmdb:./some/../where";
  std::string here = fs::current_path();
  EXPECT_NE(world_.run({"hook", "--install"}).out.find(" hook --url unix://" + here + "/where/perdure.sock\""),
            std::string::npos);
  world_.variables["PERDURE_STORE"] = "postgres://db/perdure";
  EXPECT_NE(world_.run({"hook", "--install"}).out.find(" hook --url http://127.0.0.1:7420\""), std::string::npos)
      << "there is no directory, and no socket";
  world_.variables["PERDURE_STORE"] = "lmdb:" + std::string(120, 'x');
  EXPECT_EQ(world_.run({"hook", "--install"}).exit_code, 2) << "no socket can have so long a path";
}

}  // namespace
}  // namespace perdure::cli
