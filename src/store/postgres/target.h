// Where the server is, as the url says it, and where our tables are on it.
#pragma once

#include <string>

#include "perdure/error.h"

namespace perdure::postgres {

struct Target {
  std::string conninfo;  ///< For libpq. May hold a password: never to be shown.
  std::string schema;    ///< Of ours alone: lower-case letters, digits and '_'.
  std::string user;      ///< Empty if the url leaves it to libpq.
  std::string name;      ///< "PostgreSQL at db.example:5432/app": for messages.
};

/// Takes perdure_schema out of the query of `url`; all else is libpq's. Errors: kInvalidArgument.
Result<Target> parse_target(const std::string& url);

}  // namespace perdure::postgres
