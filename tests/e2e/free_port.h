#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace perdure::e2e {

/// A port of the loopback that nobody has. Nobody else gets it soon, as the kernel hands them out in turn.
inline int free_port() {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  bool bound = bind(socket, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
               getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size) == 0;
  close(socket);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(any.sin_port);
}

}  // namespace perdure::e2e
