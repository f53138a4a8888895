#include "http/target.h"

#include <algorithm>

#include "http/url.h"
#include "perdure/value.h"

namespace perdure::http {
namespace {

Result<std::string> decode_text(std::string_view text, bool plus_is_blank) {
  std::string raw(text);
  if (plus_is_blank) std::ranges::replace(raw, '+', ' ');
  auto decoded = percent_decode(raw);
  if (!decoded) return decoded;
  if (!Value(*decoded).check("the text"))
    return fail(ErrorCode::kInvalidArgument, "'" + std::string(text) + "' in the URL is not UTF-8 when decoded");
  return decoded;
}

template <class F>
Result<void> split(std::string_view text, char by, F take) {
  for (;;) {
    std::size_t end = text.find(by);
    if (Result<void> taken = take(text.substr(0, end)); !taken) return taken;
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<Target> Target::parse(std::string_view text) {
  if (!text.starts_with("/"))
    return fail(ErrorCode::kInvalidArgument,
                "the target of a request begins with '/', and this is '" + std::string(text.substr(0, 80)) + "'");
  std::size_t mark = text.find('?');
  std::string_view path = text.substr(1, mark == std::string_view::npos ? mark : mark - 1);
  Target target;
  auto good = split(path, '/', [&](std::string_view segment) -> Result<void> {
    auto decoded = decode_text(segment, false);
    if (!decoded) return std::unexpected(std::move(decoded.error()));
    target.segments.push_back(std::move(*decoded));
    return {};
  });
  if (!good) return std::unexpected(std::move(good.error()));
  if (mark == std::string_view::npos || mark + 1 == text.size()) return target;
  good = split(text.substr(mark + 1), '&', [&](std::string_view pair) -> Result<void> {
    if (pair.empty()) return {};
    std::size_t equals = pair.find('=');
    auto name = decode_text(pair.substr(0, equals), true);
    if (!name) return std::unexpected(std::move(name.error()));
    auto value = decode_text(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!value) return std::unexpected(std::move(value.error()));
    if (!target.query.emplace(*name, std::move(*value)).second)
      return fail(ErrorCode::kInvalidArgument, "the query names '" + *name + "' twice");
    return {};
  });
  if (!good) return std::unexpected(std::move(good.error()));
  return target;
}

}  // namespace perdure::http
