// libFuzzer target: what strangers send besides JSON. Targets of requests, URLs, durations, times, rates and versions
// are read or refused; what is read and written again is read as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "http/target.h"
#include "http/units.h"
#include "http/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  using namespace perdure::http;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto target = Target::parse(text)) {
    std::string again;
    for (const std::string& segment : target->segments) again += "/" + percent_encode(segment);
    auto same = Target::parse(again);
    check(same && same->segments == target->segments, "a path that is encoded is decoded to itself");
  }
  if (auto url = Url::parse(text); url && url->scheme == Url::Scheme::kHttp) {
    auto same = Url::parse("http://" + url->authority() + url->path);
    check(same && same->host == url->host && same->port == url->port, "a URL that is written is read as itself");
  }
  if (auto duration = parse_duration(text, "it")) {
    check(*duration >= Duration::zero(), "a duration is not negative");
    check(parse_duration(format_duration(*duration), "it").has_value(), "what is written is a duration");
  }
  if (auto rate = parse_rate(text, "it")) check(rate->count > 0 && rate->per > Duration::zero(), "a rate is something");
  if (auto time = parse_time(text, "it")) (void)format_time(*time);
  if (auto version = parse_version(text)) check(format_version(*version).size() == 16, "a version has 16 digits");
  return 0;
}
