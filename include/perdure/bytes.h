#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "perdure/export.h"

namespace perdure {

/// Keys and values are plain bytes: any byte may occur, and order is that of unsigned bytes.
using Bytes = std::string;
using BytesView = std::string_view;

/// Bytes as a person can read them in a message: printable ASCII as it is, all else as \xNN, cut after `max` bytes.
PERDURE_EXPORT std::string printable(BytesView bytes, std::size_t max = 64);

}  // namespace perdure
