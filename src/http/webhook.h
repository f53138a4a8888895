// Signatures of what is pushed, as Standard Webhooks has them: the receiver sees that a request comes from who knows
// the secret, is not changed, and is not an old one sent again.
//
//     webhook-id: 018f…                       the same for every attempt at an event
//     webhook-timestamp: 1614265330           of this attempt, in seconds since 1970
//     webhook-signature: v1,<base64>          HMAC-SHA256 of "id.timestamp.body"
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "http/message.h"
#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::http {

/// The bytes that sign: what the base64 behind "whsec_" stands for, or the text itself if it does not begin so.
/// Errors: kInvalidArgument for an empty key, and for what is not base64 behind the prefix. The secret is not in the
/// message.
Result<Bytes> webhook_key(std::string_view secret);

/// "v1,<base64>".
std::string webhook_signature(BytesView key, std::string_view id, std::int64_t timestamp, std::string_view body);

/// Adds the headers; without a key those two that need none.
void add_webhook_headers(Headers& headers, BytesView key, std::string_view id, WallTime now, std::string_view body);

/// Whether the request has been signed with `key`, no longer ago than `tolerance`, and not so far ahead. Of several
/// signatures in the header, with blanks between them, one has to fit. Takes as long for any signature.
/// Errors: kPermissionDenied, naming what is wrong.
Result<void> verify_webhook(BytesView key, const Headers& headers, std::string_view body, WallTime now,
                            Duration tolerance = std::chrono::minutes(5));

}  // namespace perdure::http
