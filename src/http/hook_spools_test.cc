#include "http/hook_spools.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

namespace perdure::http {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

const std::string kHome = "/users/ann";

std::string at_home(const std::string& url) {
  return spool_at_home(kHome, *Url::parse(url));
}

TEST(HookSpools, ADaemonThatIsToldNothingTakesWhatHooksLeaveThatAreToldNothing) {  // WORK-25
  for (const char* url : {"http://127.0.0.1:7420", "http://localhost:7420", "http://[::1]:7420/x"})
    EXPECT_EQ(at_home(url), "/users/ann/.perdure-hooks.spool") << url;
  DaemonPlaces usual = {"/data", "/data/perdure.sock", 7420, kHome};
  EXPECT_THAT(spools_of(usual), ElementsAre("/data/hooks.spool", at_home("unix:///data/perdure.sock"),
                                            "/users/ann/.perdure-hooks.spool"));
}

TEST(HookSpools, ADaemonTakesWhatIsLeftBesideItsSocketAndInItsDirectory) {  // WORK-25
  auto spools = spools_of({"/data", "/run/work.sock", 9000, kHome});
  EXPECT_EQ(spool_beside("/run/work.sock"), "/run/work.sock.spool");
  EXPECT_EQ(spool_beside("/data/perdure.sock"), "/data/hooks.spool");
  EXPECT_THAT(spools, ElementsAre("/data/hooks.spool", "/run/work.sock.spool", at_home("unix:///data/perdure.sock"),
                                  at_home("unix:///run/work.sock"), at_home("http://127.0.0.1:9000")));
  EXPECT_THAT(spools_of({"/data", "/data/perdure-7.sock", 9001, kHome}), Contains("/data/hooks.spool"))
      << "the second daemon of a directory";
  EXPECT_THAT(spools_of({.port = 9000, .home = kHome}), ElementsAre(at_home("http://localhost:9000")))
      << "one whose store is on a server";
  EXPECT_THAT(spools_of({.directory = "/data", .port = 9000}), ElementsAre("/data/hooks.spool"))
      << "one without a home";
}

TEST(HookSpools, ADaemonDoesNotTakeWhatIsForAnother) {  // WORK-25
  DaemonPlaces one = {"/one", "/run/one.sock", 7420, kHome}, two = {"/two", "/run/two.sock", 7421, kHome};
  for (const std::string& path : spools_of(one)) EXPECT_THAT(spools_of(two), Not(Contains(path)));
  EXPECT_NE(at_home("http://elsewhere:7420"), at_home("http://localhost:7420"));
  EXPECT_NE(at_home("http://127.elsewhere:7421"), at_home("http://localhost:7421"));
}

TEST(HookSpools, LinksToADirectoryLeadToTheSameSpool) {  // WORK-25
  std::string made = fs::canonical(testing::TempDir()).string() + "/hook-spools-XXXXXX";
  std::string directory = ::mkdtemp(made.data()), link = directory + "/link";
  fs::create_directory_symlink(directory, link);
  // The directory of the store may come to be only later.
  EXPECT_EQ(at_home("unix://" + link + "/data/perdure.sock"), at_home("unix://" + directory + "/data/perdure.sock"));
  EXPECT_THAT(spools_of({.socket = link + "/./x.sock"}), ElementsAre(directory + "/x.sock.spool"));
  fs::remove_all(directory);
}

}  // namespace
}  // namespace perdure::http
