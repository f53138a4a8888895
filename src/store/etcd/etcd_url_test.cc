// What can be tried without a server: urls, and what failures are taken for.
#include "store/etcd/etcd_url.h"

#include <gtest/gtest.h>

#include "store/etcd/etcd_errors.h"

namespace perdure::etcd {
namespace {

std::string shown(const std::string& text) {
  auto url = parse_url(text);
  if (!url) return std::string(url.error().name());
  std::string out = place_of(*url) + " " + url->prefix;
  if (!url->user.empty()) out += " " + url->user + "/" + url->password;
  if (url->tls) out += " tls ca=" + url->ca + " cert=" + url->cert + " key=" + url->key;
  if (!url->compact) out += " uncompacted";
  return out;
}

TEST(EtcdUrl, IsReadInAllItsParts) {
  EXPECT_EQ(shown("etcd://h:1"), "h:1 perdure");
  EXPECT_EQ(shown("etcd://h"), "h:2379 perdure");
  EXPECT_EQ(shown("etcd://h:1/"), "h:1 perdure");
  EXPECT_EQ(shown("etcd://a:1,b:2,[::1]:3,[::2]/my/app"), "a:1,b:2,[::1]:3,[::2]:2379 my/app");
  EXPECT_EQ(shown("etcd://us%40er:p%3a%2f@h:1/x"), "h:1 x us@er/p:/");
  EXPECT_EQ(shown("etcd://u:p:q@h:1"), "h:1 perdure u/p:q");
  EXPECT_EQ(shown("etcd://h:1?tls=on&ca=/a%20b&cert=c&key=k"), "h:1 perdure tls ca=/a b cert=c key=k");
  EXPECT_EQ(shown("etcd://h:1/p?compact=off&tls=off"), "h:1 p uncompacted");
}

TEST(EtcdUrl, IsRefusedWithAReason) {
  for (std::string bad : {"",
                          "etcd:",
                          "http://h:1",
                          "etcd://",
                          "etcd://,h:1",
                          "etcd://h:1,",
                          "etcd://:1",
                          "etcd://h:",
                          "etcd://h:0",
                          "etcd://h:65536",
                          "etcd://h:12x",
                          "etcd://[::1",
                          "etcd://[]:1",
                          "etcd://[::1]1",
                          "etcd://user@h:1",
                          "etcd://:p@h:1",
                          "etcd://u%4:p@h:1",
                          "etcd://u%zz:p@h:1",
                          "etcd://h:1//x",
                          "etcd://h:1/x/",
                          "etcd://h:1/a/row",
                          "etcd://h:1/log/b",
                          "etcd://h:1?tls",
                          "etcd://h:1?tls=yes",
                          "etcd://h:1?tls=on&",
                          "etcd://h:1?unknown=1",
                          "etcd://h:1?ca=x",
                          "etcd://h:1?tls=on&cert=x",
                          "etcd://h:1?tls=on&key=x"}) {
    auto url = parse_url(bad);
    ASSERT_FALSE(url) << bad;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument) << bad;
    EXPECT_NE(url.error().message.find("the url of etcd"), std::string::npos) << bad;
  }
}

TEST(EtcdUrl, ThePasswordIsInNoMessage) {
  for (std::string bad :
       {"etcd://user:secret@:1", "etcd://user:secret@h:0", "etcd://user:secret@h:1?x=1", "etcd://user:secret/x@h:1"})
    EXPECT_EQ(parse_url(bad).error().message.find("secret"), std::string::npos) << bad;
}

// Codes of gRPC.
enum : int { kUnknown = 2, kInvalid = 3, kDeadline = 4, kExhausted = 8, kOutOfRange = 11, kUnavailable = 14 };

ErrorCode code_of_write(int code, const std::string& message) {
  return judge(Purpose::kWrite, code, message, "h:1").error.code;
}

TEST(EtcdErrors, AWriteIsUnknownUnlessEtcdHasRefusedIt) {
  for (std::string unsure :
       {"etcdserver: request timed out", "etcdserver: request timed out, possibly due to previous leader failure",
        "etcdserver: request timed out, possibly due to connection lost", "etcdserver: leader changed",
        "etcdserver: server stopped", "Socket closed", "Connection reset by peer", "GOAWAY received", ""})
    EXPECT_EQ(code_of_write(kUnavailable, unsure), ErrorCode::kCommitUnknown) << unsure;
  EXPECT_EQ(code_of_write(kDeadline, "Deadline Exceeded"), ErrorCode::kCommitUnknown);
  EXPECT_EQ(code_of_write(kUnknown, "context canceled"), ErrorCode::kCommitUnknown);
  EXPECT_EQ(code_of_write(kUnavailable, "etcdserver: no leader"), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of_write(kExhausted, "etcdserver: too many requests"), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of_write(kExhausted, "etcdserver: mvcc: database space exceeded"), ErrorCode::kStoreFull);
  EXPECT_EQ(code_of_write(kInvalid, "etcdserver: request is too large"), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of_write(7, "etcdserver: permission denied"), ErrorCode::kPermissionDenied);
}

TEST(EtcdErrors, AReadThatFailsIsOnlyUnavailable) {
  for (std::string any : {"etcdserver: request timed out", "etcdserver: leader changed", "Socket closed"}) {
    Verdict verdict = judge(Purpose::kRead, kUnavailable, any, "h:1");
    EXPECT_EQ(verdict.error.code, ErrorCode::kUnavailable) << any;
    EXPECT_EQ(verdict.next, Next::kMoveOn) << any;
  }
  EXPECT_EQ(judge(Purpose::kRead, kOutOfRange, "etcdserver: mvcc: required revision has been compacted", "h:1").next,
            Next::kCompacted);
  EXPECT_EQ(judge(Purpose::kRead, 16, "etcdserver: invalid auth token", "h:1").next, Next::kAuthenticate);
}

}  // namespace
}  // namespace perdure::etcd
