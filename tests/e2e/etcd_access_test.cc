// Who may use an etcd: users and passwords, certificates, and the shared object that processes load.
#include <dlfcn.h>

#include "etcd_fixture.h"

namespace perdure::e2e {
namespace {

using namespace std::chrono_literals;

Error refusal_of(const std::string& url) {
  auto opened = etcd::EtcdServer::open({url});
  return opened ? Error{ErrorCode::kNotFound, "it was opened"} : opened.error();
}

class EtcdUsersTest : public EtcdTest {
 protected:
  EtcdUsersTest() {
    cluster_.ctl({"user", "add", "root:secret"});
    cluster_.ctl({"role", "add", "writer"});
    cluster_.ctl({"role", "grant-permission", "writer", "--prefix=true", "readwrite", "perdure/"});
    cluster_.ctl({"user", "add", "ann:p/w"});
    cluster_.ctl({"user", "grant-role", "ann", "writer"});
    cluster_.ctl({"role", "add", "reader"});
    cluster_.ctl({"role", "grant-permission", "reader", "--prefix=true", "read", "perdure/"});
    cluster_.ctl({"user", "add", "bob:bob"});
    cluster_.ctl({"user", "grant-role", "bob", "reader"});
    cluster_.ctl({"auth", "enable"});
  }
  std::string as(const std::string& login, const std::string& rest = "") {
    return "etcd://" + login + "@" + cluster_.endpoint(0) + rest;
  }
};

TEST_F(EtcdUsersTest, AUserWithTheRightsHasAll) {
  Heard heard;
  auto server = open_etcd(as("ann:p%2fw"));
  server->listen(heard.bell());
  EXPECT_TRUE(heard.wait_for("0"));
  EXPECT_TRUE(append(*server, 0, entry(1)));
  EXPECT_TRUE(heard.wait_for("1"));
  EXPECT_TRUE(must(server->fold({Version{0}, {{1}}, Version{0}, {row("k", "v", 1)}})));
  EXPECT_EQ(look(*server, 1, {"k"}).values[0]->value, "v");
}

TEST_F(EtcdUsersTest, OthersAreRefusedAtTheStart) {
  EXPECT_EQ(refusal_of(as("ann:wrong")).code, ErrorCode::kPermissionDenied);
  EXPECT_NE(refusal_of(as("ann:wrong")).message.find("password"), std::string::npos);
  EXPECT_EQ(refusal_of(as("nobody:x")).code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal_of(as("ann:p%2fw", "/elsewhere")).code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal_of(cluster_.url()).code, ErrorCode::kPermissionDenied) << "without a user";
  open_etcd(as("ann:p%2fw"));
  EXPECT_EQ(refusal_of(as("bob:bob")).code, ErrorCode::kPermissionDenied) << "who may only read";
}

// A member forgets its tokens when it ends.
TEST_F(EtcdUsersTest, ATokenThatIsForgottenIsRenewed) {
  auto server = open_etcd(as("ann:p%2fw"));
  ASSERT_TRUE(append(*server, 0, entry(1)));
  cluster_.stop();
  cluster_.start();
  EXPECT_TRUE(within(10s, [&] { return server->read(Version{}, {}, {}).has_value(); }));
  EXPECT_TRUE(append(*server, 1, entry(2)));
}

TEST_F(EtcdTest, AServerThatAsksForNoPasswordTakesAnyUser) {
  auto server = open_etcd("etcd://ann:any@" + cluster_.endpoint(0));
  EXPECT_TRUE(append(*server, 0, entry(1)));
}

class EtcdTlsTest : public ::testing::Test {
 protected:
  EtcdTlsTest() {
    authority("ca");
    authority("other");
    certificate("server", "ca");
    certificate("client", "ca");
    cluster_ = std::make_unique<EtcdCluster>(
        scratch_ / "etcd",
        EtcdCluster::Options{.members = 1,
                             .arguments = {"--cert-file=" + file("server.crt"), "--key-file=" + file("server.key"),
                                           "--trusted-ca-file=" + file("ca.crt"), "--client-cert-auth=true"},
                             .tls = true});
  }
  std::string file(const std::string& name) { return scratch_ / name; }
  void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null", "openssl"});
    if (Child(arguments).wait() != 0) throw std::runtime_error("openssl fails");
  }
  void authority(const std::string& name) {
    run({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name, "-keyout",
         file(name + ".key"), "-out", file(name + ".crt")});
  }
  void certificate(const std::string& name, const std::string& by) {
    write_whole(file("extensions"), "subjectAltName=IP:127.0.0.1\n");
    run({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", file(name + ".key"), "-out",
         file(name + ".csr")});
    run({"x509", "-req", "-days", "2", "-in", file(name + ".csr"), "-CA", file(by + ".crt"), "-CAkey",
         file(by + ".key"), "-CAcreateserial", "-extfile", file("extensions"), "-out", file(name + ".crt")});
  }
  std::string url(const std::string& ca, const std::string& client) {
    std::string options = "?tls=on&ca=" + file(ca);
    if (!client.empty()) options += "&cert=" + file(client + ".crt") + "&key=" + file(client + ".key");
    return cluster_->url(options);
  }

  Scratch scratch_;
  std::unique_ptr<EtcdCluster> cluster_;
};

TEST_F(EtcdTlsTest, CertificatesAreShownAndAskedFor) {
  auto server = open_etcd(url("ca.crt", "client"));
  EXPECT_TRUE(append(*server, 0, entry(1)));
  Error unknown = refusal_of(url("other.crt", "client"));
  EXPECT_EQ(unknown.code, ErrorCode::kUnavailable) << unknown.message;
  EXPECT_NE(unknown.message.find("andshake"), std::string::npos) << unknown.message;
  EXPECT_EQ(refusal_of(url("ca.crt", "")).code, ErrorCode::kUnavailable);
  EXPECT_EQ(refusal_of(url("missing.crt", "")).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal_of(cluster_->url()).code, ErrorCode::kUnavailable) << "without TLS";
}

// As the engine does it: nothing of this process's own copy is used.
TEST_F(EtcdTest, TheSharedObjectStandsAlone) {
  void* library = dlopen(PERDURE_ETCD_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto* open_server = reinterpret_cast<remote::OpenServer*>(dlsym(library, "perdure_open_server"));
  ASSERT_TRUE(open_server) << dlerror();
  Result<ServerPtr> opened;
  open_server({cluster_.url()}, opened);
  ASSERT_TRUE(opened) << to_string(opened.error());
  EXPECT_TRUE(append(**opened, 0, entry(1)));
  EXPECT_EQ(versions_of(look(**opened)), "1");
  opened->reset();
  open_server({"etcd://"}, opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  dlclose(library);
}

}  // namespace
}  // namespace perdure::e2e
