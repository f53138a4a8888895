#include "http/router.h"

#include <gtest/gtest.h>

#include "http/guard.h"
#include "http/target.h"
#include "http/url.h"

namespace perdure::http {
namespace {

Route route(std::string method, std::string pattern) {
  return {std::move(method), std::move(pattern), Load::kRead, Raw{}};
}

Router small_router() {
  return Router({route("GET", "/v1/{space}/events/{id}"), route("DELETE", "/v1/{space}/events/{id}"),
                 route("GET", "/v1/_/spaces"), route("GET", "/v1/{space}/spaces")});
}

TEST(Router, PartsOfThePathGoByTheirNames) {
  Router router = small_router();
  auto match = router.find("GET", {"v1", "default", "events", "a/b"});
  ASSERT_NE(match.route, nullptr);
  ASSERT_EQ(match.params.size(), 2u);
  EXPECT_EQ(match.params[0].first, "space");
  EXPECT_EQ(match.params[1].second, "a/b");
}

TEST(Router, WhatIsWrittenGoesBeforeWhatMayBeAnything) {
  Router router = small_router();
  EXPECT_TRUE(router.find("GET", {"v1", "_", "spaces"}).params.empty());
  EXPECT_EQ(router.find("GET", {"v1", "x", "spaces"}).params.size(), 1u);
}

TEST(Router, AnotherMethodIsToldWhichThereAre) {
  Router router = small_router();
  auto match = router.find("PUT", {"v1", "default", "events", "x"});
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allowed, "GET, DELETE");
  EXPECT_NE(router.find("HEAD", {"v1", "default", "events", "x"}).route, nullptr);
  EXPECT_EQ(router.find("GET", {"v1", "default", "events", ""}).allowed, "");
  EXPECT_EQ(router.find("GET", {"v1"}).allowed, "");
}

TEST(Target, IsDecodedOnceItIsSplit) {
  auto target = Target::parse("/v1/a%2Fb/x?after=1%262&limit=5&q=a+b");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1", "a/b", "x"}));
  EXPECT_EQ(target->query.at("after"), "1&2");
  EXPECT_EQ(target->query.at("q"), "a b");
}

TEST(Target, WhatIsNotWellFormedIsRefused) {
  for (const char* text : {"", "v1", "http://x/", "/%", "/%4", "/%zz", "/%ff", "/x?a=1&a=2", "/x?a=%C3"})
    EXPECT_FALSE(Target::parse(text)) << text;
}

TEST(Url, HostPortAndPathAreTold) {
  auto url = Url::parse("http://[::1]:8080/hook?x=1");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->path, "/hook?x=1");
  EXPECT_EQ(url->authority(), "[::1]:8080");
  EXPECT_EQ(Url::parse("unix:///run/x.sock")->path, "/run/x.sock");
  for (const char* text : {"", "ftp://x", "http://", "http://x:0/", "http://x:65536/", "http://u@x/", "http://x/#y",
                           "http://x y/", "unix://x", "https://x/", "http://[::1/"})
    EXPECT_FALSE(Url::parse(text)) << text;
}

class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(Headers headers, bool local = false)
      : Exchange({"GET", "/", std::move(headers), {}}), local_(local) {}
  bool is_local_socket() const override { return local_; }
  void answer(Response) override {}
  std::shared_ptr<ResponseStream> stream(Response) override { return {}; }
  CancelSignal gone() override { return {}; }

 private:
  const bool local_;
};

int guarded(Headers headers, bool local = false) {
  auto refused = refused_by_guard(FakeExchange(std::move(headers), local), {"perdure.internal"});
  return refused ? refused->status : 200;
}

TEST(Guard, OnlyNamesOfThisDaemonAreServed) {
  for (const char* host :
       {"localhost", "LOCALHOST:7420", "127.0.0.1:7420", "127.1.2.3", "[::1]:7420", "perdure.internal:1"})
    EXPECT_EQ(guarded({{"Host", host}}), 200) << host;
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]", "", "0.0.0.0"})
    EXPECT_EQ(guarded({{"Host", host}}), 421) << host;
  EXPECT_EQ(guarded({}), 421);
  EXPECT_EQ(guarded({}, true), 200);
  EXPECT_EQ(guarded({{"Host", "localhost"}, {"host", "localhost"}}), 400);
}

TEST(Guard, PagesOfOtherSitesAreRefused) {
  EXPECT_EQ(guarded({{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}, {"Sec-Fetch-Site", "same-origin"}}),
            200);
  EXPECT_EQ(guarded({{"Host", "localhost:1"}, {"Origin", "http://localhost:2"}}), 403);
  EXPECT_EQ(guarded({{"Host", "localhost:1"}, {"Origin", "null"}}), 403);
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_EQ(guarded({{"Host", "localhost:1"}, {"Sec-Fetch-Site", site}}), 403) << site;
}

}  // namespace
}  // namespace perdure::http
