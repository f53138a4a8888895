#include "store/etcd/etcd_server.h"
#include "store/remote/server_library.h"

PERDURE_SERVER(perdure::etcd::EtcdServer::open);
