#include "store/etcd/etcd_channel.h"

#include <fstream>
#include <iterator>
#include <string_view>

namespace perdure::etcd {
namespace {

/// etcd hangs up on those who ask more often than every five seconds.
constexpr int kPingEveryMs = 6'000, kPingPatienceMs = 2'000;

Result<std::string> contents(const std::string& path, std::string_view option) {
  if (path.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.empty())
    return fail(ErrorCode::kInvalidArgument,
                "the file '" + path + "' of the option " + std::string(option) + " in the url of etcd cannot be read");
  return text;
}

}  // namespace

Result<std::shared_ptr<grpc::ChannelCredentials>> credentials_of(const Url& url) {
  if (!url.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  struct File {
    const std::string& path;
    std::string_view option;
    std::string& to;
  };
  for (const File& file : {File{url.ca, "ca", options.pem_root_certs}, File{url.cert, "cert", options.pem_cert_chain},
                           File{url.key, "key", options.pem_private_key}}) {
    auto text = contents(file.path, file.option);
    if (!text) return std::unexpected(std::move(text.error()));
    file.to = std::move(*text);
  }
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                            Duration connect_patience) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // In spite of its name: how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(connect_patience / std::chrono::milliseconds(1)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingPatienceMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A connection of one's own, and not by way of what the environment says about web pages.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("dns:///" + address, credentials, arguments);
}

}  // namespace perdure::etcd
