#pragma once

#include <span>
#include <string>
#include <string_view>

namespace perdure::cli {

/// The name that `typed` most likely stands for: at most two letters off, and fewer than half of them. Empty for none.
std::string nearest(std::string_view typed, std::span<const std::string> names);

}  // namespace perdure::cli
