#pragma once

#include "perdure/value.h"

namespace perdure::debounce {

/// A merge patch as in RFC 7396: the entries of a map replace those of the target, one by one and all the way down, and
/// a null takes one away; anything else replaces the target as a whole.
Value merge_patch(Value target, Value patch);

}  // namespace perdure::debounce
