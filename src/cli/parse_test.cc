#include "cli/parse.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/cli_test_world.h"
#include "cli/duration.h"
#include "cli/serve_command.h"
#include "cli/suggest.h"

namespace perdure::cli {
namespace {

using Args = std::vector<std::string>;
using namespace std::chrono_literals;

std::optional<std::string> no_variables(std::string_view) {
  return {};
}

Parsed parsed(Args args, const Variables& variables = no_variables) {
  auto result = parse(std::move(args), variables);
  EXPECT_TRUE(result) << result.error().message;
  return result ? std::move(*result) : Parsed{};
}

Failure refusal(Args args, const Variables& variables = no_variables) {
  auto result = parse(std::move(args), variables);
  EXPECT_FALSE(result);
  return result ? Failure{} : result.error();
}

TEST(CliParse, ReadsPositionalsAndFlags) {
  Parsed it = parsed({"emit", "mail", R"({"to":"ada"})", "--delay", "5m", "--json"});
  EXPECT_EQ(it.command->name, "emit");
  EXPECT_EQ(it.arguments.one("WORKER"), "mail");
  EXPECT_EQ(it.arguments.one("JSON"), R"({"to":"ada"})");
  EXPECT_EQ(it.arguments.maybe("delay"), "5m");
  EXPECT_TRUE(it.arguments.has("json"));
  EXPECT_FALSE(it.arguments.maybe("at"));
}

TEST(CliParse, TakesAnyJsonAsItIs) {
  for (std::string json : {"{}", "[]", "[1,2]", "-5", "-1.5e3", "null", "-", R"("--json")", R"({"a":"%%"})", "0"})
    EXPECT_EQ(parsed({"emit", "mail", json}).arguments.one("JSON"), json) << json;
}

TEST(CliParse, NamesThatAreCommandsTooAreNames) {
  EXPECT_EQ(parsed({"emit", "work", "1"}).arguments.one("WORKER"), "work");
  EXPECT_EQ(parsed({"worker", "show", "ls"}).arguments.one("NAME"), "ls");
  EXPECT_EQ(parsed({"--space", "emit", "worker", "ls"}).command->name, "worker ls");
  EXPECT_EQ(parsed({"--json", "worker", "--space", "x", "ls"}).arguments.one("space"), "x");
  EXPECT_EQ(parsed({"pause", "help"}).arguments.one("WORKER"), "help");
}

TEST(CliParse, ManyIdsStayApartFromFlags) {
  Parsed it = parsed({"redrive", "mail", "a", "b", "--rate", "10/s", "c"});
  EXPECT_EQ(it.arguments.all("ID"), (Args{"a", "b", "c"}));
  EXPECT_EQ(it.arguments.one("rate"), "10/s");
}

TEST(CliParse, WhatStandsBehindTheDashesIsNotTouched) {
  Parsed it = parsed({"work", "mail", "--concurrency", "4", "--", "sh", "--help", "--", "-x", "emit"});
  EXPECT_FALSE(it.help);
  EXPECT_EQ(it.arguments.one("concurrency"), "4");
  EXPECT_EQ(it.arguments.all("CMD"), (Args{"sh", "--help", "--", "-x", "emit"}));
  EXPECT_EQ(refusal({"work", "mail", "sh"}).exit_code, kExitUsage);
  EXPECT_EQ(refusal({"work", "mail", "--"}).exit_code, kExitUsage);
}

TEST(CliParse, RefusesWithAHint) {
  EXPECT_NE(refusal({"emti"}).hint.find("perdure emit"), std::string::npos);
  EXPECT_NE(refusal({"worker"}).message.find("ls, show, set, rm"), std::string::npos);
  EXPECT_NE(refusal({"worker", "list"}).hint.find("ls"), std::string::npos);
  EXPECT_NE(refusal({"emit", "mail"}).message.find("JSON"), std::string::npos);
  EXPECT_NE(refusal({"events", "--nope"}).message.find("--nope"), std::string::npos);
  for (Args args : {Args{}, {"emti"}, {"emit", "a", "1", "2"}, {"events", "--state"}, {"--json"}})
    EXPECT_EQ(refusal(args).exit_code, kExitUsage);
}

TEST(CliParse, HelpIsForOneCommandOrForAll) {
  EXPECT_EQ(parsed({"--help"}).command, nullptr);
  EXPECT_EQ(parsed({"help", "emit"}).command->name, "emit");
  EXPECT_EQ(parsed({"worker", "set", "-h"}).command->name, "worker set");
  EXPECT_TRUE(parsed({"worker", "--help"}).help);
  std::string help = help_of(*find_command("emit"));
  EXPECT_NE(help.find("--delay"), std::string::npos);
  EXPECT_NE(help.find("Examples:"), std::string::npos);
}

ServeOptions served(Args args, const Variables& variables = no_variables) {
  args.insert(args.begin(), "serve");
  auto options = serve_options(parsed(std::move(args), variables).arguments);
  EXPECT_TRUE(options);
  return options ? *options : ServeOptions{};
}

TEST(CliServe, FlagsComeBeforeTheEnvironmentAndThatBeforeTheFile) {
  std::string path = testing::TempDir() + "perdure_cli_serve.toml";
  std::ofstream(path) << "# a comment\nstore = \"lmdb:/file\"\nlisten = '127.0.0.1:1'\nheld = true\n"
                      << "log_level = \"debug\"\nallow-url = [\"http://a/\", \"http://b/\"]\n";
  auto variables = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "PERDURE_LISTEN") return "127.0.0.1:2";
    if (name == "PERDURE_STORE") return "lmdb:/environment";
    if (name == "PERDURE_CONFIG") return path;
    return {};
  };
  ServeOptions options = served({"--store", "lmdb:/flag"}, variables);
  EXPECT_EQ(options.store, "lmdb:/flag");
  EXPECT_EQ(options.listen, "127.0.0.1:2");
  EXPECT_TRUE(options.held);
  EXPECT_FALSE(options.test_clock);
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.allow_urls, (Args{"http://a/", "http://b/"}));
}

