#include "http/allowed_targets.h"

#include <gtest/gtest.h>

namespace perdure::http {
namespace {

Url url(std::string_view text) {
  return *Url::parse(text);
}

TEST(AllowedTargets, NumericHostsAreJudgedByTheirBytes) {
  for (std::string_view host : {"127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"})
    EXPECT_EQ(judge_host(host), HostIs::kLoopback) << host;
  for (std::string_view host : {"0.0.0.0", "128.0.0.1", "10.0.0.1", "::", "::2", "::ffff:10.0.0.1", "fe80::1%lo"})
    EXPECT_EQ(judge_host(host), HostIs::kOtherAddress) << host;
  for (std::string_view host : {"localhost", "127.1", "2130706433", "0x7f.0.0.1", "example.com"})
    EXPECT_EQ(judge_host(host), HostIs::kName) << host;
}

TEST(AllowedTargets, OnlyLoopbackIsAllowedByDefault) {
  AllowedTargets targets;
  EXPECT_TRUE(targets.check(url("http://127.0.0.1:80/x")));
  EXPECT_TRUE(targets.check(url("http://localhost/x")));
  for (std::string_view text : {"http://10.0.0.1/", "http://[::2]:81/x", "unix:///run/docker.sock"}) {
    auto checked = targets.check(url(text));
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().code, ErrorCode::kPermissionDenied);
    EXPECT_NE(checked.error().message.find("--allow-url"), std::string::npos) << checked.error().message;
  }
}

TEST(AllowedTargets, APrefixCoversWhatIsBelowItAndNothingBeside) {
  AllowedTargets targets;
  ASSERT_TRUE(targets.allow("http://hooks.internal:8080/a/"));
  ASSERT_TRUE(targets.allow("http://10.0.0.1/b"));
  ASSERT_TRUE(targets.allow("unix:///run/app.sock"));
  for (std::string_view text :
       {"http://hooks.internal:8080/a/", "http://HOOKS.internal:8080/a/x?y", "http://10.0.0.1/b", "http://10.0.0.1/b/c",
        "http://10.0.0.1/b?c", "unix:///run/app.sock"})
    EXPECT_TRUE(targets.by_prefix(url(text))) << text;
  for (std::string_view text :
       {"http://hooks.internal/a/", "http://hooks.internal.evil:8080/a/", "http://hooks.internal:8080/",
        "http://hooks.internal:8080/a/../b", "http://hooks.internal:8080/a/%2E%2e/b", "http://10.0.0.1/bc",
        "http://10.0.0.1/b/..%2fc", "unix:///run/app.sock2"})
    EXPECT_FALSE(targets.by_prefix(url(text))) << text;
  EXPECT_FALSE(targets.allow("ftp://x/"));
}

TEST(AllowedTargets, AHostIsANameOrAnAddress) {
  for (const char* good : {"http://a-b.c_d/", "http://[::1]/", "http://[2001:db8::1]:81/x"})
    EXPECT_TRUE(Url::parse(good)) << good;
  for (const char* bad :
       {"http://[[33]/", "http://[1]/", "http://[::1%eth0]/", "http://a[b/", "http://a\"b/", "http://[]/"})
    EXPECT_FALSE(Url::parse(bad)) << bad;
}

TEST(AllowedTargets, ASocketHasAPathThatTheKernelTakes) {
  EXPECT_TRUE(Url::parse("unix:///" + std::string(106, 'x')));
  EXPECT_EQ(Url::parse("unix:///my things/#1.sock")->path, "/my things/#1.sock");
  EXPECT_FALSE(Url::parse("http://127.0.0.1/my things"));
  EXPECT_FALSE(Url::parse("unix:///" + std::string(107, 'x')));
  EXPECT_FALSE(Url::parse(std::string("unix:///a\0b", 11)));
}

}  // namespace
}  // namespace perdure::http
