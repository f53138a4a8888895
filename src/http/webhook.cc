#include "http/webhook.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"
#include "value/base64.h"

namespace perdure::http {
namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::size_t kSha256Bytes = 32;

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kPermissionDenied, std::move(message));
}

std::int64_t seconds_of(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

bool same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace

Result<Bytes> webhook_key(std::string_view secret) {
  if (!secret.starts_with(kSecretPrefix)) {
    if (secret.empty()) return fail(ErrorCode::kInvalidArgument, "the secret is empty");
    return Bytes(secret);
  }
  auto key = from_base64(secret.substr(kSecretPrefix.size()));
  if (!key || key->empty())
    return fail(ErrorCode::kInvalidArgument,
                "what stands behind whsec_ in the secret is not base64 with padding; give the secret as it was "
                "generated, or a text without that prefix");
  return std::move(*key);
}

std::string webhook_signature(BytesView key, std::string_view id, std::int64_t timestamp, std::string_view body) {
  std::string text;
  text.reserve(id.size() + body.size() + 24);
  text.append(id).append(1, '.').append(std::to_string(timestamp)).append(1, '.').append(body);
  std::array<unsigned char, kSha256Bytes> mac;
  unsigned size = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  check(made != nullptr && size == mac.size(), "OpenSSL has no HMAC-SHA256");
  std::string out = "v1,";
  put_base64(out, BytesView(reinterpret_cast<const char*>(mac.data()), mac.size()));
  return out;
}

void add_webhook_headers(Headers& headers, BytesView key, std::string_view id, WallTime now, std::string_view body) {
  std::int64_t timestamp = seconds_of(now);
  headers.add("webhook-id", std::string(id));
  headers.add("webhook-timestamp", std::to_string(timestamp));
  if (!key.empty()) headers.add("webhook-signature", webhook_signature(key, id, timestamp, body));
}

Result<void> verify_webhook(BytesView key, const Headers& headers, std::string_view body, WallTime now,
                            Duration tolerance) {
  const std::string* id = headers.find("webhook-id");
  const std::string* stamp = headers.find("webhook-timestamp");
  const std::string* signatures = headers.find("webhook-signature");
  if (!id || !stamp || !signatures)
    return wrong("the request lacks one of webhook-id, webhook-timestamp and webhook-signature");
  std::int64_t timestamp = 0;
  auto [end, error] = std::from_chars(stamp->data(), stamp->data() + stamp->size(), timestamp);
  if (error != std::errc() || end != stamp->data() + stamp->size())
    return wrong("webhook-timestamp is not a number of seconds");
  std::int64_t off = seconds_of(now) - timestamp;
  auto allowed = std::chrono::floor<std::chrono::seconds>(tolerance).count();
  if (off > allowed || off < -allowed) return wrong("webhook-timestamp is too far from the time of this machine");
  std::string expected = webhook_signature(key, *id, timestamp, body);
  bool found = false;
  for (std::size_t begin = 0; begin <= signatures->size();) {
    std::size_t blank = std::min(signatures->find(' ', begin), signatures->size());
    found = same(std::string_view(*signatures).substr(begin, blank - begin), expected) || found;
    begin = blank + 1;
  }
  if (!found) return wrong("no signature in webhook-signature fits the body and the secret");
  return {};
}

}  // namespace perdure::http
