// Between the plain operations of etcd_ops.h and the messages of etcd.proto. For etcd_client.cc alone.
#pragma once

#include <etcd.pb.h>

#include "store/etcd/etcd_ops.h"

namespace perdure::etcd {

etcdserverpb::TxnRequest to_wire(const Txn& txn);
/// Takes the bytes out of `response`.
TxnAnswer from_wire(etcdserverpb::TxnResponse& response);
KeyValue from_wire(etcdserverpb::KeyValue& row);

}  // namespace perdure::etcd
