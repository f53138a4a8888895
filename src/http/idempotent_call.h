// A call of an actor that is made once, however often it is asked for with the same idempotency key.
//
//     push and note who waits -> wait -> take the reply and note it as the answer
//
// Each arrow is a transaction, so a daemon that dies in between leaves something by which the next one goes on: the
// message is in the mailbox or was handled, and its reply waits in the store until it is noted.
#pragma once

#include "http/idempotency.h"
#include "node/node.h"

namespace perdure::http {

void call_once(Node& node, const Actor& actor, const CallPtr& call, IdempotencyKey key, Duration timeout, Done done);

}  // namespace perdure::http
