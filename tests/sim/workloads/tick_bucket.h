// A leadership as a bucket of NATS gives it: keys with revisions, which age out, on a server across a network that is
// slow and loses requests and answers. It knows nothing of the store, so that only the tokens of runs keep two leaders
// apart in the end; and its owners must keep their keys alive themselves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "perdure/leadership.h"
#include "sim/world.h"

namespace perdure::sim::debouncing {

class BucketLeadership;

/// The server. It is never down; the network stands for that.
class Bucket {
 public:
  struct Options {
    Duration max_age;
    Duration slow = {};        ///< The longest way of a message.
    std::uint64_t losses = 0;  ///< Of 1000 messages are lost.
  };
  struct Entry {
    std::string owner;
    LeaderStatus status = LeaderStatus::kWaiting;
    std::uint64_t revision = 0;
    SteadyTime written = {};
  };

  Bucket(World& world, const Options& options) : world_(world), options_(options) {}
  /// What `node` has of it. Drop it before the node is gone.
  std::shared_ptr<Leadership> open(SimNode& node);
  /// Nothing if it has aged out.
  const Entry* find(const std::string& key) const;
  /// A write that was acknowledged is lost, and nobody is told.
  void lose(const std::string& key) { entries_.erase(key); }
  /// The network is quick from now on, and loses nothing.
  void heal() {
    options_.losses = 0;
    options_.slow = std::chrono::milliseconds(2);
  }
  /// When a message was lost last, or came too late.
  SteadyTime lost_at() const { return lost_at_; }

 private:
  friend class BucketLeadership;
  std::uint64_t write(const std::string& key, const std::string& owner, LeaderStatus status);
  void purge(const std::string& key, std::uint64_t revision);
  void tell(const std::string& key, const LeadershipEvent& event);
  /// How long a message takes; nothing if it is lost.
  std::optional<Duration> way(Random& random);

  World& world_;
  Options options_;
  std::map<std::string, Entry> entries_;
  std::uint64_t last_revision_ = 0;
  SteadyTime lost_at_ = {};
  std::vector<std::weak_ptr<BucketLeadership>> clients_;
};

}  // namespace perdure::sim::debouncing
