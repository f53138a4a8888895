// How perdure speaks gRPC to one endpoint of etcd: what is shown to it and asked of it, and the settings of a channel.
// For etcd_client.cc alone.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "perdure/time.h"
#include "store/etcd/etcd_url.h"

namespace perdure::etcd {

/// Errors: kInvalidArgument for a file that cannot be read.
Result<std::shared_ptr<grpc::ChannelCredentials>> credentials_of(const Url& url);

/// Connects with the first call. Repeats no call by itself.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                            Duration connect_patience);

}  // namespace perdure::etcd
