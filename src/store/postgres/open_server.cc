#include "store/postgres/postgres_server.h"
#include "store/remote/server_library.h"

PERDURE_SERVER(perdure::postgres::PostgresServer::open);