TEST(CliServe, DefaultsNeedNothing) {
  ServeOptions options = served({});
  EXPECT_EQ(options.store, "lmdb:./perdure-data");
  EXPECT_EQ(options.listen, "127.0.0.1:7420");
  EXPECT_FALSE(options.held);
}

TEST(CliServe, EveryFlagHasAVariableAndSwitchesReadTruth) {
  for (const Flag& flag : find_command("serve")->flags) EXPECT_TRUE(flag.variable.starts_with("PERDURE_")) << flag.name;
  auto held = [](std::string value) {
    return [=](std::string_view name) { return name == "PERDURE_HELD" ? std::optional(value) : std::nullopt; };
  };
  EXPECT_TRUE(served({}, held("true")).held);
  EXPECT_FALSE(served({}, held("0")).held);
  EXPECT_NE(refusal({"serve"}, held("maybe")).message.find("PERDURE_HELD"), std::string::npos);
}

TEST(CliServe, RefusesWhatItDoesNotKnow) {
  std::string path = testing::TempDir() + "perdure_cli_bad.toml";
  std::ofstream(path) << "stroe = \"x\"\n";
  EXPECT_NE(refusal({"serve", "--config", path}).message.find("stroe"), std::string::npos);
  EXPECT_NE(refusal({"serve", "--config", "/nowhere.toml"}).message.find("/nowhere.toml"), std::string::npos);
  EXPECT_FALSE(serve_options(parsed({"serve", "--log-format", "xml"}).arguments));
  EXPECT_FALSE(serve_options(parsed({"serve", "--log-level", "loud"}).arguments));
}

TEST(CliDuration, ReadsWhatTheApiReads) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("5s"), 5s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("24h"), 24h);
  EXPECT_EQ(parse_duration("7d"), 24h * 7);
  EXPECT_EQ(parse_duration("1.5"), 1500ms);
  for (std::string bad : {"", "s", "5x", "-5s", "5 s", "inf", "nan", "1e300d"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  EXPECT_EQ(duration_value("30"), Value(30));
  EXPECT_EQ(duration_value("5m"), Value("5m"));
  EXPECT_EQ(duration_text(30s), "30s");
  EXPECT_EQ(duration_text(1500ms), "1500ms");
}

TEST(CliSuggest, OnlyWhatIsNearIsSuggested) {
  Args names = {"emit", "events", "kill"};
  EXPECT_EQ(nearest("emti", names), "emit");
  EXPECT_EQ(nearest("event", names), "events");
  EXPECT_EQ(nearest("frobnicate", names), "");
  EXPECT_EQ(nearest("x", names), "");
}

}  // namespace
}  // namespace perdure::cli
