// When messages of connections begin, and which connections have an influence on each other.
//
// A message begins when all else of its nanosecond has happened, those of one nanosecond in the order of
// their connections. When the first one of a connection brings together what shared no port before, events of
// one nanosecond go by sets from then on, in the order of their first connections: so sets do not depend on
// when others were played. A connection that has nothing to send, or to hear of, starts anew with its next
// message, at line rate.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet/connection_sets.h"
#include "network/packet/hosts.h"
#include "network/packet/switches.h"

namespace armilla::packets {

class Connections {
 public:
  Connections(Hosts& hosts, Switches& switches)
      : core_(hosts.core()),
        flows_(hosts.flows()),
        links_(hosts.links()),
        ways_(hosts.ways()),
        mail_(hosts.mail()),
        hosts_(hosts),
        switches_(switches),
        sets_(links_.size()) {}

  // One more message of the connection is to begin then.
  void await(std::uint32_t connection, std::int64_t at_ns);
  // When the next ones are; INT64_MAX: there are none.
  std::int64_t next_ns() const { return posts_.empty() ? INT64_MAX : posts_.front().ns; }
  void begin_messages();

  // What comes in at a switch's port may soon make it pause its peer. When all else of this nanosecond
  // has happened, too, nobody has yet been paused (Switch::calm), and what uses the switch becomes one
  // set, for good.
  void crowded(std::uint32_t entry);

  // Of those a message of which has begun.
  ConnectionSets& sets() { return sets_; }
  std::uint32_t set_of(const WheelEvent& event) const;  // kNone: of none

 private:
  // A message to begin, the next one of its connection; kNone: sets to become one, as buffers fill.
  struct Post {
    std::int64_t ns = 0;
    std::uint32_t connection = 0;
    auto operator<=>(const Post&) const = default;
  };

  void begin_message(std::uint32_t connection);
  void restart(std::uint32_t connection);
  void join_sets(std::uint32_t connection);
  void join_at_switch(std::uint32_t node);
  void join(std::uint32_t into, std::uint32_t from);
  void note_order(std::uint32_t set, std::uint32_t other);
  void order_events();

  Core& core_;
  Flows& flows_;
  Links& links_;
  WayFinder& ways_;
  Mail& mail_;
  Hosts& hosts_;
  Switches& switches_;
  std::vector<Post> posts_;                             // a heap, the earliest first
  std::vector<std::uint32_t> beginning_;                // connections, a message of which begins now
  std::vector<std::uint32_t> crowded_;                  // switches, whose sets become one now
  std::vector<std::uint32_t> order_of_port_, ordered_;  // while sets are joined: the first connection; ports
  ConnectionSets sets_;
};

}  // namespace armilla::packets
