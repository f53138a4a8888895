// docs/reference/errors.md is written from the error table, so that the two cannot differ. After a change of the table:
//   PERDURE_UPDATE_DOCS=1 ./dev test ErrorsPage
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "perdure/error.h"

namespace perdure {
namespace {

constexpr const char* kPage = PERDURE_SOURCE_DIR "/docs/reference/errors.md";

constexpr std::string_view kHead = R"(# Errors

<!-- Written from the table in src/base/error.cc by tests/errors_page_test.cc. Change the table, not this page. -->

Every operation ends in one of three ways: it took effect, it failed without effect, or its outcome is unknown. Each
failure has one of the codes below; two failures share a code unless a caller would react to them differently.

- **code** is the name in answers and logs, and `perdure::ErrorCode` in C++ (`store_full` is `kStoreFull`).
- **HTTP** is the status of the answer, **exit** the exit code of the command line.
- **retry** says whether the very same call may succeed later without any change by the caller.
- **outcome** says what a failed call left behind: `none` is nothing at all; `unknown` is that it may have taken effect.

| code | HTTP | exit | retry | outcome | what to do |
|---|---|---|---|---|---|
)";

std::string generated_page() {
  std::string page(kHead);
  for (const ErrorInfo& row : error_table()) {
    page += "| `" + std::string(row.name) + "` | " + std::to_string(row.http_status) + " | ";
    page += std::to_string(row.exit_code) + " | " + (row.retry == Retry::kLater ? "later" : "never") + " | ";
    page +=
        std::string(row.outcome == Outcome::kUnknown ? "unknown" : "none") + " | " + std::string(row.advice) + " |\n";
  }
  return page;
}

TEST(ErrorsPage, SaysWhatTheErrorTableSays) {
  std::string page = generated_page();
  const char* update = std::getenv("PERDURE_UPDATE_DOCS");
  if (update != nullptr && std::string_view(update) == "1") {
    std::ofstream(kPage, std::ios::binary) << page;
  }
  std::ifstream in(kPage, std::ios::binary);
  ASSERT_TRUE(in) << kPage << " cannot be read";
  std::string stored(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(stored, page) << "run PERDURE_UPDATE_DOCS=1 ./dev test ErrorsPage";
}

}  // namespace
}  // namespace perdure
