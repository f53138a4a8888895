#include "base/assert.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "perdure/fatal.h"

namespace perdure {
namespace {

constexpr std::size_t kTextMax = 1024;

/// Whether somebody is writing, or has written, abort_text.
std::atomic<bool> aborting = false;

}  // namespace

/// The only state that the library keeps outside of its objects. Written once, by a process that is ending; here and
/// not behind a pointer, so that it is in every core dump and can be read in a signal handler.
char abort_text[kTextMax] = "";

void die(std::string_view what, std::source_location where) {
  if (!aborting.exchange(true))
    std::snprintf(abort_text, sizeof abort_text, "perdure: broken invariant: %.*s (%s:%u)",
                  static_cast<int>(std::min(what.size(), kTextMax)), what.data(), where.file_name(), where.line());
  std::abort();
}

const char* abort_message() noexcept {
  return abort_text;
}

}  // namespace perdure
