// Where hooks wait for a daemon that does not answer them.
//
// A hook and its daemon work it out each for itself: the one from the URL that it was given, the other from where it
// listens. So the name of a file says whose it is. Otherwise any daemon of a user would take what is meant for another,
// into a store where nobody looks for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/url.h"

namespace perdure::http {

/// Beside the socket: "hooks.spool" if that is called perdure.sock, as the one in the directory of a store is, and else
/// its name with ".spool" behind it, since other daemons may have theirs in the same directory.
std::string spool_beside(const std::string& socket);

/// In the home directory, for what can be left neither beside a socket nor in the directory of a store:
/// ".perdure-hooks.spool" for the daemon that listens where one listens that is told nothing, and for any other the
/// same with a hash of its URL. All names of this machine are the same one, and so are all links to a directory.
std::string spool_at_home(const std::string& home, const Url& url);

/// What a daemon is known by; what it does not have is empty, or 0.
struct DaemonPlaces {
  std::string directory = {};  ///< Of its store.
  std::string socket = {};
  std::uint16_t port = 0;
  std::string home = {};  ///< Of its user.
};
/// All files in which hooks for this daemon may wait, each once. One that shares the directory of a store with others
/// is meant too by what is for the first of them.
std::vector<std::string> spools_of(const DaemonPlaces& places);

}  // namespace perdure::http
