#pragma once

#include <libpq-fe.h>

#include <string>

#include "store/postgres/target.h"

namespace perdure::postgres {

/// The words of PostgreSQL as a part of a sentence: the first line, without its severity and its stop.
std::string first_line(const char* message);

/// Why a statement failed, as its result says.
Error statement_error(const Target& target, const PGresult* result);

/// Why a connection could not be made. With the verbosity PQERRORS_VERBOSE, `message` holds the code of the server, if
/// one answered: libpq gives it in no other way.
Error connect_error(const Target& target, const char* message);

/// Whether such a message says of any of the hosts that it, or what it allows to the role or the database, has no
/// connection left.
bool is_crowded(const char* message);

/// Whether the server ended the session with this error, so that what became of a commit is not said by it.
bool ends_session(const PGresult* result);

/// Whether the server has undone the transaction for the sake of others (40001, 40P01): it may be tried again at once.
bool gives_way(const PGresult* result);

}  // namespace perdure::postgres
