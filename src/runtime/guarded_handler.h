#pragma once

#include <exception>
#include <string>

#include "perdure/error.h"

namespace perdure {

/// Runs a handler of the user's: an exception becomes kHandlerFailed with its words.
template <class F>
auto guarded_handler(F&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return fail(ErrorCode::kHandlerFailed, std::string("the handler threw: ") + thrown.what());
  } catch (...) {
    return fail(ErrorCode::kHandlerFailed, "the handler threw something that is no std::exception");
  }
}

}  // namespace perdure
