// Whom the parts of a packet simulation tell what fast-forward (forward/fast_forward.h) must know of.
#pragma once

#include <cstdint>
#include <vector>

namespace armilla::packets {

class Watcher {
 public:
  // The flow, or a message of the connection, is about to begin.
  virtual void begins(std::uint32_t flow) = 0;
  // One more message of the connection has arrived as a whole.
  virtual void arrived(std::uint32_t connection) = 0;
  // Who is marked at the port is left to chance.
  virtual void left_to_chance(std::uint32_t port) = 0;
  // What comes in at a switch's port may soon make it pause its peer.
  virtual void crowded(std::uint32_t entry) = 0;
  // A connection is about to join the sets of others (connection_sets.h), over its ports; a set is about to
  // become a part of another; the connection has joined.
  virtual void connects(const std::vector<std::uint32_t>& ports) = 0;
  virtual void join(std::uint32_t into, std::uint32_t from) = 0;
  virtual void connected(std::uint32_t connection) = 0;

 protected:
  ~Watcher() = default;
};

}  // namespace armilla::packets
