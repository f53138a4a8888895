// etcd://[user:password@]host:port[,host:port…][/prefix][?option=value&…]
//
//   tls=on               speak TLS; off without it
//   ca=FILE              who signs the server's certificate, in PEM; the machine's own list without it
//   cert=FILE, key=FILE  the client's certificate and its key, in PEM; both or none
//   compact=off          leave old revisions to the operator of etcd
//
// Percent-escapes stand for bytes in the user, the password, the prefix and the values.
#pragma once

#include <string>
#include <vector>

#include "perdure/error.h"

namespace perdure::etcd {

struct Url {
  std::vector<std::string> endpoints;  ///< "host:port", at least one.
  std::string user = {};               ///< Empty: without authentication.
  std::string password = {};
  std::string prefix = "perdure";
  bool tls = false;
  std::string ca = {};
  std::string cert = {};
  std::string key = {};
  bool compact = true;
};

/// Errors: kInvalidArgument with what is wrong. The password is in no message.
Result<Url> parse_url(const std::string& url);

/// The endpoints, for messages: "127.0.0.1:2379,127.0.0.1:22379".
std::string place_of(const Url& url);

}  // namespace perdure::etcd
