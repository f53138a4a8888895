#pragma once

#include <string>
#include <string_view>

namespace perdure {

/// For people and logs: "postgres://ada:secret@host/db" as "postgres://ada@host/db".
std::string without_password(std::string_view url);

}  // namespace perdure
