#pragma once

#include <memory>
#include <utility>

#include "perdure/error.h"
#include "runtime/latch.h"

namespace perdure {

/// Makes a blocking call of an asynchronous one: `start` is given what takes the answer. Refused with the error of
/// impl.may_block() where that would wait for itself. The answer is shared, because the call may return before the one
/// who answers has let go of it.
template <class T, class Impl, class F>
Result<T> block(Impl& impl, F start) {
  if (Result<void> allowed = impl.may_block(); !allowed) return std::unexpected(std::move(allowed.error()));
  auto promise = std::make_shared<Promise<Result<T>>>();
  start([promise](Result<T> result) { promise->set(std::move(result)); });
  return promise->take();
}

}  // namespace perdure
